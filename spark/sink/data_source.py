"""The sink as a Python data source: ``df.writeStream.format("kafka_exactly_once")``.

    spark.dataSource.register(KafkaExactlyOnce)
    rows.writeStream.format("kafka_exactly_once").option("kafka.bootstrap.servers", "127.0.0.1:9092")
        .option("topic", "out").option("tasks", "4").option("checkpointLocation", ...).start()

Spark does not tell a Python stream writer its batch id, but every task carries it as a local property
(``streaming.sql.batchId``) beside the query's id; a Spark that stops setting them is refused, not guessed. The number
of tasks is not among them, so the option ``tasks`` states it: a task whose number does not fit and a batch that had
another count stop the query. Change it only while no worker of a killed run is alive: a task fences itself and those
above its number, not its siblings. Speculation is refused by the tasks, before they write.

Repartition by a column directly before the sink: started again, Spark may deal out Kafka's partitions to the tasks in
another order, and only rows that are dealt out by what is in them come to the same task. A task that has committed
other rows of a batch than it has now stops the query (RowsChangedError) before it loses or doubles any. When an
operator in the sink's own stage fails, Spark closes the worker's input, which looks like its end, and the task could
commit too few rows; the foreachBatch form counts rows first, knows them again in any order, and is safe.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from kafka_shim.spark.sink import progress
from kafka_shim.spark.sink.task_writer import NEEDS_VALUE, SinkOptions, TaskAddress, fence, write_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql import Row
    from pyspark.sql.types import StructType

BATCH_ID_PROPERTY = "streaming.sql.batchId"
QUERY_ID_PROPERTY = "sql.streaming.queryId"
CLIENT_PREFIX = "kafka."


@dataclass
class TaskCommitted(WriterCommitMessage):
    """What a task reports to the driver: its number, the number of rows it wrote now, and the number of tasks that it
    assumed for the batch.
    """

    task: int
    rows: int
    skipped: bool
    tasks: int


class KafkaExactlyOnce(DataSource):
    """Options: ``kafka.bootstrap.servers``, ``topic`` (of all rows, unless each names its own), ``tasks``, and any
    librdkafka option behind ``kafka.``."""

    @classmethod
    def name(cls) -> str:
        return "kafka_exactly_once"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if "value" not in schema.fieldNames():
            raise progress.SinkError(NEEDS_VALUE)
        return ExactlyOnceWriter(dict(self.options))


class ExactlyOnceWriter(DataSourceStreamWriter):
    def __init__(self, options: dict[str, str]) -> None:
        # Spark passes option names in lower case.
        given = {name.lower(): value for name, value in options.items()}
        client = {
            name.removeprefix(CLIENT_PREFIX): value
            for name, value in given.items()
            if name.startswith(CLIENT_PREFIX) and name != "kafka.bootstrap.servers"
        }
        try:
            bootstrap_servers = given["kafka.bootstrap.servers"]
            self.tasks = int(given["tasks"])
        except KeyError as missing:
            raise progress.SinkError(f"the sink needs the option {missing}") from None
        if self.tasks < 1:
            raise progress.SinkError("tasks is at least 1")
        self.options = SinkOptions(bootstrap_servers, given.get("topic"), tuple(sorted(client.items())))

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        address = self._address()
        outcome = write_task(iterator, address, self.options)
        return TaskCommitted(outcome.task, outcome.rows, outcome.skipped, address.tasks)

    def _address(self) -> TaskAddress:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        if context is None:
            raise progress.SinkError("the sink writes from Spark tasks only")
        batch_id = context.getLocalProperty(BATCH_ID_PROPERTY)
        query_id = context.getLocalProperty(QUERY_ID_PROPERTY)
        if batch_id is None or query_id is None:
            raise progress.SinkError(
                f"this Spark does not tell tasks {BATCH_ID_PROPERTY} and {QUERY_ID_PROPERTY}; use foreachBatch"
            )
        if str(context.getLocalProperty("spark.speculation")).strip().lower() == "true":
            raise progress.SinkError(
                "spark.speculation is on: two attempts of a task would fence each other; set it to false"
            )
        task = context.partitionId()
        if task >= self.tasks:
            raise progress.SinkError(f"this batch has more tasks than tasks={self.tasks} says (task {task} runs)")
        settings = self.options.settings
        progress.ensure_progress_topic(settings, query_id, self.tasks)
        # The option was larger before: tasks of that time may still be alive.
        fence(self.options, query_id, range(self.tasks, progress.task_count_ever(settings, query_id)))
        return TaskAddress(query_id, int(batch_id), task, self.tasks)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Fails the query when the batch had another number of tasks than the option says: a re-run could then not be
        recognised."""
        if len(messages) != self.tasks:
            raise progress.TaskCountChangedError(
                f"batch {batchId} ran with {len(messages)} tasks and the option says tasks={self.tasks}: "
                f"repartition the rows to that number"
            )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: tasks that committed are recognised when the batch is run again, the others left an aborted
        transaction."""
