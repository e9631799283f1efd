"""Many connections and many partitions: nothing fails, and a small produce stays quick."""

from __future__ import annotations

import socket
import statistics
import time
from contextlib import ExitStack

import psutil
import pytest

from kafka_shim.targets import Target, make, requests
from kafka_shim.wire_client import Connection

IDLE, BUSY, FEW, PARTITIONS = 1000, 200, 10, 2000
# What a user would notice. The guard of the cost is a count: "small produce in a crowd" of bench.instructions.
MOST_MORE_MS = 5
# Two appends to each partition: the second opens its indexes.
WARM_UP, SLICES, REQUESTS = 4000, 20, 300


class Load:
    """One-record produces over `connections` connections in turn, at the same total rate for any number."""

    def __init__(self, target: Target, partitions: int, connections: int, stack: ExitStack) -> None:
        with Connection(target.bootstrap) as client:
            requests.create_topic(client, "load", partitions)
        self._clients = [stack.enter_context(Connection(target.bootstrap)) for _ in range(connections)]
        self._partitions = partitions
        self._sent = 0
        self.taken_ms: list[float] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            client = self._clients[self._sent % len(self._clients)]
            request = requests.produce("load", self._sent % self._partitions, [(None, b"x" * 100)])
            self._sent += 1
            began = time.perf_counter()
            answer = client.request(request, 11)
            self.taken_ms.append((time.perf_counter() - began) * 1000)
            assert answer.responses[0].partition_responses[0].error_code == 0

    def p99_ms(self) -> float:
        """Without what opened every partition once and warmed up."""
        return statistics.quantiles(self.taken_ms[WARM_UP:], n=100)[98]


def burst_ms(target: Target, connections: int) -> float:
    """Time until `connections` connections that all send at once have all been answered; the median of 20."""
    taken = []
    with ExitStack() as stack:
        clients = [stack.enter_context(Connection(target.bootstrap)) for _ in range(connections)]
        for _ in range(20):
            began = time.perf_counter()
            for number, client in enumerate(clients):
                client.send(requests.produce("load", number, [(None, b"y" * 100)]), 11)
            for client in clients:
                _, answer = client.receive(0, 11)
                assert answer.responses[0].partition_responses[0].error_code == 0
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


@pytest.mark.alone
def test_a_thousand_idle_and_two_hundred_busy_connections_and_two_thousand_partitions() -> None:
    """Two brokers, one with little and one with much, are asked in turn: what else the machine does meets both."""
    with make("shim") as little, make("shim") as much, ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection((much.host, much.port)))
        few = Load(little, FEW, FEW, stack)
        began = time.perf_counter()
        many = Load(much, PARTITIONS, BUSY, stack)
        made_s = time.perf_counter() - began
        for load in (few, many):
            load.send(WARM_UP)
        for _ in range(SLICES):
            for load in (few, many):
                load.send(REQUESTS)
        burst = burst_ms(much, BUSY)
        memory = psutil.Process(much.pid).memory_full_info().uss / 2**20
    print(
        f"p99 of a small produce: {few.p99_ms():.2f} ms with {FEW} connections and partitions, {many.p99_ms():.2f} ms "
        f"with {IDLE} idle and {BUSY} busy connections and {PARTITIONS} partitions (made in {made_s:.2f} s); "
        f"{BUSY} requests at once answered in {burst:.1f} ms; {memory:.0f} MB"
    )
    assert many.p99_ms() < few.p99_ms() + MOST_MORE_MS
