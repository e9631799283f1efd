"""Spark's own batch writer and reader: rows out and back by every kind of offset."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection

PARTITIONS = 4


def write(session: SparkSession, bootstrap: str, topic: str, first: int, end: int) -> None:
    """Rows of about 100 bytes, numbered from `first` to below `end`."""
    frame = session.range(first, end, 1, 4)
    rows = frame.selectExpr("CAST(id AS STRING) AS key", "lpad(CAST(id AS STRING), 90, '0') AS value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()


def read(session: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


@pytest.mark.parametrize("rows", [20_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_rows_come_back_by_every_kind_of_offset(session: SparkSession, shim: str, name: str, rows: int) -> None:
    topic = f"{name}connector-rows"
    with Connection(shim) as client:
        requests.create_topic(client, topic, PARTITIONS)
    write(session, shim, topic, 0, rows // 2)
    last_ms = read(session, shim, topic).selectExpr("max(unix_millis(timestamp))").first()
    assert last_ms is not None
    write(session, shim, topic, rows // 2, rows)

    everything = read(session, shim, topic, startingOffsets="earliest", endingOffsets="latest")
    numbers = everything.selectExpr("CAST(CAST(key AS STRING) AS BIGINT) AS n", "CAST(value AS STRING) AS value")
    told = numbers.selectExpr("count(*)", "count(DISTINCT n)", "sum(n)", "min(value)", "max(value)").first()
    assert told is not None
    last = str(rows - 1).rjust(90, "0")
    assert tuple(told) == (rows, rows, rows * (rows - 1) // 2, "0" * 90, last)

    assert read(session, shim, topic, startingTimestamp=str(last_ms[0] + 1)).count() == rows // 2

    ends = {str(row[0]): row[1] + 1 for row in everything.groupBy("partition").max("offset").collect()}
    middle = {partition: end // 2 for partition, end in ends.items()}
    by_offset = json.dumps({topic: middle})
    assert read(session, shim, topic, startingOffsets=by_offset).count() == rows - sum(middle.values())
    first_half = read(session, shim, topic, startingOffsets="earliest", endingOffsets=by_offset)
    assert first_half.count() == sum(middle.values())

    split = read(session, shim, topic, minPartitions="16")
    assert split.rdd.getNumPartitions() >= 16
    assert split.count() == rows
