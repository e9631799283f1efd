"""Spark's three ways to read, each over all shapes in one query: a batch, AvailableNow, and a continuously running
query.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from kafka_shim.spark import kafka_topic, triggers
from kafka_shim.spark.kafka_topic import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

    from kafka_shim.spark.gaps.shapes import Shape

# Small, so that a micro-batch may cover nothing but a gap.
PER_TRIGGER = 120
TIMEOUT_S = 240.0

# Topic -> values and how often each was read.
Found = dict[str, Counter[str]]


def source(shapes: Sequence[Shape], isolation: str, per_trigger: int | None = None) -> Source:
    # A partition's new consumer must find the new partitions soon.
    client = {"metadata.max.age.ms": "500"}
    return Source(
        shapes[0].target.bootstrap,
        ",".join(shape.topic for shape in shapes),
        isolation=isolation,
        max_offsets_per_trigger=per_trigger,
        client=client,
    )


def batch(session: SparkSession, shapes: Sequence[Shape], isolation: str = kafka_topic.READ_COMMITTED) -> Found:
    return _add({}, kafka_topic.read(session, source(shapes, isolation)))


def stream(session: SparkSession, shapes: Sequence[Shape], checkpoint: Path, found: Found, **trigger: Any) -> Found:
    """Adds to ``found`` what a query with this checkpoint reads until no data are left. Raises RuntimeError if it gets
    stuck.
    """
    frame = kafka_topic.stream(session, source(shapes, kafka_topic.READ_COMMITTED, PER_TRIGGER))

    def collect(rows: DataFrame, _batch_id: int) -> None:
        _add(found, rows)

    query = (
        frame.writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(checkpoint))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )
    if trigger:
        query.processAllAvailable()
        query.stop()
        return found
    summary = triggers.follow(query, quiet=True, timeout_s=TIMEOUT_S)
    if summary.seconds > TIMEOUT_S:
        raise RuntimeError(f"the query was stuck after {summary.line()}")
    return found


def _add(found: Found, rows: DataFrame) -> Found:
    for row in rows.select("topic", "value").collect():
        found.setdefault(row.topic, Counter())[bytes(row.value).decode()] += 1
    return found


def differences(shapes: Sequence[Shape], found: Found, *, committed: bool = True) -> dict[str, str]:
    """Returns, by shape, the surplus and missing values of a reader; empty if there are none."""
    wrong: dict[str, str] = {}
    for shape in shapes:
        wanted = Counter(shape.committed if committed else shape.written)
        got = found.get(shape.topic, Counter())
        if wanted != got:
            wrong[shape.name] = f"{sum((wanted - got).values())} missing, {sum((got - wanted).values())} too many"
    return wrong


def streamed_differences(shapes: Sequence[Shape], found: Found) -> dict[str, str]:
    """Returns the same for a stream that started before compaction continued. It may have read values that are gone
    now, each once.
    """
    wrong = differences([shape for shape in shapes if shape.config is None], found)
    for shape in shapes:
        if shape.config is not None:
            got = found.get(shape.topic, Counter())
            missing = set(shape.committed) - set(got)
            doubled = [value for value, times in got.items() if times > 1]
            if missing or doubled:
                wrong[shape.name] = f"{len(missing)} missing, {len(doubled)} doubled"
    return wrong


def empty() -> Found:
    return defaultdict(Counter)
