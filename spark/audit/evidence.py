"""The tables that every query of `anomalies` and `circles` starts from: what a history and its data topics prove.

They need few shuffles: one by (key, value) and one by key. Anomalies that are rare in a sound history (a value with two
offsets, an offset with two values) are counted first, so that joins for their details run only if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.spark.audit import history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Up to this many rows are broadcast to every task instead of shuffled.
BROADCAST_ROWS_AT_MOST = 100_000


class HistoryFaultError(Exception):
    """A value was sent twice to one key, so that its writes cannot be told apart."""


@dataclass
class Evidence:
    """All tables are kept on disk until `release`.

    - ``sends``, ``polls``, ``assigns``: as in `history`.
    - ``values``: of each (key, value) ``writer`` (the operation that sent it, or null), ``is_ok`` and ``is_failed`` of
      that operation, ``is_read`` (by a read_committed reader), ``first_offset`` and ``last_offset``
      it was seen at, or null.
    - ``seen``: (key, offset, value) that any operation reported, with ``writer``, ``is_failed`` and ``is_committed``.
    - ``places``: of each (key, offset) with something at it the ``value_count``, its ``rank`` among all these offsets
      of the key, and its ``committed_rank`` among those of committed values.
    - ``doubled`` and ``disputed``: how many values have two offsets, and how many offsets two values.
    """

    operations: DataFrame
    sends: DataFrame
    polls: DataFrame
    assigns: DataFrame
    values: DataFrame
    seen: DataFrame
    places: DataFrame
    doubled: int
    disputed: int
    kept: tuple[DataFrame, ...]

    def release(self) -> None:
        for frame in self.kept:
            frame.unpersist()


def gather(operations: DataFrame, data: DataFrame | None = None) -> Evidence:
    """Builds the evidence. ``data`` are the records of the data topics. Raises HistoryFaultError."""
    operations = _kept(operations)
    ops = history.exploded(operations)
    sends = _kept(history.sends(ops))
    polls = history.polls(ops)
    if data is not None:
        polls = polls.unionByName(history.auditor_polls(data))
    polls = _kept(polls)
    placements = sends.where("offset is not null and outcome != 'fail'").select("key", "offset", "value")
    placements = placements.unionByName(polls.select("key", "offset", "value"))
    values = _kept(_values(sends, polls))
    twice = values.where("sends > 1").head(1)
    if twice:
        raise HistoryFaultError(f"{twice[0].value!r} is sent to {twice[0].key} {twice[0].sends} times")
    doubled = values.where("first_offset != last_offset").count()
    seen = _seen(values, placements, doubled)
    places = _kept(_places(seen))
    disputed = places.where("value_count > 1").count()
    kept = (operations, sends, polls, values, places)
    return Evidence(operations, sends, polls, history.assigns(ops), values, seen, places, doubled, disputed, kept)


def small(frame: DataFrame, rows: int) -> DataFrame:
    """Marks a frame that is known to be small for a broadcast join, so that the other side is not moved."""
    from pyspark.sql import functions

    return functions.broadcast(frame) if rows <= BROADCAST_ROWS_AT_MOST else frame


def _kept(frame: DataFrame) -> DataFrame:
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.DISK_ONLY)


def _values(sends: DataFrame, polls: DataFrame) -> DataFrame:
    # Aggregate only numbers, so that Spark aggregates by hashing, not by sorting.
    sent = sends.selectExpr(
        *("key", "value", "if(outcome = 'fail', null, offset) as offset", "1 as sends", "index as writer"),
        *("outcome = 'ok' as is_ok", "outcome = 'fail' as is_failed", "false as is_read"),
    )
    read = polls.selectExpr(
        *("key", "value", "offset", "0 as sends", "cast(null as bigint) as writer"),
        *("false as is_ok", "false as is_failed", "committed_reads as is_read"),
    )
    grouped = sent.unionByName(read).groupBy("key", "value")
    return grouped.agg(
        *_aggregates("sum(sends) as sends", "max(writer) as writer", "max(is_ok) as is_ok"),
        *_aggregates("max(is_failed) as is_failed", "max(is_read) as is_read"),
        *_aggregates("min(offset) as first_offset", "max(offset) as last_offset"),
    )


def _seen(values: DataFrame, placements: DataFrame, doubled: int) -> DataFrame:
    facts = ("key", "value", "writer", "is_failed", "is_ok or is_read as is_committed")
    seen = values.where("first_offset = last_offset").selectExpr(*facts, "first_offset as offset")
    if doubled:
        several = small(values.where("first_offset != last_offset").selectExpr(*facts), doubled)
        seen = seen.unionByName(placements.distinct().join(several, ["key", "value"]))
    return seen


def _places(seen: DataFrame) -> DataFrame:
    from pyspark.sql import Window, functions

    in_order = Window.partitionBy("key").orderBy("offset")
    # Shuffled by key once; neither the grouping nor the window then shuffles again.
    grouped = seen.select("key", "offset", "is_committed").repartition("key").groupBy("key", "offset")
    return (
        grouped.agg(*_aggregates("count(*) as value_count", "max(cast(is_committed as int)) as is_committed"))
        .withColumn("rank", functions.row_number().over(in_order))
        .withColumn("committed_rank", functions.sum("is_committed").over(in_order))
        .drop("is_committed")
    )


def _aggregates(*texts: str) -> list[Column]:
    from pyspark.sql import functions

    return [functions.expr(text) for text in texts]
