// One application of kafkajs: plain and transactional producers, a consumer group with two members, an admin.
import kafkajs from "kafkajs";

const { Kafka, CompressionTypes, logLevel } = kafkajs;
const [topic, group, count] = ["kafkajs", "kafkajs-group", 300];
const kafka = new Kafka({ clientId: "app", brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const messages = (kind) => [...Array(count).keys()].map((number) => ({ key: `${number}`, value: `${kind} ${number}`, headers: { kind } }));

const admin = kafka.admin();
await admin.connect();
say("created", await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1 }], waitForLeaders: true }));
say("again", await admin.createTopics({ topics: [{ topic, numPartitions: 3 }] }));

const plain = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
await plain.connect();
await plain.send({ topic, compression: CompressionTypes.GZIP, messages: messages("plain") });
await plain.disconnect();

const producer = kafka.producer({ transactionalId: "kafkajs-transactional", idempotent: true, maxInFlightRequests: 1 });
await producer.connect();
// Apache Kafka's coordinator of the first group may still load, and kafkajs asks once.
for (let isLoading = true; isLoading;) {
  isLoading = await admin.fetchOffsets({ groupId: "kafkajs-other", topics: [topic] }).then(() => false, () => true);
}
let transaction = await producer.transaction();
await transaction.send({ topic, messages: messages("aborted") });
await transaction.abort();
transaction = await producer.transaction();
await transaction.send({ topic, messages: messages("committed") });
await transaction.sendOffsets({ consumerGroupId: "kafkajs-other", topics: [{ topic, partitions: [{ partition: 0, offset: "7" }] }] });
await transaction.commit();
await producer.disconnect();
// The answer to a commit comes before its markers are written, and kafkajs asks for offsets that need not be stable.
let offsets;
for (const until = Date.now() + 30_000; !offsets?.includes("7") && Date.now() < until;) {
  offsets = (await admin.fetchOffsets({ groupId: "kafkajs-other", topics: [topic] }))[0].partitions.map((each) => each.offset);
}
say("offsets of the transaction", offsets);

const seen = new Map();
let finished;
const enough = new Promise((resolve) => { finished = resolve; });
const members = [0, 1].map(() => kafka.consumer({ groupId: group, readUncommitted: false }));
for (const member of members) {
  await member.connect();
  await member.subscribe({ topics: [topic], fromBeginning: true });
}
await Promise.all(members.map((member) => member.run({
  eachMessage: async ({ message }) => {
    const value = message.value.toString();
    if (value.split(" ")[0] !== message.headers.kind.toString()) say("wrong header", value);
    seen.set(value, (seen.get(value) ?? 0) + 1);
    if (seen.size === 2 * count) finished();
  },
})));
const limit = setTimeout(finished, 90_000);
await enough;
clearTimeout(limit);
for (const member of members) await member.disconnect();
const kinds = {};
for (const value of [...seen.keys()].sort()) kinds[value.split(" ")[0]] = (kinds[value.split(" ")[0]] ?? 0) + 1;
say("read", kinds);

const ends = await admin.fetchTopicOffsets(topic);
const at = (await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions;
say("committed up to the last record", ends.map(({ partition, offset }) => {
  const found = Number(at.find((each) => each.partition === partition).offset);
  return found === Number(offset) || found === Number(offset) - 1;
}));
const described = await admin.describeGroups([group]);
say("group", described.groups.map((each) => [each.state, each.errorCode]));
const configs = await admin.describeConfigs({ resources: [{ type: 2, name: topic, configNames: ["cleanup.policy"] }] });
say("config", configs.resources[0].configEntries.map((each) => [each.configName, each.configValue]));
await admin.deleteGroups([group]);
await admin.deleteTopics({ topics: [topic] });
say("topics", (await admin.listTopics()).filter((name) => !name.startsWith("__")));
await admin.disconnect();
