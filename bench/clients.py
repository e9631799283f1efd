"""Many clients in one process: each has one connection with one request under way, and waits for its answer.

``python -m bench.clients BOOTSTRAP TOPIC JSON`` prints one line of JSON; `Shape` says what the JSON may hold. With a
rate, requests fall due at equal distances whatever the broker does, and a latency begins when its request was due: a
broker that stops for a while pays for all requests of that while.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections import deque
from dataclasses import dataclass

from bench.load import INIT_PRODUCER_ID, Batches, Link, check, first_error, percentiles
from kafka_shim.targets.requests import make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BUFFER_BYTES = 64 << 10


@dataclass(frozen=True)
class Shape:
    """The clients, and the requests of each: one batch of `records` records of `record_bytes` to one of `partitions`
    partitions. `rate`: requests a second of all clients; 0 is as many as there can be."""

    clients: int = 1
    records: int = 1
    record_bytes: int = 100
    compression: str = "none"
    partitions: int = 1
    seconds: float = 1.0
    rate: float = 0.0


class Client:
    """One connection with its producer."""

    def __init__(self, bootstrap: str, topic: str, number: int, shape: Shape) -> None:
        self.link = Link(bootstrap, BUFFER_BYTES)
        producer = self.link.call(make("InitProducerId", transaction_timeout_ms=60_000), INIT_PRODUCER_ID)
        self._batches = Batches(
            topic,
            number % shape.partitions,
            shape.records,
            producer.producer_id,
            record_bytes=shape.record_bytes,
            codec=CODECS[shape.compression],
        )
        self.began = 0.0
        self.sends = 0

    def send(self, began: float | None = None) -> None:
        frame = self._batches.next()
        self.began = time.perf_counter() if began is None else began
        self.sends += 1
        self.link.socket.sendall(frame)

    def take(self) -> float:
        """Takes the answer. Returns the request's latency in microseconds."""
        check(first_error(self.link.frame()))
        return (time.perf_counter() - self.began) * 1e6


def closed(clients: list[Client], seconds: float) -> tuple[list[float], float]:
    """Each client sends its next request when it has its answer. Returns the latencies and the seconds."""
    by_socket = {client.link.socket.fileno(): client for client in clients}
    poll = select.epoll()
    for number in by_socket:
        poll.register(number, select.EPOLLIN)
    taken = []
    began = time.perf_counter()
    end = began + seconds
    for client in clients:
        client.send()
    waiting = len(clients)
    while waiting:
        for number, _ in poll.poll():
            client = by_socket[number]
            taken.append(client.take())
            if time.perf_counter() < end:
                client.send()
            else:
                waiting -= 1
    return taken, time.perf_counter() - began


def paced(clients: list[Client], seconds: float, rate: float) -> tuple[list[float], float]:
    """Requests fall due at equal distances. Returns the latencies since then and the seconds."""
    by_socket = {client.link.socket.fileno(): client for client in clients}
    idle = deque(clients)
    busy: set[int] = set()
    taken = []
    began = time.perf_counter()
    due, count = began, int(rate * seconds)
    sent = 0
    while len(taken) < count:
        while idle and sent < count and time.perf_counter() >= due:
            client = idle.popleft()
            busy.add(client.link.socket.fileno())
            client.send(due)
            sent += 1
            due = began + sent / rate
        # select, because epoll counts in milliseconds.
        wait_s = max(due - time.perf_counter(), 0) if idle and sent < count else None
        for number in select.select(busy, (), (), wait_s)[0]:
            client = by_socket[number]
            taken.append(client.take())
            busy.discard(number)
            idle.append(client)
    return taken, time.perf_counter() - began


def run(bootstrap: str, topic: str, shape: Shape) -> dict[str, Any]:
    """Figures, and under `taken_us` each latency."""
    clients = [Client(bootstrap, topic, number, shape) for number in range(shape.clients)]
    if shape.rate:
        taken, took_s = paced(clients, shape.seconds, shape.rate)
    else:
        taken, took_s = closed(clients, shape.seconds)
    requests = len(taken)
    sent_bytes = requests * shape.records * shape.record_bytes
    for client in clients:
        client.link.socket.close()
    figures = {"requests": requests, "seconds": took_s, "bytes": sent_bytes, "taken_us": taken}
    return {**percentiles(taken), **figures}


if __name__ == "__main__":
    found = run(sys.argv[1], sys.argv[2], Shape(**json.loads(sys.argv[3])))
    del found["taken_us"]
    print(json.dumps(found))
