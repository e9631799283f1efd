"""A first look through real clients; the whole matrix of clients is in compat_tests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time

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
    assert [future.get(60).offset for future in futures] == [0, 1, 2, 3]
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=either.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=60_000
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
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": either.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found = []
    while len(found) < len(VALUES):
        message = consumer.poll(60)
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
        found = [await asyncio.wait_for(consumer.getone(), 60) for _ in VALUES]
        await consumer.stop()
        return [record.value for record in found]

    assert asyncio.run(round_trip()) == VALUES


@pytest.mark.alone
def test_a_week_costs_nobody_a_connection_or_a_membership():
    """A virtual week once closed 150 connections of these three clients, and the consumer was no member any more."""
    with Broker(clock="virtual") as broker, contextlib.ExitStack() as clients:
        first = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        clients.callback(first.close)
        second = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        consumer = kafka.KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        )
        clients.callback(consumer.close)

        def pass_through(value: bytes) -> None:
            first.send("t", value).get(60)
            second.produce("t", value)
            assert second.flush(60) == 0
            wanted = 2
            while wanted:
                wanted -= sum(len(records) for records in consumer.poll(200).values())
            consumer.commit()

        def counts() -> tuple[int, int, int, str]:
            group = broker.state.groups.find("g")
            members = ",".join(sorted(group.members))
            metrics = broker.state.metrics
            return metrics.connections_closed, metrics.connections_refused, group.generation_id, members

        pass_through(b"before")
        before = broker.call(counts)
        started_ms, cpu_ns = broker.clock.now_ms(), broker.call(time.thread_time_ns)
        broker.clock.advance("7d")
        cpu_ns = broker.call(time.thread_time_ns) - cpu_ns
        assert broker.clock.now_ms() - started_ms == 7 * 86_400_000
        assert broker.call(counts) == before
        pass_through(b"after")
        assert broker.call(counts) == before
        # The same week with clients that say nothing: the member's session ends, idle connections are closed.
        broker.clock.advance("7d", silent=True)
        assert broker.call(counts)[0] > before[0]
    # Of the broker's thread; two to three times what the same week costs where nobody is connected. Seconds would tell
    # of the machine.
    with Broker(clock="virtual") as idle:
        idle_ns = idle.call(time.thread_time_ns)
        idle.clock.advance("7d")
        idle_ns = idle.call(time.thread_time_ns) - idle_ns
    assert cpu_ns < 6 * idle_ns
