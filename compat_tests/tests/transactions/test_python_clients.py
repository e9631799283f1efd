"""Transactional producers and read_committed readers of confluent-kafka, kafka-python and aiokafka."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import Callable
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from kafka_shim.targets import Target

# Closing a producer whose broker went away leaves sockets to the collector in the clients.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

READ_S = 60


class Confluent:
    """librdkafka."""

    name = "confluent-kafka"
    fenced = confluent_kafka.KafkaException

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self.producer.init_transactions(30)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: str) -> None:
        self.producer.produce(topic, value.encode(), partition=0)
        self.producer.flush(30)

    def offsets(self, group: str, topic: str, offset: int) -> None:
        reader = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
        try:
            positions = [confluent_kafka.TopicPartition(topic, 0, offset)]
            self.producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), 30)
        finally:
            reader.close()

    def commit(self) -> None:
        self.producer.commit_transaction(30)

    def abort(self) -> None:
        self.producer.abort_transaction(30)

    def close(self) -> None:
        self.producer.purge()


class KafkaPython:
    name = "kafka-python"
    fenced = kafka.errors.KafkaError

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: str) -> None:
        self.producer.send(topic, value.encode(), partition=0).get(30)

    def offsets(self, group: str, topic: str, offset: int) -> None:
        from kafka.structs import OffsetAndMetadata, TopicPartition

        self.producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}, group)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(0)


class AioKafka:
    name = "aiokafka"
    fenced = aiokafka.errors.KafkaError

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.loop = asyncio.new_event_loop()

        async def start() -> Any:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            await producer.start()
            return producer

        self.producer = self.loop.run_until_complete(start())

    def begin(self) -> None:
        self.loop.run_until_complete(self.producer.begin_transaction())

    def send(self, topic: str, value: str) -> None:
        self.loop.run_until_complete(self.producer.send_and_wait(topic, value.encode(), partition=0))

    def offsets(self, group: str, topic: str, offset: int) -> None:
        positions = {aiokafka.TopicPartition(topic, 0): offset}
        self.loop.run_until_complete(self.producer.send_offsets_to_transaction(positions, group))

    def commit(self) -> None:
        self.loop.run_until_complete(self.producer.commit_transaction())

    def abort(self) -> None:
        self.loop.run_until_complete(self.producer.abort_transaction())

    def close(self) -> None:
        self.loop.run_until_complete(self.producer.stop())
        self.loop.close()


PRODUCERS = [Confluent, KafkaPython, AioKafka]
Made = Callable[..., Any]


@pytest.fixture(params=PRODUCERS, ids=lambda producer: producer.name)
def make(request: pytest.FixtureRequest, target: Target) -> Any:
    """Makes producers of one client, initialised, and closes them."""
    made = []

    def producer(transactional_id: str, **options: Any) -> Any:
        made.append(request.param(target.bootstrap, transactional_id, **options))
        return made[-1]

    producer.fenced = request.param.fenced  # type: ignore[attr-defined]
    producer.client = request.param.name  # type: ignore[attr-defined]
    yield producer
    for each in made:
        try:
            each.close()
        except Exception as error:
            print(f"closing: {error}")
    made.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def read_confluent(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation, "log_level": 0}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[str] = []
    deadline = time.monotonic() + READ_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.3)
        if message is not None and message.error() is None:
            values.append(message.value().decode())
        elif len(values) >= count:
            break
    consumer.close()
    return values


def read_kafka_python(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    values: list[str] = []
    deadline = time.monotonic() + READ_S
    while time.monotonic() < deadline:
        records = consumer.poll(300).get(partition, [])
        values += [record.value.decode() for record in records]
        if not records and len(values) >= count:
            break
    consumer.close()
    return values


def read_aiokafka(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
    async def run() -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
        )
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        values: list[str] = []
        deadline = time.monotonic() + READ_S
        while time.monotonic() < deadline:
            records = (await consumer.getmany(timeout_ms=300)).get(partition, [])
            values += [record.value.decode() for record in records]
            if not records and len(values) >= count:
                break
        await consumer.stop()
        return values

    return asyncio.run(run())


READERS = {"confluent-kafka": read_confluent, "kafka-python": read_kafka_python, "aiokafka": read_aiokafka}


def test_commit_and_abort_as_every_reader_sees_them(
    target: Target, make: Made, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    topic, producer = new_topic(), make(new_name("p"))
    for value, outcome in (("a", "commit"), ("aborted", "abort"), ("b", "commit")):
        producer.begin()
        producer.send(topic, value)
        getattr(producer, outcome)()
    for read in READERS.values():
        assert read(target.bootstrap, topic, 2) == ["a", "b"]
        assert read(target.bootstrap, topic, 3, "read_uncommitted") == ["a", "aborted", "b"]


def test_a_second_instance_fences_the_first(
    target: Target, make: Made, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    topic, name = new_topic(), new_name("p")
    first = make(name)
    first.begin()
    first.send(topic, "lost")
    second = make(name)
    with pytest.raises(make.fenced):  # type: ignore[attr-defined]
        first.commit()
    second.begin()
    second.send(topic, "kept")
    second.commit()
    assert read_confluent(target.bootstrap, topic, 1) == ["kept"]


def test_offsets_follow_their_transaction(
    target: Target, make: Made, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    topic, group, producer = new_topic(), new_name("group"), make(new_name("p"))
    assert committed(target, group, topic) is None
    for offset, outcome in ((3, "commit"), (9, "abort"), (5, "commit")):
        producer.begin()
        producer.send(topic, f"at-{offset}")
        producer.offsets(group, topic, offset)
        getattr(producer, outcome)()
    assert committed(target, group, topic) == 5
    assert read_confluent(target.bootstrap, topic, 2) == ["at-3", "at-5"]


def committed(target: Target, group: str, topic: str) -> int | None:
    """What OffsetFetch with requireStable says."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": target.bootstrap, "group.id": group, "isolation.level": "read_committed", "log_level": 0}
    )
    (position,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 20)
    consumer.close()
    return None if position.offset < 0 else position.offset


def test_a_restart_of_the_broker_in_the_middle(
    target: Target, make: Made, new_topic: Callable[..., str], new_name: Callable[[str], str]
) -> None:
    topic, producer = new_topic(), make(new_name("p"))
    for kill in (False, True):
        producer.begin()
        producer.send(topic, f"before-{kill}")
        target.restart(kill=kill)
        producer.send(topic, f"after-{kill}")
        producer.commit()
    expected = ["before-False", "after-False", "before-True", "after-True"]
    assert read_confluent(target.bootstrap, topic, 4) == expected
