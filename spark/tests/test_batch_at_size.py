"""Spark's own batch writer and reader: 200,000 rows out and back by every kind of offset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from compat_tests import requests
from compat_tests.targets import Target, make
from shim.wire_client import Connection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, PARTITIONS = 200_000, 4
SPLIT_MS = 1_700_000_000_000


def rows(spark: SparkSession) -> DataFrame:
    """Numbered rows of about 100 bytes; the second half is a day younger."""
    padded = "lpad(CAST(id AS STRING), 90, 'x')"
    late = f"timestamp_millis({SPLIT_MS} + IF(id < {ROWS // 2}, -86400000, 0) + id)"
    frame = spark.range(0, ROWS, 1, 4)
    return frame.selectExpr("CAST(id AS STRING) AS key", f"{padded} AS value", f"{late} AS timestamp")


def read(spark: SparkSession, target: Target, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", target.bootstrap)
    return reader.option("subscribe", "rows").options(**options).load()


def test_two_hundred_thousand_rows_come_back_by_every_kind_of_offset(session: SparkSession) -> None:
    with make("shim") as target:
        with Connection(target.bootstrap) as client:
            requests.create_topic(client, "rows", PARTITIONS)
        writer = rows(session).write.format("kafka").option("kafka.bootstrap.servers", target.bootstrap)
        writer.option("topic", "rows").save()

        everything = read(session, target, startingOffsets="earliest", endingOffsets="latest")
        numbers = everything.selectExpr("CAST(CAST(key AS STRING) AS BIGINT) AS n", "CAST(value AS STRING) AS value")
        told = numbers.selectExpr("count(*)", "count(DISTINCT n)", "sum(n)", "min(value)", "max(value)").first()
        assert told is not None
        expected = rows(session).selectExpr("min(value)", "max(value)").first()
        assert expected is not None
        assert tuple(told) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2, *expected)

        assert read(session, target, startingTimestamp=str(SPLIT_MS)).count() == ROWS // 2

        ends = everything.groupBy("partition").max("offset").collect()
        middle = {str(row[0]): (row[1] + 1) // 2 for row in ends}
        wanted = sum(row[1] + 1 - middle[str(row[0])] for row in ends)
        assert read(session, target, startingOffsets=json.dumps({"rows": middle})).count() == wanted
        by_offset = {"startingOffsets": "earliest", "endingOffsets": json.dumps({"rows": middle})}
        assert read(session, target, **by_offset).count() == sum(middle.values())
        split = read(session, target, minPartitions="16")
        assert split.rdd.getNumPartitions() >= 16
        assert split.count() == ROWS
