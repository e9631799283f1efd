"""kill -9 at random moments under load of idempotent producers: every acknowledged record is there once, in order."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_shim.targets import make

TOPIC = "killed"
PARTITIONS = 3


class Writer(threading.Thread):
    """Sends numbered records, partition by partition in turn, until told to stop; keeps what was acknowledged."""

    def __init__(self, number: int, bootstrap: str, acknowledged: threading.Condition) -> None:
        super().__init__(name=f"writer-{number}")
        self.number = number
        self.acknowledged = acknowledged
        self.offsets: dict[tuple[int, int], int] = {}  # (partition, record number) -> offset
        self.failures: list[KafkaError] = []
        self.sent = 0
        self.ends = False
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "linger.ms": 1,
                "queue.buffering.max.messages": 5000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        while not self.ends:
            partition = self.sent % PARTITIONS
            try:
                value = f"{self.number}:{self.sent}".encode()
                self.producer.produce(TOPIC, value, partition=partition, on_delivery=self.delivered)
                self.sent += 1
            except BufferError:
                self.producer.poll(0.05)
            self.producer.poll(0)
        self.producer.flush(120)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        with self.acknowledged:
            if error is None:
                value = message.value() or b""
                self.offsets[message.partition() or 0, int(value.partition(b":")[2])] = message.offset() or 0
            else:
                self.failures.append(error)
            self.acknowledged.notify()


def read_all(bootstrap: str) -> dict[int, list[tuple[int, bytes]]]:
    """(offset, value) of every record, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for record in consumer.consume(10_000, 1):
            error = record.error()
            if error is None:
                found[record.partition() or 0].append((record.offset() or 0, record.value() or b""))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(record.partition() or 0)
    consumer.close()
    return found


def wait_for_more(count: int, writers: list[Writer], acknowledged: threading.Condition) -> bool:
    """Waits until `count` more records are acknowledged; False after a minute."""
    with acknowledged:
        goal = sum(len(writer.offsets) for writer in writers) + count
        return acknowledged.wait_for(lambda: sum(len(writer.offsets) for writer in writers) >= goal, 60)


def kill_loop(kills: int, seed: int) -> str:
    """Runs the loop and returns its figures. Fails by assertion."""
    chance = random.Random(seed)
    acknowledged = threading.Condition()
    with make("shim", settings={"log.segment.bytes": "2000000"}) as target:
        admin = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        writers = [Writer(number, target.bootstrap, acknowledged) for number in range(2)]
        for writer in writers:
            writer.start()
        for _ in range(kills):
            arrived = wait_for_more(chance.randrange(1, 4000), writers, acknowledged)
            assert arrived, f"no progress; the broker's log ends:\n{target.log()[-2000:]}"
            target.restart(kill=True)
        for writer in writers:
            writer.ends = True
        for writer in writers:
            writer.join(150)
            assert not writer.failures
            assert len(writer.offsets) == writer.sent, "flush ended before every record was answered"
        found = read_all(target.bootstrap)
    for writer in writers:
        for partition in range(PARTITIONS):
            prefix = f"{writer.number}:".encode()
            mine = [
                (offset, int(value[len(prefix) :])) for offset, value in found[partition] if value.startswith(prefix)
            ]
            expected = list(range(partition, writer.sent, PARTITIONS))
            assert [number for _, number in mine] == expected, (
                f"{writer.name}, partition {partition}: lost, twice or out of order"
            )
            assert all(writer.offsets[partition, number] == offset for offset, number in mine), (
                "an answer had a wrong offset"
            )
    total = sum(writer.sent for writer in writers)
    return f"{kills} kills (seed {seed}): {total} acknowledged records, each there once, in order, at its offset"


def test_twenty_kills_lose_and_repeat_nothing() -> None:
    print(kill_loop(20, seed=1))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_kills_lose_and_repeat_nothing() -> None:
    print(kill_loop(200, seed=2))
