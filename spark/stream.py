"""Streaming job: consume, transform, produce.

Reads orders (and payments) with read_committed, transforms them by one of four pipelines and writes to a topic:

- ``map``: each order with its tax; no state.
- ``dedupe``: each order once, by its number, within the watermark.
- ``windows``: number and sum of the orders of each customer by minute of event time, when the watermark has passed it.
- ``join``: each order with its payment, when both are there within a minute of each other.

A run with the same checkpoint goes on where the last one ended or was killed. Sinks: ``foreach-batch`` and
``data-source`` are exactly once (`kafka_shim.spark.sink`), ``spark`` is Spark's own, at least once.
"""

from __future__ import annotations

from pathlib import Path

import click

from kafka_shim.spark import generator, kafka_topic, options, pages, triggers
from kafka_shim.spark.formats import Format
from kafka_shim.spark.session import build_session
from kafka_shim.spark.sink.data_source import KafkaExactlyOnce
from kafka_shim.spark.sink.foreach_batch import exactly_once, refuse_speculation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from kafka_shim.spark.kafka_topic import Source

ORDER = "order_id bigint, customer string, amount_cents bigint, at_ms bigint"
PAYMENT = "order_id bigint, paid_at_ms bigint"
LATENESS = "10 seconds"
WINDOW = "1 minute"
TAX_PERCENT = 19
FOREACH_BATCH, DATA_SOURCE, SPARK = "foreach-batch", "data-source", "spark"


def orders(frame: DataFrame) -> DataFrame:
    """Columns of ORDER and ``at``, which carries the watermark."""
    from pyspark.sql import functions

    value = Format("json", ORDER).decode(functions.col("value"))
    parsed = frame.select(value.alias("order")).select("order.*")
    return parsed.withColumn("at", functions.timestamp_millis("at_ms")).withWatermark("at", LATENESS)


def payments(frame: DataFrame) -> DataFrame:
    """Columns ``paid_order_id`` and ``paid_at``, which carries the watermark."""
    from pyspark.sql import functions

    value = Format("json", PAYMENT).decode(functions.col("value"))
    parsed = frame.select(value.alias("payment"))
    return parsed.select(
        functions.col("payment.order_id").alias("paid_order_id"),
        functions.timestamp_millis("payment.paid_at_ms").alias("paid_at"),
    ).withWatermark("paid_at", LATENESS)


