"""What grows with use: ``python -m bench.scale`` prints memory after long traffic, the price of an idle partition,
latency beside many partitions, and the CRC. Budgets are absolute here, so only the shim runs.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass

from bench.client_process import anonymous_mb, load, make_topic
from bench.micro_cext import measure
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.targets import make
from kafka_shim.targets.requests import make as request
from kafka_shim.wire_client import Connection

SOAK_TOPICS, SOAK_TOPIC_BYTES = 4, 1_000_000_000
FEW, MANY, TOPIC_PARTITIONS = 10, 10_000, 500
SINGLES = 3000
CRC_BYTES = 64 << 10


@dataclass(frozen=True)
class Figure:
    """`value` against its `limit`, a minimum with `at_least`, else a maximum."""

    title: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def is_inside(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def soak() -> Figure:
    """Anonymous memory after 4 GB were written and read."""
    with make("shim") as target:
        for number in range(SOAK_TOPICS):
            topic = f"soak-{number}"
            with Connection(target.bootstrap) as client:
                make_topic(client, topic, 4)
            wrote = load("produce", target, topic, SOAK_TOPIC_BYTES)
            load("consume", target, topic, int(wrote["bytes"]))
        return Figure("anonymous memory after 4 GB written and read [MB]", anonymous_mb(target), 80)


def many_partitions(rounds: int) -> list[Figure]:
    """Two brokers, one with few and one with many partitions, asked in turn."""
    with make("shim") as few, make("shim") as many:
        with Connection(few.bootstrap) as client:
            make_topic(client, "few", FEW)
        with Connection(many.bootstrap, timeout_s=120) as client:
            make_topic(client, "first", FEW)
            before_mb = anonymous_mb(many)
            for number in range(MANY // TOPIC_PARTITIONS):
                name = {"name": f"many-{number}", "num_partitions": TOPIC_PARTITIONS, "replication_factor": 1}
                client.request(request("CreateTopics", topics=[name], timeout_ms=60_000), 7)
        each_kb = (anonymous_mb(many) - before_mb) * 1024 / MANY
        ratios: list[float] = []
        for number in range(rounds + 1):
            beside_few = load("latency", few, "few", SINGLES)["p50_us"]
            beside_many = load("latency", many, "first", SINGLES)["p50_us"]
            if number:  # the first only warms up
                ratios.append(beside_many / beside_few)
    return [
        Figure(f"an idle partition, of {MANY:,} [KB]", each_kb, 6),
        Figure(f"p50 of one record beside {MANY:,} partitions and {FEW} [ratio]", statistics.median(ratios), 1.2),
    ]


def crc() -> Figure:
    """Against the PyPI package `crc32c` on 64 KiB."""
    from crc32c import crc32c as other

    data = bytes(range(256)) * (CRC_BYTES // 256)
    ratios = [measure(lambda: other(data)) / measure(lambda: crc32c(data)) for _ in range(3)]
    return Figure("CRC-32C of 64 KiB, speed beside the PyPI package [ratio]", statistics.median(ratios), 1, True)


def run(rounds: int) -> list[Figure]:
    return [soak(), *many_partitions(rounds), crc()]


def table(figures: list[Figure]) -> str:
    lines = [f"| {'at size':64} | {'shim':>10} | {'budget':>9} | {'':8} |"]
    lines.append(f"| {'-' * 64} | {'-' * 9}: | {'-' * 8}: | {'-' * 8} |")
    for each in figures:
        budget = f"{'>=' if each.at_least else '<='} {each.limit:g}"
        where = "inside" if each.is_inside else "OUTSIDE"
        lines.append(f"| {each.title:64} | {each.value:>10.3g} | {budget:>9} | {where:8} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    print(table(run(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
