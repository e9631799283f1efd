"""MirrorMaker 2 from one broker to another: records, topic configs, and the positions of groups, translated."""

from __future__ import annotations

import subprocess

from confluent_kafka import Consumer, TopicPartition

from kafka_shim.compat.ecosystem import packages, plain
from kafka_shim.compat.ecosystem.base import Lab, Part, PartError, wait_for
from kafka_shim.compat.ecosystem.connect import ARTIFACTS, JVM
from kafka_shim.targets.kafka_jars import KAFKA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS, EACH = 3, 400
TOPIC, MIRRORED, GROUP = "orders", "a.orders", "readers"
SETTINGS = """\
clusters = a, b
a.bootstrap.servers = {a}
b.bootstrap.servers = {b}
a->b.enabled = true
a->b.topics = orders
a->b.groups = readers
b->a.enabled = false
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
sync.topic.acls.enabled = false
refresh.topics.interval.seconds = 1
refresh.groups.interval.seconds = 1
sync.topic.configs.interval.seconds = 1
emit.heartbeats.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
offset.lag.max = 0
b.exactly.once.source.support = enabled
"""


class MirrorMaker(Part):
    name = "mirror-maker"
    title = "MirrorMaker 2"
    what = "a topic, its configs and a group's positions from one broker to another, exactly once; also shim to Kafka"
    version = KAFKA_VERSION

    _libs: Path

    def prepare(self) -> None:
        self._libs = packages.jars("connect", ARTIFACTS)

    def run(self, lab: Lab) -> list[str]:
        a, b = lab.bootstrap, lab.other().bootstrap
        plain.create(a, TOPIC, PARTITIONS, {"retention.bytes": "123456789"})
        plain.fill(a, TOPIC, ((number % PARTITIONS, b"%d" % number) for number in range(PARTITIONS * EACH)))
        path, log = lab.scratch / "mirror.properties", lab.scratch / "mirror.log"
        path.write_text(SETTINGS.format(a=a, b=b))
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["java", *JVM, "-cp", f"{self._libs}/*", main, str(path)], stdout=output, stderr=subprocess.STDOUT
            )
            try:
                wait_for("the topic on the other broker", lambda: _is_running(process, log) and _has(b, MIRRORED), log)
                wait_for("its records", lambda: len(plain.read(b, MIRRORED)) == PARTITIONS * EACH, log)
                # It translates a position only by what was mirrored since its task for groups runs.
                committed = EACH

                def is_translated() -> bool:
                    nonlocal committed
                    committed += 1
                    plain.fill(a, TOPIC, ((number, b"more %d" % committed) for number in range(PARTITIONS)))
                    _commit(a, committed)
                    return len(_positions(b)) == PARTITIONS

                wait_for("the group's positions", is_translated, log)
                total = PARTITIONS * committed
                wait_for("the last records", lambda: len(plain.read(b, MIRRORED)) == total, log)
                return self._findings(a, b, committed)
            finally:
                process.terminate()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    @staticmethod
    def _findings(a: str, b: str, each: int) -> list[str]:
        pairs = [
            sorted((one.partition(), one.offset() or 0, one.value()) for one in plain.read(server, topic))
            for server, topic in ((a, TOPIC), (b, MIRRORED))
        ]
        # With transactions the markers on the other broker take offsets.
        values = [[(partition, value) for partition, _, value in found] for found in pairs]
        at = _positions(b)
        behind = {
            number: sum(partition == number and offset < at[number] for partition, offset, _ in pairs[1])
            for number in range(PARTITIONS)
        }
        topics = sorted(name for name in plain.admin(b).list_topics(timeout=30).topics if not name.startswith("__"))
        config = plain.config(b, MIRRORED, "retention.bytes")
        return [
            f"the records are the same by partition and in order: {values[0] == values[1]}",
            f"positions on the other broker: {sorted(at)}",
            # It translates to a position that it knows, at or before the right one: nothing is skipped.
            f"nothing is skipped: {all(count <= each for count in behind.values())}",
            f"what was read is not read from its beginning: {all(count >= EACH for count in behind.values())}",
            f"retention.bytes: {config}",
            f"topics: {topics}",
        ]


def _is_running(process: subprocess.Popen[bytes], log: Path) -> bool:
    if process.poll() is not None:
        raise PartError(f"MirrorMaker ended: {log.read_text(errors='replace')[-2000:]}")
    return True


def _has(bootstrap: str, topic: str) -> bool:
    return topic in plain.admin(bootstrap).list_topics(timeout=30).topics


def _commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({**plain.QUIET, "bootstrap.servers": bootstrap, "group.id": GROUP})
    parts = [TopicPartition(TOPIC, number, offset) for number in range(PARTITIONS)]
    consumer.commit(offsets=parts, asynchronous=False)
    consumer.close()


def _positions(bootstrap: str) -> dict[int, int]:
    consumer = Consumer({**plain.QUIET, "bootstrap.servers": bootstrap, "group.id": GROUP})
    asked = [TopicPartition(MIRRORED, number) for number in range(PARTITIONS)]
    found = {part.partition: part.offset for part in consumer.committed(asked, timeout=30) if part.offset >= 0}
    consumer.close()
    return found


PARTS: dict[str, Part] = {"mirror-maker": MirrorMaker()}
