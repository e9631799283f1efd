// One application of Confluent's client for JavaScript, by the interface that it shares with kafkajs: two members of a
// group of the new protocol copy a topic exactly once, each batch in a transaction with its offsets, and fail on the way.
import client from "@confluentinc/kafka-javascript";

const { Kafka, logLevel } = client.KafkaJS;
const [source, copy, group, count] = ["confluent-in", "confluent-out", "confluent-copy", 300];
const kafka = new Kafka({ kafkaJS: { clientId: "app", brokers: [process.argv[2]], logLevel: logLevel.NOTHING } });
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const messages = (kind) => [...Array(count).keys()].map((number) => ({ key: `${number}`, value: `${kind} ${number}`, headers: { kind } }));
// A consumer that has left may still ask for its topic once, and create it again after it was deleted.
const reading = { fromBeginning: true, allowAutoTopicCreation: false };
const limited = (promise) => Promise.race([promise, new Promise((resolve) => { setTimeout(resolve, 90_000).unref(); })]);

const admin = kafka.admin();
await admin.connect();
const topics = [source, copy].map((topic) => ({ topic, numPartitions: 3, replicationFactor: 1 }));
say("created", await admin.createTopics({ topics }));
say("again", await admin.createTopics({ topics }));

const plain = kafka.producer({ kafkaJS: { idempotent: true, compression: "lz4" } });
await plain.connect();
await plain.send({ topic: source, messages: messages("plain") });
await plain.disconnect();
const filling = kafka.producer({ kafkaJS: { transactionalId: "confluent-fill" } });
await filling.connect();
for (const kind of ["aborted", "committed"]) {
  const transaction = await filling.transaction();
  await transaction.send({ topic: source, messages: messages(kind) });
  await (kind === "aborted" ? transaction.abort() : transaction.commit());
}
await filling.disconnect();

const copied = new Set();
let failures = 0;
let finish;
const all = new Promise((resolve) => { finish = resolve; });
const members = await Promise.all([0, 1].map(async (number) => {
  const producer = kafka.producer({ kafkaJS: { transactionalId: `confluent-copy-${number}` } });
  const consumer = kafka.consumer({
    kafkaJS: { ...reading, groupId: group, autoCommit: false }, "group.protocol": "consumer",
  });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topic: source });
  let isFailed = false;
  await consumer.run({
    eachBatch: async ({ batch, resolveOffset }) => {
      const transaction = await producer.transaction();
      const sent = batch.messages.map(({ key, value, headers }) => ({ key, value: `${value} copied`, headers }));
      await transaction.send({ topic: copy, messages: sent });
      const next = `${Number(batch.lastOffset()) + 1}`;
      await transaction.sendOffsets({ consumer, topics: [{ topic: source, partitions: [{ partition: batch.partition, offset: next }] }] });
      if (!isFailed) {
        isFailed = true;
        failures += 1;
        await transaction.abort();
        throw new Error("on purpose");
      }
      await transaction.commit();
      resolveOffset(batch.lastOffset());
      for (const { value } of batch.messages) copied.add(value.toString());
      if (copied.size === 2 * count) finish();
    },
  });
  return { producer, consumer };
}));
await limited(all);
for (const { producer, consumer } of members) {
  await consumer.disconnect();
  await producer.disconnect();
}
say("failed on the way", failures > 0);

const seen = new Map();
const reader = kafka.consumer({ kafkaJS: { ...reading, groupId: "confluent-read" } });
await reader.connect();
await reader.subscribe({ topic: copy });
let read;
const enough = new Promise((resolve) => { read = resolve; });
await reader.run({
  eachMessage: async ({ message }) => {
    const value = message.value.toString();
    if (value.split(" ")[0] !== message.headers.kind.toString()) say("wrong header", value);
    seen.set(value, (seen.get(value) ?? 0) + 1);
    if (seen.size === 2 * count) read();
  },
});
await limited(enough);
await reader.disconnect();
const kinds = {};
for (const [value, times] of seen) {
  const kind = `${value.split(" ")[0]}, ${times} times`;
  kinds[kind] = (kinds[kind] ?? 0) + 1;
}
say("copied", Object.entries(kinds).sort());

const ends = await admin.fetchTopicOffsets(source);
for (const name of [group, "confluent-read"]) {
  const topic = name === group ? source : copy;
  const at = (await admin.fetchOffsets({ groupId: name, topics: [topic] }))[0].partitions;
  const of = topic === source ? ends : await admin.fetchTopicOffsets(topic);
  // The last of a partition is the marker of a transaction, which is no record.
  say(`${name} is at the end`, of.map(({ partition, offset }) => {
    const found = Number(at.find((each) => each.partition === partition).offset);
    return found === Number(offset) || found === Number(offset) - 1;
  }));
}
const { groups } = await admin.describeGroups([group]);
say("group", groups.map((each) => [each.groupId, each.state, each.members.length]));
say("deleted groups", (await admin.deleteGroups([group])).map((each) => each.errorCode ?? 0));
const deleted = await admin.deleteTopicRecords({ topic: copy, partitions: [{ partition: 0, offset: "10" }] });
say("deleted records", deleted.map((each) => each.lowWatermark));
await admin.deleteTopics({ topics: [source, copy] });
// The answer to a deletion comes before the lists of Apache Kafka show it.
let names;
for (const until = Date.now() + 30_000; names?.length !== 0 && Date.now() < until;) {
  names = (await admin.listTopics()).filter((name) => !name.startsWith("__"));
}
say("topics", names);
await admin.disconnect();
