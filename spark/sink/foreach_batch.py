"""The sink as a ``foreachBatch`` function: the driver knows the batch id and the number of tasks, so it can check more
than the data source can.

    write = exactly_once("127.0.0.1:9092", topic="out")
    rows.writeStream.foreachBatch(write).option("checkpointLocation", ...).start()
"""

from __future__ import annotations

from kafka_shim.spark.sink import progress
from kafka_shim.spark.sink.task_writer import NEEDS_VALUE, SinkOptions, TaskAddress, fence, write_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

QUERY_ID_PROPERTY = "sql.streaming.queryId"
COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")


def exactly_once(
    bootstrap_servers: str,
    *,
    topic: str | None = None,
    query_id: str | None = None,
    client: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that writes columns ``key``, ``value``, ``headers``, ``topic``, ``partition``,
    ``timestamp`` exactly once. ``topic`` is that of all rows, whatever their column says; without it each names its
    own.

    ``query_id`` defaults to the streaming query's own id, which its checkpoint keeps. Give one only together with a
    checkpoint that is as long-lived: batch ids begin at 0 again with a new checkpoint, and rows of batches already
    written would be taken for repeats. So would those of a second query: the function refuses to write for it. Without
    ``query_id`` several queries may share the function. Of functions that write the batches of one query to several
    topics all but one need one. A function that has written keeps what it has: under another id it writes its last
    batch again.

    Raises SinkError in a session of Spark Connect.
    """
    refuse_connect()
    options = SinkOptions(bootstrap_servers, topic, tuple(sorted((client or {}).items())))
    next_batches: dict[str, int] = {}
    owner: str | None = None

    def write(batch: DataFrame, batch_id: int) -> None:
        nonlocal owner
        stream = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
        if query_id and stream:
            owner = owner or stream
            if stream != owner:
                raise progress.SinkError(
                    f"another query writes with query_id={query_id!r}: the rows of one would be taken for repeats of "
                    f"the other; give each its own function, with an id of its own or none"
                )
        name = query_id or stream or ""
        # Not the batch after the previous one, or one that failed: the query was restarted, and tasks of the earlier
        # run may still be alive.
        fence_first = next_batches.pop(name, None) != batch_id
        write_batch(batch, batch_id, options, query_id=name, fence_first=fence_first)
        next_batches[name] = batch_id + 1

    return write


def write_batch(
    batch: DataFrame, batch_id: int, options: SinkOptions, *, query_id: str | None = None, fence_first: bool = True
) -> int:
    """Writes one micro-batch. Returns the number of rows written now, without those of tasks that had committed before.

    ``fence_first`` ends open transactions of all tasks of an earlier run before it reads the progress of the batch. A
    batch whose number of tasks has changed is then refused before its first row, even if zombie tasks are alive.
    """
    refuse_connect()
    from pyspark import StorageLevel

    session = batch.sparkSession
    refuse_speculation(session)
    if "value" not in batch.columns:
        raise progress.SinkError(NEEDS_VALUE)
    name = query_id or session.sparkContext.getLocalProperty(QUERY_ID_PROPERTY)
    if not name:
        raise progress.SinkError("no streaming query id here: call this from foreachBatch, or give query_id")
    # When what feeds a task fails, Spark only closes the Python worker's input, which looks like its end: a task would
    # commit the rows so far and the retry would be taken for a repeat. So the rows are counted first, by tasks whose
    # failures count, and kept; a task that gets another number does not commit.
    is_kept = batch.storageLevel != StorageLevel.NONE
    kept = batch if is_kept else batch.persist()
    try:
        return _write_counted(kept, batch_id, options, name, fence_first=fence_first)
    finally:
        # What the caller keeps is the caller's, who may write it elsewhere, too.
        if not is_kept:
            kept.unpersist()


def _write_counted(batch: DataFrame, batch_id: int, options: SinkOptions, name: str, *, fence_first: bool) -> int:
    rdd = batch.rdd
    tasks = rdd.getNumPartitions()
    shares = shares_of(batch, tasks)
    settings = options.settings
    progress.ensure_progress_topic(settings, name, max(tasks, 1))
    ever = range(progress.task_count_ever(settings, name))
    if fence_first:
        fence(options, name, ever)
    done = progress.read_progress(settings, name, ever, stable=True)
    progress.check_task_count(done, batch_id, tasks)
    progress.check_topic(done, batch_id, options.topic)
    numbers = progress.assign(shares, done, batch_id)

    def write_one(partition: int, rows: Iterable[Any]) -> Iterator[int]:
        address = TaskAddress(name, batch_id, numbers[partition], tasks)
        yield write_task(rows, address, options, share=shares[partition]).rows

    return int(rdd.mapPartitionsWithIndex(write_one).sum())


def shares_of(batch: DataFrame, tasks: int) -> list[progress.Share]:
    """Returns the number of rows and their sum for each of Spark's partitions."""
    from pyspark.sql import functions

    # As a decimal: a sum of 64-bit hashes overflows.
    row_hash = functions.xxhash64(*[functions.col(name) for name in COLUMNS if name in batch.columns]).cast(
        "decimal(20)"
    )
    partition = functions.spark_partition_id().alias("task")
    found = batch.groupBy(partition).agg(functions.count("*").alias("rows"), functions.sum(row_hash).alias("sum"))
    shares = {row["task"]: progress.Share(int(row["rows"]), f"{int(row['sum']):x}") for row in found.collect()}
    return [shares.get(task, progress.Share(0, "0")) for task in range(tasks)]


def refuse_connect() -> None:
    """Refuses Spark Connect, which has no RDDs: their partitions are what this form counts and numbers."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise progress.SinkError("Spark Connect has no RDDs for this form: use the data source kafka_exactly_once")


def refuse_speculation(session: SparkSession) -> None:
    """Refuses Spark's speculation, because it runs two attempts of a task at the same time, which would fence each
    other.
    """
    from pyspark.sql.utils import is_remote

    # The engine reads it at start. The session's copy may have been set later, without effect; it is all that Spark
    # Connect shows.
    conf = session.conf if is_remote() else session.sparkContext.getConf()
    # Spark takes " True", too.
    if str(conf.get("spark.speculation", "false")).strip().lower() == "true":
        raise progress.SinkError(
            "spark.speculation is on: two attempts of a task would fence each other; set it to false"
        )
