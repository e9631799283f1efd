"""A data source that writes nothing: it compares what its tasks know of their batch with what the driver is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafka_shim.spark.sink.data_source import BATCH_ID_PROPERTY, QUERY_ID_PROPERTY


@dataclass
class Told(WriterCommitMessage):
    batch_id: str
    query_id: str


class BatchIdProbe(DataSource):
    """Option ``path``: a file that gets a line for each batch, ``batch id as the driver knows it, tasks, query id``."""

    @classmethod
    def name(cls) -> str:
        return "batch_id_probe"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return ProbeWriter(str(self.options["path"]))


class ProbeWriter(DataSourceStreamWriter):
    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        context = TaskContext.get()
        assert context is not None
        return Told(
            str(context.getLocalProperty(BATCH_ID_PROPERTY)),
            str(context.getLocalProperty(QUERY_ID_PROPERTY)),
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        told = [message for message in messages if isinstance(message, Told)]
        assert [message.batch_id for message in told] == [str(batchId)] * len(messages), (batchId, told)
        (query_id,) = {message.query_id for message in told}
        with Path(self.path).open("a") as file:
            file.write(f"{batchId} {len(messages)} {query_id}\n")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass
