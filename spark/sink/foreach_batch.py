"""The sink as a ``foreachBatch`` function: the driver knows the batch id and the number of tasks, so it can check more
than the data source can.

    write = exactly_once("127.0.0.1:9092", topic="out")
    rows.writeStream.foreachBatch(write).option("checkpointLocation", ...).start()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark.sink import progress
from spark.sink.task_writer import SinkOptions, TaskAddress, fence, write_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

QUERY_ID_PROPERTY = "sql.streaming.queryId"


def exactly_once(
    bootstrap_servers: str,
    *,
    topic: str | None = None,
    query_id: str | None = None,
    client: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes columns ``key``, ``value``, ``headers``, ``topic``, ``partition``,
    ``timestamp`` exactly once.

    ``query_id`` defaults to the streaming query's own id, which its checkpoint keeps. Give one only together with a
    checkpoint that is as long-lived: batch ids begin at 0 again with a new checkpoint, and rows of batches already
    written would be taken for repeats.
    """
    options = SinkOptions(bootstrap_servers, topic, tuple(sorted((client or {}).items())))
    expected_batch_id: int | None = None

    def write(batch: DataFrame, batch_id: int) -> None:
        nonlocal expected_batch_id
        # Not the batch after the last: the query was started again, and tasks of the run before may still be alive.
        write_batch(batch, batch_id, options, query_id=query_id, fence_first=batch_id != expected_batch_id)
        expected_batch_id = batch_id + 1

    return write


def write_batch(
    batch: DataFrame, batch_id: int, options: SinkOptions, *, query_id: str | None = None, fence_first: bool = True
) -> int:
    """Writes one micro-batch; returns the number of rows written now, without those of tasks that had committed before.

    ``fence_first`` ends what any task of an earlier run still has open before it looks how far the batch came, so that
    a batch whose number of tasks has changed is refused before its first row, whatever zombies do.
    """
    session = batch.sparkSession
    refuse_speculation(session)
    name = query_id or session.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
    if not name:
        raise progress.SinkError("no streaming query id here: call this from foreachBatch, or give query_id")
    # When what feeds a task fails, Spark only closes the Python worker's input, which looks like its end: a task would
    # commit the rows so far and the retry would be taken for a repeat. So the rows are counted first, by tasks whose
    # failures count, and kept; a task that gets another number does not commit.
    kept = batch.persist()
    try:
        return _write_counted(kept, batch_id, options, name, fence_first=fence_first)
    finally:
        kept.unpersist()


def _write_counted(batch: DataFrame, batch_id: int, options: SinkOptions, name: str, *, fence_first: bool) -> int:
    from pyspark.sql import functions

    counted = batch.groupBy(functions.spark_partition_id().alias("task")).count().collect()
    expected = {row["task"]: row["count"] for row in counted}
    rdd = batch.rdd
    tasks = rdd.getNumPartitions()
    settings = options.settings
    progress.ensure_progress_topic(settings, name, max(tasks, 1))
    ever = range(progress.task_count_ever(settings, name))
    if fence_first:
        fence(options, name, ever)
    progress.check_task_count(progress.read_progress(settings, name, ever, stable=True), batch_id, tasks)

    def write_one(task: int, rows: Iterable[Any]) -> Iterator[int]:
        address = TaskAddress(name, batch_id, task, tasks)
        yield write_task(rows, address, options, expected_rows=expected.get(task, 0)).rows

    return int(rdd.mapPartitionsWithIndex(write_one).sum())


def refuse_speculation(session: SparkSession) -> None:
    """Two live attempts of one task would fence each other for ever; Spark's speculation makes exactly that."""
    # The engine reads it when it starts; the session's copy may have been set later and mean nothing.
    if session.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise progress.SinkError(
            "spark.speculation is on: two attempts of a task would fence each other; set it to false"
        )
