"""Spark's own batch writer and reader: 200,000 rows out and back by every kind of offset."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from compat_tests import requests
from shim.wire_client import Connection

ROWS, PARTITIONS = 200_000, 4
SPLIT_MS = 1_700_000_000_000
TOPIC = "connector-rows"


def rows(session: SparkSession) -> DataFrame:
    """Numbered rows of about 100 bytes; the first half is a day older than the second."""
    time = f"timestamp_millis({SPLIT_MS} + IF(id < {ROWS // 2}, id - 86400000, id - {ROWS // 2}))"
    frame = session.range(0, ROWS, 1, 4)
    return frame.selectExpr(
        "CAST(id AS STRING) AS key", "lpad(CAST(id AS STRING), 90, '0') AS value", f"{time} AS timestamp"
    )


def read(session: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", TOPIC).options(**options).load()


def test_two_hundred_thousand_rows_come_back_by_every_kind_of_offset(session: SparkSession, shim: str) -> None:
    with Connection(shim) as client:
        requests.create_topic(client, TOPIC, PARTITIONS)
    rows(session).write.format("kafka").option("kafka.bootstrap.servers", shim).option("topic", TOPIC).save()

    everything = read(session, shim, startingOffsets="earliest", endingOffsets="latest")
    numbers = everything.selectExpr("CAST(CAST(key AS STRING) AS BIGINT) AS n", "CAST(value AS STRING) AS value")
    told = numbers.selectExpr("count(*)", "count(DISTINCT n)", "sum(n)", "min(value)", "max(value)").first()
    assert told is not None
    last = str(ROWS - 1).rjust(90, "0")
    assert tuple(told) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2, "0" * 90, last)

    assert read(session, shim, startingTimestamp=str(SPLIT_MS)).count() == ROWS // 2

    ends = {str(row[0]): row[1] + 1 for row in everything.groupBy("partition").max("offset").collect()}
    middle = {partition: end // 2 for partition, end in ends.items()}
    by_offset = json.dumps({TOPIC: middle})
    assert read(session, shim, startingOffsets=by_offset).count() == ROWS - sum(middle.values())
    first_half = read(session, shim, startingOffsets="earliest", endingOffsets=by_offset)
    assert first_half.count() == sum(middle.values())

    split = read(session, shim, minPartitions="16")
    assert split.rdd.getNumPartitions() >= 16
    assert split.count() == ROWS
