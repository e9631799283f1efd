"""What Prometheus costs the broker: ``python -m bench.scrape``. CPU of the shim's process while its metrics are read
once a second, beside the same time without a reader.

Every partition is used, which is what a scrape costs by. ``--partitions`` and ``--topics`` say how many, ``--seconds``
how long a round is; rounds with and without a reader change places. The listener is read over HTTP, as Prometheus does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.request

from bench import machine
from bench.cost import cpu_s
from kafka_shim.cext.records import build
from kafka_shim.targets.requests import create_topics, make
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.wire_client import Connection, check

EVERY_S = 1.0
BUDGET = 0.01
"""Of one core."""


def fill(client: Connection, topics: int, partitions: int) -> None:
    """Makes the topics and writes a record into each partition."""
    names = [f"scraped-{number}" for number in range(topics)]
    each = partitions // topics
    create_topics(client, names, each)
    batch = bytes(build([(None, b"x" * 100, time.time_ns() // 1_000_000, [])]))
    for name in names:
        data = [{"index": index, "records": batch} for index in range(each)]
        topic_data = [{"name": name, "partition_data": data}]
        request = make("Produce", acks=1, timeout_ms=30_000, topic_data=topic_data)
        for topic in client.request(request, 9).responses:
            for one in topic.partition_responses:
                check(one.error_code, None, f"{name}-{one.index}")


def series(address: str) -> int:
    """Reads the metrics; how many series they are."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
        return sum(not line.startswith(b"#") for line in answer.read().splitlines())


def round_(target: ShimProcess, seconds: float, *, is_read: bool) -> float:
    """CPU of the broker in one round, as a part of a core."""
    before_s, began_s = cpu_s(target), time.monotonic()
    at_s = began_s
    while at_s < began_s + seconds:
        if is_read:
            series(target.http_address)
        at_s += EVERY_S
        time.sleep(max(at_s - time.monotonic(), 0))
    return (cpu_s(target) - before_s) / (time.monotonic() - began_s)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scrape", description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=15.0, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{json.dumps(machine.description())}, load {machine.load():.2f}")
    read: list[float] = []
    alone: list[float] = []
    with ShimProcess({"kafka.shim.http.listener": "127.0.0.1:0"}) as target:
        with Connection(target.bootstrap, timeout_s=120) as client:
            fill(client, options.topics, options.partitions)
        print(f"{options.partitions} partitions in {options.topics} topics: {series(target.http_address)} series")
        round_(target, options.seconds, is_read=True)  # what follows the filling
        for number in range(options.rounds):
            for is_read in (True, False) if number % 2 else (False, True):
                (read if is_read else alone).append(round_(target, options.seconds, is_read=is_read))
            print(
                f"round {number + 1}: {read[-1]:.2%} of a core, without a reader {alone[-1]:.2%}, "
                f"load {machine.load():.2f}"
            )
    # Of the rounds' differences: what else the broker does comes and goes.
    cost = statistics.median(one - other for one, other in zip(read, alone, strict=True))
    print(f"a scrape every second: {cost:.2%} of a core (budget {BUDGET:.0%})")
    return 0 if cost < BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
