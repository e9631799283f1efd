"""Many clients in one process: each has one connection with one request under way, and waits for its answer.

``python -m bench.clients BOOTSTRAP TOPIC JSON`` prints one line of JSON; `Shape` says what the JSON may hold. With a
rate, requests fall due at equal distances whatever the broker does, and a latency begins when its request was due: a
broker that stops for a while pays for all requests of that while.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from bench import wire_load
from bench.load import Batches, Link, idempotent_producer, percentiles
from bench.wire_load import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BUFFER_BYTES = 64 << 10
# Of an answer to Produce 8 before and behind the topic's name, up to the error code: length, correlation id, number of
# topics, the name's length; number of partitions, index.
BEFORE_NAME_BYTES, AFTER_NAME_BYTES = 4 + 4 + 4 + 2, 4 + 4


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


def works(bootstrap: str, topic: str, shape: Shape) -> list[Work]:
    """What each client sends. Each is a producer of its own."""
    made = []
    link = Link(bootstrap, BUFFER_BYTES)
    for number in range(shape.clients):
        batches = Batches(
            topic,
            number % shape.partitions,
            shape.records,
            idempotent_producer(link),
            record_bytes=shape.record_bytes,
            codec=CODECS[shape.compression],
        )
        made.append(
            Work(bytes(batches.frame), batches.at, shape.records, BEFORE_NAME_BYTES + len(topic) + AFTER_NAME_BYTES)
        )
    link.socket.close()
    return made


def run(bootstrap: str, topic: str, shape: Shape) -> dict[str, Any]:
    """Figures, and under `taken_us` each latency."""
    taken, took_s = wire_load.run(bootstrap, works(bootstrap, topic, shape), shape.seconds, shape.rate)
    requests = len(taken)
    sent_bytes = requests * shape.records * shape.record_bytes
    figures = {"requests": requests, "seconds": took_s, "bytes": sent_bytes, "taken_us": taken}
    return {**percentiles(taken), **figures}


if __name__ == "__main__":
    found = run(sys.argv[1], sys.argv[2], Shape(**json.loads(sys.argv[3])))
    del found["taken_us"]
    print(json.dumps(found))
