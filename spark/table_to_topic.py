"""Batch job: Parquet into a topic.

The table has a column ``value`` and may have ``key``, ``headers`` and ``partition``. Spark's own sink writes it, at
least once: a task that is retried writes its rows again. ``kafka_shim.spark.sink`` has the sink that does not.
"""

from __future__ import annotations

import time

import click

from kafka_shim.spark import kafka_topic, options, task_progress
from kafka_shim.spark.session import build_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kafka_shim.spark.formats import Format

KEPT = ("headers", "partition")


def encoded(frame: DataFrame, key: Format, value: Format, *, keep_partition: bool) -> DataFrame:
    from pyspark.sql import functions

    kept = [name for name in KEPT if name in frame.columns and (name != "partition" or keep_partition)]
    columns = [value.encode(functions.col("value")).alias("value"), *(functions.col(name) for name in kept)]
    if "key" in frame.columns:
        columns.append(key.encode(functions.col("key")).alias("key"))
    return frame.select(*columns)


def copy(
    session: SparkSession,
    path: Path | str,
    bootstrap_servers: str,
    topic: str,
    key: Format,
    value: Format,
    *,
    keep_partition: bool = False,
) -> int:
    """Writes the whole table; returns its number of rows. ``keep_partition``: each row to the partition it names."""
    frame = session.read.parquet(str(path))
    with task_progress.told(session, f"{path} -> {topic}"):
        kafka_topic.write(encoded(frame, key, value, keep_partition=keep_partition), bootstrap_servers, topic)
    return frame.count()


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--in", "path", callback=options.existing, required=True, help="The table.")
@click.option("--bootstrap-servers", required=True)
@click.option("--topic", required=True)
@click.option("--keep-partition", is_flag=True, help="Each row to the partition that its column names.")
@options.formats_of
def main(path: str, bootstrap_servers: str, topic: str, keep_partition: bool, key: Format, value: Format) -> None:
    session = build_session("table to topic")
    began = time.monotonic()
    rows = copy(session, path, bootstrap_servers, topic, key, value, keep_partition=keep_partition)
    seconds = time.monotonic() - began
    click.echo(f"{path} -> {topic}: {rows:,} rows in {seconds:.1f} s ({rows / seconds:,.0f} rows/s)")


if __name__ == "__main__":
    main()
