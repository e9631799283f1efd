"""The anomaly classes of ``kafka_shim.history`` as queries. Each returns one row per anomaly, with a text that
describes it.

Values are compared as text. "Is anything between two offsets?" is computed as a difference of ranks among the offsets
that are known to hold a value, so that no query has to join pairs of records.
"""

from __future__ import annotations

from kafka_shim.history import anomalies as names
from kafka_shim.spark.audit import history
from kafka_shim.spark.audit.evidence import small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_shim.spark.audit.evidence import Evidence


def lost_and_unseen(evidence: Evidence) -> DataFrame:
    """Committed values that no read_committed reader got; lost if a later value of the key was read."""
    last = evidence.polls.where("committed_reads").groupBy("key").agg({"offset": "max"}).toDF("key", "last_read")
    missing = evidence.values.where("is_ok and not is_read").join(last, "key", "left")
    return missing.selectExpr(
        f"if(first_offset < coalesce(last_read, -1), '{names.LOST_WRITE}', '{names.UNSEEN}') as class",
        "concat(value, ' of operation ', writer, ' was never read from ', key, ifnull(concat(':', first_offset), ''))"
        " as text",
    )


def aborted_reads(evidence: Evidence) -> DataFrame:
    """A read_committed reader got a value of an operation that failed (G1a)."""
    wrong = evidence.values.where("is_failed and is_read").select("key", "value", "writer")
    return (
        evidence.polls.where("committed_reads")
        .join(small(wrong, wrong.count()), ["key", "value"])
        .selectExpr(f"'{names.ABORTED_READ}' as class", READ_TEXT)
    )


def precommitted_reads(evidence: Evidence) -> DataFrame:
    """Read_committed operations that read their own writes. Most operations only send or only poll."""
    both = evidence.operations.where(
        "committed_reads and exists(ops, op -> op[0] = 'send') and exists(ops, op -> op[0] = 'poll')"
    ).select("index")
    polls = evidence.polls.join(small(both, both.count()), "index")
    own = evidence.sends.selectExpr("index", "key", "value", "index as writer")
    return polls.join(own, ["index", "key", "value"]).selectExpr(f"'{names.PRECOMMITTED_READ}' as class", READ_TEXT)


READ_TEXT = "concat('operation ', index, ' read ', value, ' of ', writer, ' at ', key, ':', offset) as text"


def inconsistent_offsets(evidence: Evidence) -> DataFrame:
    """Offsets with more than one value."""
    places = small(evidence.places.where("value_count > 1").select("key", "offset"), evidence.disputed)
    found = evidence.seen.join(places, ["key", "offset"]).groupBy("key", "offset").agg({"value": "collect_set"})
    return found.toDF("key", "offset", "found").selectExpr(
        f"'{names.INCONSISTENT_OFFSETS}' as class",
        "concat(key, ':', offset, ' is ', concat_ws(' and ', sort_array(found))) as text",
    )


def duplicates(evidence: Evidence) -> DataFrame:
    """Values with more than one offset."""
    values = small(evidence.values.where("first_offset != last_offset").select("key", "value"), evidence.doubled)
    found = evidence.seen.join(values, ["key", "value"]).groupBy("key", "value").agg({"offset": "collect_set"})
    return found.toDF("key", "value", "found").selectExpr(
        f"'{names.DUPLICATE}' as class",
        "concat(value, ' is at ', key, ' ', concat_ws(' and ', sort_array(found))) as text",
    )


def poll_order(evidence: Evidence) -> DataFrame:
    """Polls of a process that go backwards in a key, repeat an offset or skip values; with the column
    ``subscribed``.
    """
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
    if evidence.assigns.head(1):
        moves = (
            moves.unionByName(assigns)
            .withColumn("assigned", functions.count_if(functions.col("offset").isNull()).over(so_far))
            .where("offset is not null")
        )
    else:
        here, moves = so_far, moves.withColumn("assigned", functions.lit(0))
    steps = (
        moves.withColumn("before", functions.lag("offset").over(here))
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
    """Sends of a process to a key whose offsets go backwards, or have other values between them within
    one operation.
    """
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
    """Adds the ranks of ``offset`` and of ``before``. Both are known offsets, because an operation reported them."""
    ranks = evidence.places.select("key", "offset", "rank", "committed_rank")
    before = ranks.toDF("key", "before", "before_rank", "before_committed_rank")
    return steps.join(ranks, ["key", "offset"]).join(before, ["key", "before"])
