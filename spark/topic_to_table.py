"""Batch job: (a part of) topics into Parquet.

With ``--checkpoint`` each run appends what is new since the run before, in micro-batches of at most
``--max-offsets-per-trigger`` offsets; the files of a batch appear once, whatever was killed.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from kafka_shim.spark import kafka_topic, options, pages, task_progress, triggers
from kafka_shim.spark.session import build_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_shim.spark.formats import Format
    from kafka_shim.spark.kafka_topic import Source


def decoded(frame: DataFrame, key: Format, value: Format) -> DataFrame:
    """Kafka's columns with key and value as the formats say; ``timestamp_type`` in this project's naming."""
    from pyspark.sql import functions

    columns = [
        key.decode(functions.col("key")).alias("key"),
        value.decode(functions.col("value")).alias("value"),
        *(functions.col(name) for name in ("topic", "partition", "offset", "timestamp")),
        functions.col("timestampType").alias("timestamp_type"),
    ]
    if "headers" in frame.columns:
        columns.append(functions.col("headers"))
    return frame.select(*columns)


def copy(
    session: SparkSession, source: Source, path: Path | str, key: Format, value: Format, mode: str = "overwrite"
) -> int:
    """Writes the part as one batch; returns the number of rows of the table."""
    with task_progress.told(session, f"{source.topics} -> {path}"):
        decoded(kafka_topic.read(session, source), key, value).write.mode(mode).parquet(str(path))
    return session.read.parquet(str(path)).count()


def append_new(
    session: SparkSession, source: Source, path: Path | str, checkpoint: Path | str, key: Format, value: Format
) -> triggers.Summary:
    """Appends what is new since the last run with this checkpoint and ends."""
    frame = decoded(kafka_topic.stream(session, source), key, value)
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(path))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    return triggers.follow(query)


@click.command(help=(__doc__ or "").partition("\n")[0])
@options.source
@options.formats_of
@click.option("--out", required=True, help="Directory of the table.")
@click.option("--mode", type=click.Choice(["overwrite", "append", "error"]), default="error", show_default=True)
@click.option("--checkpoint", help="Append only what is new since the last run.")
@click.option("--page", type=click.Path(path_type=Path), help="With --checkpoint: plot the triggers there.")
def main(
    source: Source, key: Format, value: Format, out: str, mode: str, checkpoint: str | None, page: Path | None
) -> None:
    session = build_session("topic to table")
    began = time.monotonic()
    if checkpoint is not None:
        summary = append_new(session, source, out, checkpoint, key, value)
        if page is not None:
            pages.write_stream(page, f"{source.topics} -> {out}", summary)
        click.echo(summary.line())
        return
    rows = copy(session, source, out, key, value, mode)
    seconds = time.monotonic() - began
    click.echo(f"{source.topics} -> {out}: {rows:,} rows in {seconds:.1f} s ({rows / seconds:,.0f} rows/s)")


if __name__ == "__main__":
    main()
