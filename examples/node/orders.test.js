import assert from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";

let broker;
let kafka;

before(async () => {
  const name = process.env.KAFKA_SHIM ?? "kafka-shim";
  const words = ["serve", "--memory", "--listen", "127.0.0.1:0", "--log-level", "WARNING"];
  broker = spawn(name, words, { stdio: ["ignore", "pipe", "inherit"] });
  // ready PLAINTEXT://127.0.0.1:41234 node=1 cluster=... data=...
  const [line] = await once(createInterface({ input: broker.stdout }), "line");
  const address = line.split(" ")[1].replace("PLAINTEXT://", "");
  kafka = new Kafka({ brokers: [address], logLevel: logLevel.ERROR });
});

after(async () => {
  broker.kill("SIGTERM");
  await once(broker, "exit");
});

test("a record arrives", async () => {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value: "one" }] });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: "billing" });
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  const value = await new Promise((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) });
  });
  await consumer.disconnect();
  assert.equal(value, "one");
});
