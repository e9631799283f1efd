"""Many connections and many partitions: nothing fails, and a small produce stays quick."""

from __future__ import annotations

import socket
import statistics
import time
from contextlib import ExitStack

import psutil

from compat_tests import requests
from compat_tests.targets import Target, make
from shim.wire_client import Connection

IDLE, BUSY, PARTITIONS = 1000, 200, 2000
REQUESTS = 6000


def latencies_ms(target: Target, topic: str, partitions: int, connections: int) -> list[float]:
    """Times of one-record produces over `connections` connections in turn, at the same total rate for any number."""
    taken = []
    with ExitStack() as stack:
        clients = [stack.enter_context(Connection(target.bootstrap)) for _ in range(connections)]
        for number in range(REQUESTS):
            client = clients[number % connections]
            request = requests.produce(topic, number % partitions, [(None, b"x" * 100)])
            began = time.perf_counter()
            answer = client.request(request, 11)
            taken.append((time.perf_counter() - began) * 1000)
            assert answer.responses[0].partition_responses[0].error_code == 0
    return taken[REQUESTS // 3 :]  # the first third opens every partition once and warms up


def burst_ms(target: Target, topic: str, connections: int) -> float:
    """Time until `connections` connections that all send at once have all been answered; the median of 20."""
    taken = []
    with ExitStack() as stack:
        clients = [stack.enter_context(Connection(target.bootstrap)) for _ in range(connections)]
        for _ in range(20):
            began = time.perf_counter()
            for number, client in enumerate(clients):
                client.send(requests.produce(topic, number, [(None, b"y" * 100)]), 11)
            for client in clients:
                _, answer = client.receive(0, 11)
                assert answer.responses[0].partition_responses[0].error_code == 0
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def test_a_thousand_idle_and_two_hundred_busy_connections_and_two_thousand_partitions() -> None:
    with make("shim") as target, ExitStack() as stack:
        with Connection(target.bootstrap) as client:
            requests.create_topic(client, "few", 10)
        few = latencies_ms(target, "few", 10, 10)
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection((target.host, target.port)))
        with Connection(target.bootstrap) as client:
            began = time.perf_counter()
            requests.create_topic(client, "many", PARTITIONS)
            created_s = time.perf_counter() - began
        many = latencies_ms(target, "many", PARTITIONS, BUSY)
        burst = burst_ms(target, "many", BUSY)
        memory = psutil.Process(target.pid).memory_full_info().uss / 2**20
    p99_few, p99_many = (statistics.quantiles(values, n=100)[98] for values in (few, many))
    print(
        f"p99 of a small produce: {p99_few:.2f} ms with 10 connections and partitions, {p99_many:.2f} ms with "
        f"{IDLE} idle and {BUSY} busy connections and {PARTITIONS} partitions (made in {created_s:.2f} s); "
        f"{BUSY} requests at once answered in {burst:.1f} ms; {memory:.0f} MB"
    )
    assert p99_many < 3 * p99_few
