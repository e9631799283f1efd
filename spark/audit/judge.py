"""Runs all checks over a history and decides what is an error, by the policy of ``kafka_shim.history.checker``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from kafka_shim.history import anomalies as names
from kafka_shim.history import checker, cycles
from kafka_shim.spark.audit import anomalies, circles, evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

CLASSES = (
    *(names.LOST_WRITE, names.UNSEEN, names.ABORTED_READ, names.PRECOMMITTED_READ, names.INCONSISTENT_OFFSETS),
    *(names.DUPLICATE, names.POLL_SKIP, names.INT_POLL_SKIP, names.NONMONOTONIC_POLL, names.INT_NONMONOTONIC_POLL),
    *(names.NONMONOTONIC_SEND, names.INT_NONMONOTONIC_SEND, names.INT_SEND_SKIP, cycles.G0, cycles.G1C),
)


@dataclass
class Found:
    """The results of one class: the number of errors and of tolerated anomalies, and a few examples."""

    errors: int = 0
    tolerated: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass
class Report:
    """`found` has every class, in the order of the table."""

    operations: int
    sent: int
    polled: int
    found: dict[str, Found]
    seconds: float
    memory_mb: float

    @property
    def errors(self) -> dict[str, int]:
        return {name: each.errors for name, each in self.found.items() if each.errors}

    @property
    def tolerated(self) -> dict[str, int]:
        return {name: each.tolerated for name, each in self.found.items() if each.tolerated}

    @property
    def is_clean(self) -> bool:
        return not self.errors

    def lines(self) -> Iterator[str]:
        """The table for a terminal."""
        yield f"{'class':24}{'errors':>10}{'tolerated':>12}  example"
        for name, each in self.found.items():
            example = each.examples[0] if each.examples else ""
            yield f"{name:24}{each.errors:>10,}{each.tolerated:>12,}  {example[:90]}"
        yield (
            f"{self.operations:,} operations, {self.sent:,} records sent, {self.polled:,} polled: "
            f"{sum(self.errors.values()):,} errors; {self.seconds:.1f} s, {self.memory_mb:,.0f} MB of the JVM at most"
        )


def judge(operations: DataFrame, data: DataFrame | None = None, *, with_writes: bool = False) -> Report:
    """Runs the audit. ``data`` are the records of the data topics, which the audit itself reads as a last
    read_committed reader. Raises `evidence.HistoryFaultError`.
    """
    from pyspark.sql import Window, functions

    began = time.monotonic()
    always = checker.ALWAYS_TOLERATED | ({cycles.G1C} if with_writes else set())
    found = {name: Found() for name in CLASSES}
    known = evidence.gather(operations, data)
    try:
        rows = anomalies.poll_order(known)
        queries = [
            anomalies.lost_and_unseen,
            anomalies.aborted_reads,
            anomalies.precommitted_reads,
            anomalies.send_order,
            *([anomalies.inconsistent_offsets] if known.disputed else []),
            *([anomalies.duplicates] if known.doubled else []),
        ]
        for query in queries:
            rows = rows.unionByName(query(known).withColumn("subscribed", functions.lit(False)))
        few = Window.partitionBy("class", "subscribed").orderBy("text")
        total = Window.partitionBy("class", "subscribed")
        counted = (
            rows.withColumn("place", functions.row_number().over(few))
            .withColumn("count", functions.count("*").over(total))
            .where(f"place <= {checker.SHOWN_PER_CLASS}")
            .groupBy("class", "subscribed", "count")
            .agg(functions.sort_array(functions.collect_list("text")).alias("examples"))
            .collect()
        )
        for row in counted:
            name = row["class"]
            is_tolerated = name in always or (row.subscribed and name in checker.TOLERATED_WHEN_SUBSCRIBED)
            _note(found[name], row["count"], list(row.examples), is_tolerated)
        for name, text in circles.find(known, with_writes=with_writes):
            _note(found[name], 1, [text], name in always)
        sent = known.sends.where("outcome != 'fail'").count()
        polled = known.polls.count()
        count = known.operations.count()
    finally:
        known.release()
    return Report(count, sent, polled, found, time.monotonic() - began, peak_memory_mb(operations.sparkSession))


def _note(found: Found, count: int, examples: list[str], is_tolerated: bool) -> None:
    if is_tolerated:
        found.tolerated += count
    else:
        found.errors += count
    room = checker.SHOWN_PER_CLASS - len(found.examples)
    found.examples += examples[:room]


def peak_memory_mb(session: SparkSession) -> float:
    """The largest resident memory of the driver's JVM so far."""
    gateway: Any = session.sparkContext._gateway
    status = Path(f"/proc/{gateway.proc.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
