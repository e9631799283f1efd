// One application of node-rdkafka: a topic copied exactly once, in transactions with the consumer's offsets, some of
// which are aborted.
import { promisify } from "node:util";
import kafka from "node-rdkafka";

const [source, copy, count, step] = ["rdkafka-in", "rdkafka-out", 300, 50];
const common = { "bootstrap.servers": process.argv[2], "client.id": "app" };
const say = (name, value) => console.log(`${name}: ${JSON.stringify(value)}`);
const call = (object, method, ...words) => promisify(object[method].bind(object))(...words);
const TIMEOUT_MS = 30_000;

const admin = kafka.AdminClient.create(common);
const tried = (done) => done.then(() => "done", (error) => error.code);
const topics = [source, copy].map((topic) => ({ topic, num_partitions: 2, replication_factor: 1 }));
for (const topic of topics) say("created", await tried(call(admin, "createTopic", topic)));
say("again", await tried(call(admin, "createTopic", topics[0])));
say("more partitions", await tried(call(admin, "createPartitions", copy, 3)));

async function producing(settings) {
  const producer = new kafka.Producer({ ...common, dr_cb: true, ...settings });
  producer.failed = 0;
  producer.on("delivery-report", (error) => { if (error) producer.failed += 1; });
  await call(producer, "connect", {});
  producer.setPollInterval(20);
  if (settings["transactional.id"]) await call(producer, "initTransactions", TIMEOUT_MS);
  return producer;
}

async function consuming(settings, topic) {
  const consumer = new kafka.KafkaConsumer({ ...common, "enable.auto.commit": false, ...settings }, { "auto.offset.reset": "earliest" });
  await call(consumer, "connect", {});
  consumer.setDefaultConsumeTimeout(200);
  if (topic) consumer.subscribe([topic]);
  return consumer;
}

const fill = (producer, kind) => {
  for (let number = 0; number < count; number += 1) producer.produce(source, null, Buffer.from(`${kind} ${number}`), `${number}`, null, null, [{ kind }]);
};

const plain = await producing({ "enable.idempotence": true, "compression.codec": "lz4" });
fill(plain, "plain");
await call(plain, "flush", TIMEOUT_MS);
say("not delivered", plain.failed);
await call(plain, "disconnect");
const filling = await producing({ "transactional.id": "rdkafka-fill" });
for (const kind of ["aborted", "committed"]) {
  await call(filling, "beginTransaction");
  fill(filling, kind);
  await call(filling, kind === "aborted" ? "abortTransaction" : "commitTransaction", TIMEOUT_MS);
}
await call(filling, "disconnect");

// A consumer that starts over after each transaction that did not commit, from the offsets that did.
const producer = await producing({ "transactional.id": "rdkafka-copy" });
let [transactions, aborted, copied] = [0, 0, 0];
while (copied < 2 * count) {
  const consumer = await consuming({ "group.id": "rdkafka-copy" }, source);
  for (let isGood = true; isGood && copied < 2 * count;) {
    const records = await call(consumer, "consume", step);
    if (!records.length) continue;
    await call(producer, "beginTransaction");
    const next = new Map();
    for (const { key, value, headers, partition, offset } of records) {
      producer.produce(copy, null, Buffer.from(`${value} copied`), key, null, null, headers);
      next.set(partition, offset + 1);
    }
    // What is not sent yet is not in the log of an aborted transaction.
    await call(producer, "flush", TIMEOUT_MS);
    const offsets = [...next].map(([partition, offset]) => ({ topic: source, partition, offset }));
    await call(producer, "sendOffsetsToTransaction", offsets, consumer, TIMEOUT_MS);
    transactions += 1;
    isGood = transactions % 4 !== 2;
    await call(producer, isGood ? "commitTransaction" : "abortTransaction", TIMEOUT_MS);
    if (isGood) copied += records.length;
    else aborted += 1;
  }
  await call(consumer, "disconnect");
}
await call(producer, "disconnect");
say("aborted on the way", aborted > 0);

for (const level of ["read_committed", "read_uncommitted"]) {
  const seen = new Map();
  let number = 0;
  const atEnd = new Set();
  const settings = { "group.id": `rdkafka-${level}`, "isolation.level": level, "enable.partition.eof": true };
  const reader = await consuming(settings, copy);
  reader.on("partition.eof", ({ partition }) => { atEnd.add(partition); });
  while (atEnd.size < 3) {
    for (const { value, headers } of await call(reader, "consume", step)) {
      number += 1;
      const [kind] = `${value}`.split(" ");
      if (`${headers[0].kind}` !== kind) say("wrong header", `${value}`);
      seen.set(`${value}`, (seen.get(`${value}`) ?? 0) + 1);
    }
  }
  if (level === "read_committed") say("copied, and how often each", [seen.size, [...new Set(seen.values())]]);
  else say("the aborted attempts are in the log", number > seen.size);
  await call(reader, "disconnect");
}
for (const topic of [source, copy]) say("deleted", await tried(call(admin, "deleteTopic", topic)));
admin.disconnect();
