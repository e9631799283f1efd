"""The classes of anomaly of ``shim.history`` as queries: each gives one row an anomaly, with a text that shows it.

Values are compared as text. "Is anything between two offsets?" is a difference of ranks among the offsets that are
known to hold something, so that no query looks at pairs of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shim.history import anomalies as names
from spark.audit import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class HistoryFaultError(Exception):
    """A value was sent twice to one key: then nothing could be told apart."""


@dataclass
class Evidence:
    """``seen``: (key, offset, value) that anybody says was there. ``committed``: (key, value) that a read_committed
    reader got. ``ranks``: of each known offset of a key, its place among all and among those of committed values."""

    sends: DataFrame
    polls: DataFrame
    assigns: DataFrame
    seen: DataFrame
    committed: DataFrame
    ranks: DataFrame
    kept: tuple[DataFrame, ...]

    def release(self) -> None:
        for frame in self.kept:
            frame.unpersist()


def gather(operations: DataFrame, data: DataFrame | None = None) -> Evidence:
    """``data``: records of the data topics. Raises HistoryFaultError."""
    from pyspark import StorageLevel
    from pyspark.sql import Window, functions

    ops = history.exploded(operations)
    sends = history.sends(ops).persist(StorageLevel.DISK_ONLY)
    polls = history.polls(ops)
    if data is not None:
        polls = polls.unionByName(history.auditor_polls(data))
    polls = polls.persist(StorageLevel.DISK_ONLY)
    twice = sends.groupBy("key", "value").count().where("count > 1").head(1)
    if twice:
        raise HistoryFaultError(f"{twice[0].value!r} is sent to {twice[0].key} {twice[0]['count']} times")
    acknowledged = sends.where("offset is not null and outcome != 'fail'").select("key", "offset", "value")
    seen = acknowledged.unionByName(polls.select("key", "offset", "value")).distinct().persist(StorageLevel.DISK_ONLY)
    committed = polls.where("committed_reads").select("key", "value").distinct().persist(StorageLevel.DISK_ONLY)
    known = committed.unionByName(sends.where("outcome = 'ok'").select("key", "value")).distinct()
    in_order = Window.partitionBy("key").orderBy("offset")
    ranks = (
        seen.join(known.withColumn("is_committed", functions.lit(1)), ["key", "value"], "left")
        .groupBy("key", "offset")
        .agg(functions.coalesce(functions.max("is_committed"), functions.lit(0)).alias("is_committed"))
        .withColumn("rank", functions.row_number().over(in_order))
        .withColumn("committed_rank", functions.sum("is_committed").over(in_order))
        .drop("is_committed")
        .persist(StorageLevel.DISK_ONLY)
    )
    kept = (sends, polls, seen, committed, ranks)
    return Evidence(sends, polls, history.assigns(ops), seen, committed, ranks, kept)


def lost_and_unseen(evidence: Evidence) -> DataFrame:
    """Committed values that no read_committed reader got: lost when a later one of the key was read."""
    last = evidence.polls.where("committed_reads").groupBy("key").agg({"offset": "max"})
    first_seen = evidence.seen.groupBy("key", "value").agg({"offset": "min"})
    missing = evidence.sends.where("outcome = 'ok'").join(evidence.committed, ["key", "value"], "left_anti")
    return (
        missing.join(first_seen.withColumnRenamed("min(offset)", "at"), ["key", "value"], "left")
        .join(last.withColumnRenamed("max(offset)", "last"), "key", "left")
        .selectExpr(
            f"if(at < coalesce(last, -1), '{names.LOST_WRITE}', '{names.UNSEEN}') as class",
            "concat(value, ' of operation ', index, ' was never read from ', key, ifnull(concat(':', at), '')) as text",
        )
    )


def wrong_reads(evidence: Evidence) -> DataFrame:
    """Reads of what was aborted, and of an operation's own writes."""
    writers = evidence.sends.selectExpr("key", "value", "index as writer", "outcome as written")
    return (
        evidence.polls.where("committed_reads")
        .join(writers, ["key", "value"])
        .where("written = 'fail' or writer = index")
        .selectExpr(
            f"explode(filter(array(if(written = 'fail', '{names.ABORTED_READ}', null), "
            f"if(writer = index, '{names.PRECOMMITTED_READ}', null)), each -> each is not null)) as class",
            "concat('operation ', index, ' read ', value, ' of ', writer, ' at ', key, ':', offset) as text",
        )
    )


