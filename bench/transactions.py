"""Transactions of Java producers with `linger.ms=0`.

A race of Java's client 4.3.1 makes it lose a producer once in some 30,000 transactions when the broker is quick: it is
replaced, as an application would, and how often is a figure.
"""

from __future__ import annotations

from bench.cost import cpu_s
from bench.rounds import Case, Side
from kafka_shim.targets.java_transactions import JavaTransactions
from kafka_shim.targets.requests import create_topic
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import ExitStack

    from bench.rounds import Figures, Pace

TOPIC = "bench"
PARTITIONS = 20
# name, producers, partitions, records
WORK = (
    ("1 record", 1, 1, 1),
    ("1,000 records", 1, 1, 1000),
    ("20 records, 20 partitions", 1, 20, 20),
    ("1,000 records, 20 partitions", 1, 20, 1000),
    ("1 record, 16 producers", 16, 1, 1),
    ("20 records, 20 partitions, 16 producers", 16, 20, 20),
)
# Before anything is known of a broker's speed.
FIRST_TRANSACTIONS = 32


def prepare(stack: ExitStack, side: Side) -> None:
    """Makes the topic, and starts the Java producers, which end with `stack`."""
    with Connection(side.bootstrap) as client:
        create_topic(client, TOPIC, PARTITIONS)
    side.kept["java"] = stack.enter_context(JavaTransactions(side.bootstrap))


def _case(name: str, producers: int, partitions: int, records: int) -> Case:
    def work(side: Side, pace: Pace) -> Figures:
        """As many transactions as the speed of the last step makes of the seconds."""
        known = side.kept.get(name)
        count = max(int(known * pace.seconds), producers) if known else max(FIRST_TRANSACTIONS, producers)
        words = [str(number) for number in (producers, TOPIC, partitions, count, records)]
        before = cpu_s(side.target)
        rate, again = side.kept["java"].call("bench", f"bench-{producers}", *words, timeout_s=300)
        spent = cpu_s(side.target) - before
        side.kept[name] = float(rate)
        return {"per_s": float(rate), "cpu_ms": spent * 1000 / count, "done_again": float(again)}

    return Case(f"transactions: {name}", work, "per_s")


CASES = tuple(_case(*row) for row in WORK)
