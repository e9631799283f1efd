"""Judges the histories on a topic, prints the table, writes the page."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import click

from kafka_shim.spark import kafka_topic, task_progress
from kafka_shim.spark.audit import history, judge, page
from kafka_shim.spark.kafka_topic import Source
from kafka_shim.spark.session import build_session
from kafka_shim.spark.triggers import Trigger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession


def run(
    session: SparkSession, bootstrap_servers: str, history_topic: str, data_topics: str = "", split: int | None = None
) -> tuple[judge.Report, list[tuple[int, int]]]:
    """Returns the report, and the number of records of each second in the data topics. ``split`` is the minimum number
    of tasks; half a million records per task fit the default heap.
    """
    operations = history.parsed(
        kafka_topic.read(session, Source(bootstrap_servers, history_topic, min_partitions=split))
    )
    data: DataFrame | None = None
    rates: list[tuple[int, int]] = []
    with _shuffles(session, split), task_progress.told(session, "audit", every_s=5.0):
        if data_topics:
            data = kafka_topic.read(session, Source(bootstrap_servers, data_topics, min_partitions=split))
            by_second = data.selectExpr("unix_seconds(timestamp) as second").groupBy("second").count()
            rates = [(row["second"], row["count"]) for row in by_second.orderBy("second").collect()]
        return judge.judge(operations, data), rates


@contextlib.contextmanager
def _shuffles(session: SparkSession, split: int | None) -> Iterator[None]:
    name = "spark.sql.shuffle.partitions"
    before = session.conf.get(name) or "2"
    session.conf.set(name, str(max(int(before), split or 0)))
    try:
        yield
    finally:
        session.conf.set(name, before)


@click.command(help=__doc__)
@click.option("--bootstrap-servers", required=True)
@click.option("--history", "history_topic", required=True, help="Topic of the histories.")
@click.option("--data", "data_topics", default="", help="Topics that the histories speak of, with commas.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), help="Write the page there.")
@click.option("--progress", type=click.Path(path_type=Path, exists=True), help="Triggers that a stream job wrote.")
@click.option("--split", type=int, help="Work in so many tasks at least: one for half a million records.")
@click.option("--title", default="Audit", show_default=True)
def main(
    bootstrap_servers: str,
    history_topic: str,
    data_topics: str,
    page_path: Path | None,
    progress: Path | None,
    split: int | None,
    title: str,
) -> None:
    report, rates = run(build_session("audit"), bootstrap_servers, history_topic, data_topics, split)
    for line in report.lines():
        click.echo(line)
    if page_path is not None:
        lines = progress.read_text().splitlines() if progress else ()
        triggers = [Trigger(**json.loads(line)) for line in lines]
        page_path.parent.mkdir(parents=True, exist_ok=True)
        page_path.write_text(page.render(report, title, rates, triggers))
        click.echo(f"page: {page_path}")
    sys.exit(not report.is_clean)


if __name__ == "__main__":
    main()
