"""Kafka topics as DataFrames: which range of a topic to read, as a batch or a stream, and how to write one.

Offsets follow Spark and Kafka: ``starting`` is inclusive, ``ending`` exclusive, -2 is the earliest and -1 the latest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

# Per topic, per partition.
Offsets = dict[str, dict[int, int]]
EARLIEST, LATEST = "earliest", "latest"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
# Retries of an offset fetch without new data, before the task fails. A killed broker needs more than one.
CLIENT = {"kafka.default.api.timeout.ms": "60000", "kafka.request.timeout.ms": "30000", "fetchOffset.numRetries": "20"}


@dataclass(frozen=True)
class Part:
    """A part of some topics. Of each end at most one form is given: ``starting``/``ending`` (``earliest``, ``latest``
    or offsets by topic and partition), one time for all partitions, or times by topic and partition (ms since the
    epoch).
    """

    starting: str | Offsets = EARLIEST
    ending: str | Offsets = LATEST
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None
    starting_timestamps_ms: Offsets | None = None
    ending_timestamps_ms: Offsets | None = None

    def options(self, *, streaming: bool = False) -> dict[str, str]:
        """Returns the options of Spark's Kafka source. A stream has no end."""
        options = _end("starting", self.starting, self.starting_timestamp_ms, self.starting_timestamps_ms)
        if not streaming:
            options |= _end("ending", self.ending, self.ending_timestamp_ms, self.ending_timestamps_ms)
        # A timestamp after the last record means the end of the partition; it is not an error.
        if any(name.startswith("startingTimestamp") or name.endswith("ByTimestamp") for name in options):
            options["startingOffsetsByTimestampStrategy"] = "latest"
        return options


def _end(name: str, offsets: str | Offsets, timestamp_ms: int | None, timestamps_ms: Offsets | None) -> dict[str, str]:
    if timestamp_ms is not None and timestamps_ms is not None:
        raise ValueError(f"{name}: one time for all partitions or a time for each, not both")
    if timestamp_ms is not None:
        return {f"{name}Timestamp": str(timestamp_ms)}
    if timestamps_ms is not None:
        return {f"{name}OffsetsByTimestamp": json.dumps(timestamps_ms)}
    return {f"{name}Offsets": offsets if isinstance(offsets, str) else json.dumps(offsets)}


def parse_offsets(text: str) -> str | Offsets:
    """``earliest``, ``latest`` or JSON ``{"topic": {"0": 17}}``. Raises ValueError."""
    if text in (EARLIEST, LATEST):
        return text
    return _by_partition(text)


def parse_timestamps(text: str | None) -> tuple[int | None, Offsets | None]:
    """One time for all partitions, or JSON ``{"topic": {"0": 1750000000000}}``: one of the two is None, both for no
    text. Raises ValueError."""
    if text is None:
        return None, None
    if text.lstrip("-").isdigit():
        return int(text), None
    return None, _by_partition(text)


def _by_partition(text: str) -> Offsets:
    given = json.loads(text)
    return {topic: {int(number): int(value) for number, value in parts.items()} for topic, parts in given.items()}


@dataclass(frozen=True)
class Source:
    """Where and how to read: ``topics`` are names with commas; ``min_partitions`` splits large partitions over more
    tasks; ``max_offsets_per_trigger`` bounds a micro-batch (streams alone); ``client`` are options of Kafka's consumer.
    """

    bootstrap_servers: str
    topics: str
    part: Part = field(default_factory=Part)
    isolation: str = READ_COMMITTED
    headers: bool = False
    min_partitions: int | None = None
    max_offsets_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    client: Mapping[str, str] = field(default_factory=dict)

    def options(self, *, streaming: bool) -> dict[str, str]:
        options = {
            **CLIENT,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topics,
            "kafka.isolation.level": self.isolation,
            "includeHeaders": str(self.headers).lower(),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            **self.part.options(streaming=streaming),
            **{f"kafka.{name}": value for name, value in self.client.items()},
        }
        if self.min_partitions is not None:
            options["minPartitions"] = str(self.min_partitions)
        if streaming and self.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        return options


def read(session: SparkSession, source: Source) -> DataFrame:
    """Reads a batch: columns key, value, topic, partition, offset, timestamp, timestampType and, if
    requested, headers.
    """
    return session.read.format("kafka").options(**source.options(streaming=False)).load()


def stream(session: SparkSession, source: Source) -> DataFrame:
    """Reads a stream with the same columns."""
    return session.readStream.format("kafka").options(**source.options(streaming=True)).load()


def write(frame: DataFrame, bootstrap_servers: str, topic: str | None, client: Mapping[str, str] | None = None) -> None:
    """Writes columns key, value, headers, partition, topic (those that exist) with Spark's own sink: at-least-once."""
    known = [name for name in ("key", "value", "headers", "partition", "topic") if name in frame.columns]
    options = {"kafka.bootstrap.servers": bootstrap_servers, **{f"kafka.{k}": v for k, v in (client or {}).items()}}
    if topic is not None:
        options["topic"] = topic
    frame.select(*known).write.format("kafka").options(**options).save()
