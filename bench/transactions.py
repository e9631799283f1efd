"""Commits per second of Java producers, the shim beside Apache Kafka: ``python -m bench.transactions``.

Both run with default flush settings on disk, in turn, on the same machine; each kind of work is done once to warm up
and then `--rounds` times, and its figure is the median. The budget holds for one producer, one record, one partition.
A race of Java's client 4.3.1 makes it lose a producer once in some 30,000 transactions when the broker is quick: it is
made anew, as an application would, and that is counted and told.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from contextlib import ExitStack

from bench.cost import cpu_s
from bench.machine import awake
from kafka_shim.targets import make
from kafka_shim.targets.java_transactions import JavaTransactions
from kafka_shim.targets.requests import create_topic
from kafka_shim.wire_client import Connection

TOPIC = "bench"
PARTITIONS = 20
BUDGET = 15
KINDS = ("shim", "kafka-native")
# name, producers, partitions, records, transactions on the shim, on Kafka
WORK = (
    ("1 record", 1, 1, 1, 3000, 300),
    ("1,000 records", 1, 1, 1000, 200, 100),
    ("20 records, 20 partitions", 1, 20, 20, 600, 100),
    ("1,000 records, 20 partitions", 1, 20, 1000, 200, 60),
    ("1 record, 16 producers", 16, 1, 1, 4000, 800),
    ("20 records, 20 partitions, 16 producers", 16, 20, 20, 1600, 320),
)


def run(rounds: int, kinds: tuple[str, ...]) -> dict[tuple[str, str], tuple[float, float]]:
    """(work, kind) -> (commits per second, broker CPU in ms per commit), medians."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        sides = []
        for kind in kinds:
            target = stack.enter_context(make(kind, is_measured=True))
            with Connection(target.bootstrap) as client:
                create_topic(client, TOPIC, PARTITIONS)
            sides.append((kind, target, stack.enter_context(JavaTransactions(target.bootstrap))))
        for round_number in range(rounds + 1):
            for name, producers, partitions, records, on_shim, on_kafka in WORK:
                for kind, target, java in sides:
                    count = on_shim if kind == "shim" else on_kafka
                    words = [str(number) for number in (producers, TOPIC, partitions, count, records)]
                    before = cpu_s(target)
                    rate, again = java.call("bench", f"bench-{producers}", *words, timeout_s=300)
                    if int(again):
                        print(f"{kind}: {again} of {count} transactions done again ({name})", file=sys.stderr)
                    cost_ms = (cpu_s(target) - before) * 1000 / count
                    if round_number:
                        found.setdefault((name, kind), []).append((float(rate), cost_ms))
    return {
        key: (statistics.median(rate for rate, _ in samples), statistics.median(cost for _, cost in samples))
        for key, samples in found.items()
    }


def table(found: dict[tuple[str, str], tuple[float, float]], kinds: tuple[str, ...]) -> str:
    """What `run` answered, for people; with both kinds the ratios and the budget."""
    lines = [
        "| Transactions of a Java producer | "
        + " | ".join(f"{kind}: commits/s, ms CPU" for kind in kinds)
        + " | ratio |",
        "| --- |" + " --- |" * (len(kinds) + 1),
    ]
    for name, *_ in WORK:
        cells = [f"{found[name, kind][0]:,.0f}, {found[name, kind][1]:.2f}" for kind in kinds]
        ratio = f"{found[name, kinds[0]][0] / found[name, kinds[-1]][0]:.1f}" if len(kinds) > 1 else ""
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio} |")
    if len(kinds) > 1:
        factor = found["1 record", "shim"][0] / found["1 record", "kafka-native"][0]
        kept = "kept" if factor >= BUDGET else "missed"
        lines.append(f"budget: at least {BUDGET} times Kafka at 1 record: {kept}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only-shim", action="store_true")
    given = parser.parse_args()
    kinds = ("shim",) if given.only_shim else KINDS
    with awake():
        print(table(run(given.rounds, kinds), kinds))


if __name__ == "__main__":
    main()