def inconsistent_offsets(evidence: Evidence) -> DataFrame:
    found = evidence.seen.groupBy("key", "offset").agg({"value": "collect_set"}).toDF("key", "offset", "found")
    return found.where("size(found) > 1").selectExpr(
        f"'{names.INCONSISTENT_OFFSETS}' as class",
        "concat(key, ':', offset, ' is ', concat_ws(' and ', sort_array(found))) as text",
    )


def duplicates(evidence: Evidence) -> DataFrame:
    found = evidence.seen.groupBy("key", "value").agg({"offset": "collect_set"}).toDF("key", "value", "found")
    return found.where("size(found) > 1").selectExpr(
        f"'{names.DUPLICATE}' as class",
        "concat(value, ' is at ', key, ' ', concat_ws(' and ', sort_array(found))) as text",
    )


def poll_order(evidence: Evidence) -> DataFrame:
    """Positions of a process in a key that go back, stand still or leave out what is there; with ``subscribed``."""
    from pyspark.sql import Window, functions

    columns = ("index", "process", "op_number", "record_number", "key", "offset", "committed_reads", "subscribed")
    moves = evidence.polls.where(f"process != {history.AUDITOR}").select(*columns)
    assigns = evidence.assigns.selectExpr(
        *(name for name in columns[:3]),
        "-1 as record_number",
        "key",
        "cast(null as bigint) as offset",
        "true as committed_reads",
        "false as subscribed",
    )
    order = ("index", "op_number", "record_number")
    so_far = Window.partitionBy("process", "key").orderBy(*order)
    here = Window.partitionBy("process", "key", "assigned").orderBy(*order)
    steps = (
        moves.unionByName(assigns)
        .withColumn("assigned", functions.count_if(functions.col("offset").isNull()).over(so_far))
        .where("offset is not null")
        .withColumn("before", functions.lag("offset").over(here))
        .withColumn("inner", functions.lag("index").over(here) == functions.col("index"))
        .where("before is not null")
    )
    text = "concat('operation ', index, ', process ', process, ': ', key, ':', offset, ' after ', before) as text"
    back = steps.where("offset <= before").selectExpr(
        f"if(inner, '{names.INT_NONMONOTONIC_POLL}', '{names.NONMONOTONIC_POLL}') as class", text, "subscribed"
    )
    skipped = _ranked(steps.where("offset > before + 1"), evidence).where(
        "if(committed_reads, committed_rank - before_committed_rank, rank - before_rank) > 1"
    )
    skips = skipped.selectExpr(f"if(inner, '{names.INT_POLL_SKIP}', '{names.POLL_SKIP}') as class", text, "subscribed")
    return back.unionByName(skips)


def send_order(evidence: Evidence) -> DataFrame:
    """Sends of a process to a key whose offsets go back, or inside one operation leave room for others'."""
    from pyspark.sql import Window, functions

    here = Window.partitionBy("process", "key").orderBy("index", "op_number")
    steps = (
        evidence.sends.where("offset is not null and outcome != 'fail'")
        .withColumn("before", functions.lag("offset").over(here))
        .withColumn("inner", functions.lag("index").over(here) == functions.col("index"))
        .where("before is not null")
    )
    text = "concat('operation ', index, ', process ', process, ': ', key, ':', offset, ' after ', before) as text"
    back = steps.where("offset <= before").selectExpr(
        f"if(inner, '{names.INT_NONMONOTONIC_SEND}', '{names.NONMONOTONIC_SEND}') as class", text
    )
    gaps = _ranked(steps.where("inner and offset > before + 1"), evidence).where("rank - before_rank > 1")
    return back.unionByName(gaps.selectExpr(f"'{names.INT_SEND_SKIP}' as class", text))


def _ranked(steps: DataFrame, evidence: Evidence) -> DataFrame:
    """With the ranks of ``offset`` and of ``before``. Both are among the known offsets: somebody was there."""
    before = evidence.ranks.toDF("key", "before", "before_rank", "before_committed_rank")
    return steps.join(evidence.ranks, ["key", "offset"]).join(before, ["key", "before"])
