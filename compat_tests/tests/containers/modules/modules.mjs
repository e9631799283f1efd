// Starts an image with Testcontainers' module for Node, prints where it is and how long it took, stops it at a line of stdin.
import { KafkaContainer } from "@testcontainers/kafka";

const begun = Date.now();
const container = await new KafkaContainer(process.argv[2]).start();
console.log(`ready ${container.getHost()}:${container.getMappedPort(9093)} ${Date.now() - begun}`);
await new Promise((resolve) => process.stdin.once("data", resolve));
await container.stop();
process.exit(0);
