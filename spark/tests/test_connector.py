"""Spark's own batch writer and reader: 200,000 rows out and back by every kind of offset."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection

ROWS, PARTITIONS = 200_000, 4
TOPIC = "connector-rows"


def write(session: SparkSession, bootstrap: str, first: int, end: int) -> None:
    """Rows of about 100 bytes, numbered from `first` to below `end`."""
    frame = session.range(first, end, 1, 4)
    rows = frame.selectExpr("CAST(id AS STRING) AS key", "lpad(CAST(id AS STRING), 90, '0') AS value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", TOPIC).save()


def read(session: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", TOPIC).options(**options).load()


def test_two_hundred_thousand_rows_come_back_by_every_kind_of_offset(session: SparkSession, shim: str) -> None:
    with Connection(shim) as client:
        requests.create_topic(client, TOPIC, PARTITIONS)
    write(session, shim, 0, ROWS // 2)
    last_ms = read(session, shim).selectExpr("max(unix_millis(timestamp))").first()
    assert last_ms is not None
    write(session, shim, ROWS // 2, ROWS)

    everything = read(session, shim, startingOffsets="earliest", endingOffsets="latest")
    numbers = everything.selectExpr("CAST(CAST(key AS STRING) AS BIGINT) AS n", "CAST(value AS STRING) AS value")
    told = numbers.selectExpr("count(*)", "count(DISTINCT n)", "sum(n)", "min(value)", "max(value)").first()
    assert told is not None
    last = str(ROWS - 1).rjust(90, "0")
    assert tuple(told) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2, "0" * 90, last)

    assert read(session, shim, startingTimestamp=str(last_ms[0] + 1)).count() == ROWS // 2

    ends = {str(row[0]): row[1] + 1 for row in everything.groupBy("partition").max("offset").collect()}
    middle = {partition: end // 2 for partition, end in ends.items()}
    by_offset = json.dumps({TOPIC: middle})
    assert read(session, shim, startingOffsets=by_offset).count() == ROWS - sum(middle.values())
    first_half = read(session, shim, startingOffsets="earliest", endingOffsets=by_offset)
    assert first_half.count() == sum(middle.values())

    split = read(session, shim, minPartitions="16")
    assert split.rdd.getNumPartitions() >= 16
    assert split.count() == ROWS
