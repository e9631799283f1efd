"""Batch jobs between topics and Parquet: every way to name a part of a topic, headers, JSON and Avro, increments."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_shim.spark import kafka_topic, table_to_topic, topic_to_table
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.formats import Format
from kafka_shim.spark.kafka_topic import Part, Source

BEGAN_MS = 1_750_000_000_000
COUNT = 40
STRING = Format("string")
JSON = Format("json", "id bigint, name string")
AVRO = Format(
    "avro",
    json.dumps(
        {
            "type": "record",
            "name": "Person",
            "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
        }
    ),
)


@pytest.fixture
def filled(bootstrap: str, name: str) -> tuple[str, str]:
    """A broker and a topic with records 0 ... 39, even ones on partition 0, a second apart; each has two headers."""
    topic = kafka.create(bootstrap, f"{name}in")
    kafka.fill(
        bootstrap,
        topic,
        (
            {
                "value": str(number).encode(),
                "key": f"k{number}".encode(),
                "partition": number % 2,
                "timestamp": BEGAN_MS + number * 1000,
                "headers": [("number", str(number).encode()), ("empty", None)],
            }
            for number in range(COUNT)
        ),
    )
    return bootstrap, topic


def numbers(session: SparkSession, bootstrap: str, topic: str, part: Part) -> list[int]:
    rows = kafka_topic.read(session, Source(bootstrap, topic, part)).collect()
    return sorted(int(bytes(row.value)) for row in rows)


def test_parts_by_offset_and_time_hold_what_they_name(session: SparkSession, filled: tuple[str, str]) -> None:
    bootstrap, topic = filled
    everything = list(range(COUNT))

    def found(part: Part) -> list[int]:
        return numbers(session, bootstrap, topic, part)

    assert found(Part()) == everything
    by_offset = Part(starting={topic: {0: 2, 1: -2}}, ending={topic: {0: 5, 1: 1}})
    assert found(by_offset) == [1, 4, 6, 8]
    by_time = Part(starting_timestamp_ms=BEGAN_MS + 10_000, ending_timestamp_ms=BEGAN_MS + 14_000)
    assert found(by_time) == [10, 11, 12, 13]
    by_times = Part(
        starting_timestamps_ms={topic: {0: BEGAN_MS + 36_000, 1: BEGAN_MS + 1_000_000}},
        ending_timestamps_ms={topic: {0: BEGAN_MS + 38_000, 1: BEGAN_MS + 2_000_000}},
    )
    assert found(by_times) == [36]


def test_one_end_is_not_given_in_two_forms() -> None:
    with pytest.raises(ValueError, match="not both"):
        Part(starting_timestamp_ms=1, starting_timestamps_ms={"t": {0: 1}}).options()


def test_min_partitions_splits_partitions_into_tasks(session: SparkSession, filled: tuple[str, str]) -> None:
    bootstrap, topic = filled
    frame = kafka_topic.read(session, Source(bootstrap, topic, min_partitions=8))
    assert frame.rdd.getNumPartitions() >= 8
    assert frame.count() == COUNT


def test_headers_and_times_survive_the_table_and_the_way_back(
    session: SparkSession, filled: tuple[str, str], scratch: Path
) -> None:
    bootstrap, topic = filled
    table = scratch / "table"
    raw = Format()
    assert topic_to_table.copy(session, Source(bootstrap, topic, headers=True), table, raw, raw) == COUNT
    stored = session.read.parquet(str(table)).where("offset = 3 and partition = 1").first()
    assert stored is not None
    assert (bytes(stored.value), stored.timestamp.timestamp() * 1000) == (b"7", BEGAN_MS + 7_000)
    back = kafka.create(bootstrap, f"{topic}-back")
    assert table_to_topic.copy(session, table, bootstrap, back, raw, raw, keep_partition=True) == COUNT

    def contents(name: str) -> Counter[tuple[object, ...]]:
        return Counter((m.partition(), m.key(), m.value(), str(m.headers())) for m in kafka.read(bootstrap, name))

    assert contents(back) == contents(topic)


@pytest.mark.parametrize("value", [JSON, AVRO], ids=["json", "avro"])
def test_values_by_a_schema_survive_both_ways(
    session: SparkSession, bootstrap: str, name: str, scratch: Path, value: Format
) -> None:
    people = session.createDataFrame(
        [("a", (1, "Ada")), ("b", (2, None)), ("c", None)],
        "key string, value struct<id: bigint not null, name: string>",
    )
    table, copy = scratch / "in", scratch / "out"
    people.write.parquet(str(table))
    topic = kafka.create(bootstrap, f"{name}people")
    table_to_topic.copy(session, table, bootstrap, topic, STRING, value)
    sent = {message.key(): message.value() for message in kafka.read(bootstrap, topic)}
    # Null is a tombstone, not the text "null".
    assert sent[b"c"] is None
    if value is JSON:
        assert sent[b"a"] == b'{"id":1,"name":"Ada"}'
    topic_to_table.copy(session, Source(bootstrap, topic), copy, STRING, value)
    rows = {row.key: row.value for row in session.read.parquet(str(copy)).collect()}
    assert (rows["a"].id, rows["a"].name, rows["b"].name, rows["c"]) == (1, "Ada", None, None)


def test_a_broken_value_fails_the_job_unless_it_is_permissive(
    session: SparkSession, shim: str, name: str, scratch: Path
) -> None:
    topic = kafka.create(shim, f"{name}broken")
    kafka.fill(shim, topic, [{"value": b'{"id": 1'}])
    # PySpark leaves some errors of a running job as they come from the JVM.
    with pytest.raises((PySparkException, Py4JJavaError), match="MALFORMED_RECORD"):
        topic_to_table.copy(session, Source(shim, topic), scratch / "strict", STRING, JSON)
    permissive = Format("json", JSON.schema, permissive=True)
    assert topic_to_table.copy(session, Source(shim, topic), scratch / "permissive", STRING, permissive) == 1


def test_increments_append_only_what_is_new_in_bounded_batches(
    session: SparkSession, filled: tuple[str, str], scratch: Path
) -> None:
    bootstrap, topic = filled
    source = Source(bootstrap, topic, max_offsets_per_trigger=16)

    def run() -> list[int]:
        summary = topic_to_table.append_new(session, source, scratch / "t", scratch / "c", STRING, STRING)
        return [trigger.rows for trigger in summary.triggers]

    first = run()
    assert sum(first) == COUNT
    assert max(first) <= 16
    assert run() == []
    kafka.fill(bootstrap, topic, [{"value": b"40"}])
    assert run() == [1]
    stored = session.read.parquet(str(scratch / "t")).select("value").collect()
    assert sorted(int(row.value) for row in stored) == list(range(COUNT + 1))


def test_the_command_line_takes_offsets_as_json_and_says_what_is_wrong() -> None:
    assert kafka_topic.parse_offsets('{"t": {"0": 7}}') == {"t": {0: 7}}
    arguments = ["--bootstrap-servers", "127.0.0.1:1", "--topics", "t", "--out", "x"]
    no_number = ["--from", '{"t": {"0": null}}']
    for wrong in (["--from", "yesterday"], no_number, ["--to-timestamp-ms", "noon"], ["--value-format", "json"]):
        done = CliRunner().invoke(topic_to_table.main, [*arguments, *wrong])
        assert done.exit_code == 2, done.output
    assert kafka_topic.parse_timestamps("17") == (17, None)
    assert kafka_topic.parse_timestamps('{"t": {"0": 17}}') == (None, {"t": {0: 17}})
    assert kafka_topic.parse_timestamps(None) == (None, None)
