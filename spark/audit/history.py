"""Histories on a topic: one operation of ``kafka_shim.history.operations`` as JSON per record, with its process as key.

An operation may have ``index``, its position in the whole history; else the position of its record is used. Operations
of one process must be in order on one partition.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pyspark.sql import DataFrame

    from kafka_shim.history.operations import Operation

SCHEMA = "process bigint, outcome string, isolation string, subscribed boolean, index bigint, ops array<array<string>>"
POLLED = "map<string, array<array<string>>>"
# The process of the audit's own polls of the data topics, which are not logged.
AUDITOR = -1


class HistoryLog:
    """Logs operations to a topic. One object per program, used by one thread. `close` waits until all are written."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._next_index = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 50, "enable.idempotence": True, "log_level": 2}
        )

    def add(self, operation: Operation) -> None:
        """Logs an operation. Its index is its position in the order of the calls."""
        operation.index = self._next_index
        self._next_index += 1
        line = json.dumps({**operation.to_json(), "index": operation.index}, separators=(",", ":"))
        while True:
            try:
                self._producer.produce(self._topic, line.encode(), str(operation.process).encode())
            except BufferError:
                self._producer.poll(0.1)
            else:
                break
        self._producer.poll(0)

    def close(self) -> None:
        if self._producer.flush(120):
            raise RuntimeError(f"the history did not reach the topic {self._topic}")


def parsed(records: DataFrame) -> DataFrame:
    """Parses operations from Kafka's columns. A record that is not an operation fails the job."""
    from pyspark.sql import functions

    value = functions.from_json(functions.col("value").cast("string"), SCHEMA, {"mode": "FAILFAST"})
    place = functions.col("offset") * 1_000 + functions.col("partition")
    return records.select(value.alias("operation"), place.alias("place")).select(
        functions.coalesce("operation.index", "place").alias("index"),
        "operation.process",
        "operation.outcome",
        (functions.coalesce("operation.isolation", functions.lit("read_committed")) == "read_committed").alias(
            "committed_reads"
        ),
        functions.coalesce("operation.subscribed", functions.lit(False)).alias("subscribed"),
        "operation.ops",
    )


def from_operations(session: Any, operations: Iterable[Operation]) -> DataFrame:
    """Returns the same columns for operations in memory."""
    rows = [
        (json.dumps({**operation.to_json(), "index": operation.index}), operation.index, 0) for operation in operations
    ]
    return parsed(session.createDataFrame(rows, "value string, offset bigint, partition int"))


def exploded(operations: DataFrame) -> DataFrame:
    """One row for each element of ``ops``: ``op_number`` and ``op``."""
    return operations.selectExpr("*", "posexplode(ops) as (op_number, op)").drop("ops")


def sends(ops: DataFrame) -> DataFrame:
    """index, process, op_number, outcome, key, offset (null when not known), value."""
    return ops.where("op[0] = 'send'").selectExpr(
        "index", "process", "op_number", "outcome", "op[1] as key", "cast(op[2] as bigint) as offset", "op[3] as value"
    )


def polls(ops: DataFrame) -> DataFrame:
    """One row for each record that was polled: index, process, op_number, record_number, outcome, committed_reads,
    subscribed, key, offset, value."""
    from pyspark.sql import functions

    common = ("index", "process", "op_number", "outcome", "committed_reads", "subscribed")
    by_key = ops.where("op[0] = 'poll'").select(
        *common, functions.explode(functions.from_json(functions.col("op")[1], POLLED)).alias("key", "records")
    )
    return by_key.select(*common, "key", functions.posexplode("records").alias("record_number", "record")).selectExpr(
        *common, "record_number", "key", "cast(record[0] as bigint) as offset", "record[1] as value"
    )


def assigns(ops: DataFrame) -> DataFrame:
    """index, process, op_number, key: from there on the process may poll the key from any position."""
    from pyspark.sql import functions

    return ops.where("op[0] = 'assign'").select(
        "index",
        "process",
        "op_number",
        functions.explode(functions.from_json(functions.col("op")[1], "array<string>")).alias("key"),
    )


def auditor_polls(records: DataFrame) -> DataFrame:
    """Data topics, read with read_committed by the audit itself, in the columns of `polls`. Tombstones have no value
    that a history could name."""
    return records.where("value is not null").selectExpr(
        f"cast({AUDITOR} as bigint) as index",
        f"cast({AUDITOR} as bigint) as process",
        "0 as op_number",
        "'ok' as outcome",
        "true as committed_reads",
        "false as subscribed",
        "0 as record_number",
        "concat(topic, '-', partition) as key",
        "offset",
        "cast(value as string) as value",
    )
