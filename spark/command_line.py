"""``kafka-shim-spark JOB ...``: every job by its name. ``python -m kafka_shim.spark`` does the same.

A file of two lines makes it what ``spark-submit`` starts: ``from kafka_shim.spark.command_line import main`` and
``main()``.
"""

from __future__ import annotations

from importlib import import_module

import click

# Each is imported when it is asked for: most of them need packages that the others do without.
JOBS = {
    "audit": ("audit.__main__", "check large histories of client operations"),
    "chaos": ("chaos", "the streaming job, with kills of driver, tasks and broker"),
    "demo": ("demo", "shim, generator, streaming job and audit, and a page about them"),
    "gaps": ("gaps.__main__", "topics with all kinds of offset gaps, and Spark's readers on them"),
    "generator": ("generator", "generate orders and payments"),
    "ship": ("shipping", "write what spark-submit ships to a cluster"),
    "stream": ("stream", "consume, transform, produce"),
    "table-to-topic": ("table_to_topic", "Parquet to a topic"),
    "topic-to-table": ("topic_to_table", "a range of a topic to Parquet"),
}


# What a job is run with; each line goes behind the name of the program.
EXAMPLES = {
    "audit": "audit --bootstrap-servers 127.0.0.1:9092 --history histories --page audit.html",
    "chaos": "chaos --orders 100000 --kills 5",
    "demo": "demo --orders 20000",
    "gaps": "gaps --kind external=127.0.0.1:9092",
    "generator": "generator --bootstrap-servers 127.0.0.1:9092 --count 10000",
    "ship": "ship ./shipped",
    "stream": "stream --bootstrap-servers 127.0.0.1:9092 --out taxed --checkpoint ./checkpoint",
    "table-to-topic": "table-to-topic --bootstrap-servers 127.0.0.1:9092 --in orders.parquet --topic orders",
    "topic-to-table": "topic-to-table --bootstrap-servers 127.0.0.1:9092 --topics orders --out orders.parquet",
}


class Jobs(click.Group):
    """The commands of JOBS."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in JOBS:
            return None
        command: click.Command = import_module(f"kafka_shim.spark.{JOBS[name][0]}").main
        command.epilog = f"\b\nExample:\n  kafka-shim-spark {EXAMPLES[name]}"
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Jobs"):
            formatter.write_dl([(name, what) for name, (_, what) in JOBS.items()])


@click.command(
    cls=Jobs, help="Data pipelines on Spark. JOB --help says what a job takes.", subcommand_metavar="JOB ..."
)
def main() -> None:
    """Runs one job. The exit status is the job's."""