def mapped(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    tax = functions.expr(f"amount_cents * {TAX_PERCENT} div 100")
    return _record(orders(frame).withColumn("tax_cents", tax), "order_id", "order_id", "amount_cents", "tax_cents")


def deduplicated(frame: DataFrame) -> DataFrame:
    unique = orders(frame).dropDuplicatesWithinWatermark(["order_id"])
    return _record(unique, "order_id", "order_id", "customer", "amount_cents")


def windowed(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    totals = (
        orders(frame)
        .groupBy(functions.window("at", WINDOW), "customer")
        .agg(functions.count("*").alias("orders"), functions.sum("amount_cents").alias("amount_cents"))
        .withColumn("window_ms", functions.unix_millis("window.start"))
    )
    return _record(totals, "customer", "customer", "window_ms", "orders", "amount_cents")


def joined(order_frame: DataFrame, payment_frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    once = orders(order_frame).dropDuplicatesWithinWatermark(["order_id"])
    condition = functions.expr(
        "order_id = paid_order_id and paid_at between at - interval 1 minute and at + interval 1 minute"
    )
    both = once.join(payments(payment_frame), condition).withColumn(
        "paid_after_ms", functions.expr("unix_millis(paid_at) - unix_millis(at)")
    )
    return _record(both, "order_id", "order_id", "customer", "amount_cents", "paid_after_ms")


def _record(frame: DataFrame, key: str, *fields: str) -> DataFrame:
    from pyspark.sql import functions

    return frame.select(
        functions.col(key).cast("string").cast("binary").alias("key"),
        functions.to_json(functions.struct(*fields)).cast("binary").alias("value"),
    )


PIPELINES: dict[str, Callable[..., DataFrame]] = {
    "map": mapped,
    "dedupe": deduplicated,
    "windows": windowed,
    "join": joined,
}


def build(session: SparkSession, pipeline: str, source: Source, prefix: str = "") -> DataFrame:
    """Builds the pipeline over the topics ``orders`` and, for ``join``, ``payments``. Ignores ``source.topics``."""
    names = (generator.ORDERS, generator.PAYMENTS) if pipeline == "join" else (generator.ORDERS,)
    frames = [kafka_topic.stream(session, _with_topic(source, prefix + name)) for name in names]
    return PIPELINES[pipeline](*frames)


def _with_topic(source: Source, topic: str) -> Source:
    from dataclasses import replace

    return replace(source, topics=topic)


def start(
    frame: DataFrame,
    bootstrap_servers: str,
    topic: str,
    checkpoint: Path | str,
    *,
    sink: str = FOREACH_BATCH,
    interval: str | None = None,
    tasks: int = 2,
) -> StreamingQuery:
    """Starts the query. It ends by itself (AvailableNow) unless an ``interval`` (``"500 milliseconds"``) is given.

    ``tasks`` applies only to the data source, whose rows are distributed over that many tasks by key.
    """
    trigger: dict[str, Any] = {"processingTime": interval} if interval else {"availableNow": True}
    writer = frame.writeStream
    if sink == FOREACH_BATCH:
        writer = writer.foreachBatch(exactly_once(bootstrap_servers, topic=topic))
    elif sink == DATA_SOURCE:
        refuse_speculation(frame.sparkSession)
        frame.sparkSession.dataSource.register(KafkaExactlyOnce)
        writer = (
            frame.repartition(tasks, "key")
            .writeStream.format(KafkaExactlyOnce.name())
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("topic", topic)
            .option("tasks", str(tasks))
        )
    elif sink == SPARK:
        writer = writer.format("kafka").option("kafka.bootstrap.servers", bootstrap_servers).option("topic", topic)
    else:
        raise ValueError(f"unknown sink {sink!r}")
    return writer.outputMode("append").option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--pipeline", type=click.Choice(sorted(PIPELINES)), default="map", show_default=True)
@options.source
@click.option("--prefix", default="", help="Before the names of the topics orders and payments.")
@click.option("--out", required=True, help="Topic to write to.")
@click.option(
    "--sink", type=click.Choice([FOREACH_BATCH, DATA_SOURCE, SPARK]), default=FOREACH_BATCH, show_default=True
)
@click.option("--tasks", type=int, default=2, show_default=True, help="Of the sink data-source.")
@click.option("--checkpoint", required=True, help="Directory; on a cluster one that all machines see.")
@click.option("--interval", help="Go on, with a micro-batch this often ('1 second'); else end when all is read.")
@click.option("--for-s", type=float, help="End after this many seconds.")
@click.option("--progress", type=click.Path(path_type=Path), help="Write the triggers there as JSON lines.")
@click.option("--page", type=click.Path(path_type=Path), help="Plot throughput and lag of each trigger there.")
def main(
    pipeline: str,
    source: Source,
    prefix: str,
    out: str,
    sink: str,
    tasks: int,
    checkpoint: str,
    interval: str | None,
    for_s: float | None,
    progress: Path | None,
    page: Path | None,
) -> None:
    session = build_session(f"stream {pipeline}")
    frame = build(session, pipeline, source, prefix)
    query = start(frame, source.bootstrap_servers, out, checkpoint, sink=sink, interval=interval, tasks=tasks)
    summary = triggers.follow(query, timeout_s=for_s)
    if progress is not None:
        summary.write(progress)
    if page is not None:
        pages.write_stream(page, f"stream {pipeline} -> {out}", summary)
    click.echo(summary.line())


if __name__ == "__main__":
    main()
