"""Consumers that do not read what they asked for, and consumers that read slowly."""

from __future__ import annotations

import os
import socket
import statistics
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from kafka_shim.cext.records import build
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets import Target, make, requests
from kafka_shim.wire_client import Connection

READERS, PARTITIONS = 200, 100
BATCH_BYTES = 1_000_000
ANONYMOUS_LIMIT_MB = 150
WARM_UP, SLICES, REQUESTS = 1000, 20, 300
SLOW_BATCHES = 12


def fill(target: Target, partitions: int, batches: int) -> list[bytes]:
    """A topic "big"; the values of each partition in order, the same for all."""
    values = [os.urandom(BATCH_BYTES) for _ in range(batches)]
    with Connection(target.bootstrap, timeout_s=60) as client:
        requests.create_topic(client, "big", partitions, {"max.message.bytes": "2000000"})
        for number in range(partitions):
            for value in values:
                answer = client.request(requests.produce("big", number, build([(None, value, 1, ())])), 11)
                assert answer.responses[0].partition_responses[0].error_code == 0
    return values


def anonymous_mb(target: Target) -> float:
    """Memory that the process holds itself, without the page cache."""
    text = Path(f"/proc/{target.pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Anonymous:")).split()[1]) / 1024


class Latency:
    """One-record produces over one connection."""

    def __init__(self, target: Target, stack: ExitStack) -> None:
        self._client = stack.enter_context(Connection(target.bootstrap))
        requests.create_topic(self._client, "small", 1)
        self.taken_ms: list[float] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            request = requests.produce("small", 0, [(None, b"x" * 100)])
            began = time.perf_counter()
            answer = self._client.request(request, 11)
            self.taken_ms.append((time.perf_counter() - began) * 1000)
            assert answer.responses[0].partition_responses[0].error_code == 0

    def p99_ms(self) -> float:
        return statistics.quantiles(self.taken_ms[WARM_UP:], n=100)[98]


@pytest.mark.soak
def test_two_hundred_consumers_that_do_not_read() -> None:
    """Default sizes: 50 MB an answer, 1 MB of a partition. Two brokers are asked in turn: what else the machine does
    meets both."""
    with make("shim") as quiet, make("shim") as crowded, ExitStack() as stack:
        fill(crowded, PARTITIONS, 1)
        rows = [
            {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for number in range(PARTITIONS)
        ]
        message = requests.make(
            "Fetch", max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[{"topic": "big", "partitions": rows}]
        )
        frame = encode_request_frame(message, 12, 1, "never reads")
        for _ in range(READERS):
            sock = stack.enter_context(socket.create_connection((crowded.host, crowded.port)))
            sock.sendall(frame)
            # The answer has begun, so that the broker holds what it ever will for this one.
            assert sock.recv(1, socket.MSG_PEEK)
        beside = {target: Latency(target, stack) for target in (quiet, crowded)}
        for latency in beside.values():
            latency.send(WARM_UP)
        for _ in range(SLICES):
            for latency in beside.values():
                latency.send(REQUESTS)
        held_mb = anonymous_mb(crowded)
        alone_ms, p99_ms = (latency.p99_ms() for latency in beside.values())
    print(
        f"{READERS} consumers that do not read: {held_mb:.0f} MB; p99 {p99_ms:.2f} ms, without them {alone_ms:.2f} ms"
    )
    assert held_mb < ANONYMOUS_LIMIT_MB
    assert p99_ms < 2 * alone_ms


def test_stock_clients_with_small_receive_buffers_make_progress() -> None:
    with make("shim") as target:
        values = fill(target, 2, SLOW_BATCHES)
        slow = Consumer(
            {
                "bootstrap.servers": target.bootstrap,
                "group.id": "slow",
                "socket.receive.buffer.bytes": 4096,
                "queued.max.messages.kbytes": 1024,
                "fetch.max.bytes": 50 << 20,
            }
        )
        slow.assign([TopicPartition("big", number, 0) for number in range(2)])
        found: dict[int, list[bytes]] = {0: [], 1: []}
        while min(map(len, found.values())) < SLOW_BATCHES:
            polled = slow.poll(60)
            assert polled is not None and polled.error() is None
            found[polled.partition()].append(polled.value())
        slow.close()
        assert list(found.values()) == [values, values]

        with_python = KafkaConsumer(bootstrap_servers=target.bootstrap, receive_buffer_bytes=4096)
        with_python.assign([KafkaPythonPartition("big", 0)])
        with_python.seek_to_beginning()
        read = [record.value for _, record in zip(values, with_python, strict=False)]
        with_python.close()
        assert read == values
