"""A first look through real clients; the whole matrix of clients is in compat_tests."""

from __future__ import annotations

import asyncio
import itertools

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafka_shim.embedded import Broker

VALUES = [b"", b"a", bytes(100_000), None]


@pytest.fixture(params=["thread", "process"])
def either(request):
    """Clients in C may hold the interpreter, so that a broker in a thread starves: both are tried."""
    with Broker(num_partitions=1, process=request.param == "process") as running:
        yield running


def test_kafka_python_reads_what_it_wrote(either):
    producer = kafka.KafkaProducer(bootstrap_servers=either.bootstrap_servers, acks="all", linger_ms=5)
    futures = [producer.send("t", key=b"k", value=value) for value in VALUES]
    assert [future.get(20).offset for future in futures] == [0, 1, 2, 3]
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=either.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    consumer.assign([kafka.TopicPartition("t", 0)])
    assert [record.value for record in itertools.islice(consumer, len(VALUES))] == VALUES
    consumer.close()


def test_confluent_kafka_reads_what_it_wrote(either):
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": either.bootstrap_servers, "enable.idempotence": True, "compression.type": "lz4"}
    )
    for value in VALUES:
        producer.produce("t", key=b"k", value=value)
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": either.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found = []
    while len(found) < len(VALUES):
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None, message.error()
        found.append(message.value())
    assert [value or b"" for value in found] == [value or b"" for value in VALUES]
    consumer.close()


def test_aiokafka_reads_what_it_wrote(either):
    async def round_trip() -> list[bytes | None]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=either.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        for value in VALUES:
            await producer.send_and_wait("t", value, key=b"k")
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=either.bootstrap_servers, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition("t", 0)])
        found = [await asyncio.wait_for(consumer.getone(), 20) for _ in VALUES]
        await consumer.stop()
        return [record.value for record in found]

    assert asyncio.run(round_trip()) == VALUES
