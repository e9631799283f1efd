"""``kafka-shim-spark JOB ...``: every job by its name. ``python -m kafka_shim.spark`` does the same.

A file of two lines makes it what ``spark-submit`` starts: ``from kafka_shim.spark.command_line import main`` and
``main()``.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import import_module

import click

from kafka_shim.spark.session import SPARK_VERSION, SparkStartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What shells say of a command that Ctrl-C ended. What is shipped to a cluster has no kafka_shim.cli to import it from.
INTERRUPTED = 130
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


# The last cause of an error of Spark, if it is one that Kafka's client names: `...errors.TimeoutException: Timed out`.
CAUSE = re.compile(r"^(?:Caused by|): org\.apache\.kafka\.common\.(?:errors|config)\.(\w+): (.+)$", re.MULTILINE)

# Where nobody answers, by librdkafka and by Java's client.
UNANSWERED = frozenset({"_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "TimeoutException"})
# What the extra `spark` installs: package by the name that is imported.
PACKAGES = {
    "confluent_kafka": "confluent-kafka",
    "matplotlib": "matplotlib",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pyspark": f"'pyspark[connect]=={SPARK_VERSION}'",
}
ADVICE = " (is there a broker at --bootstrap-servers, and does it advertise an address that is reached from here?)"


class Jobs(click.Group):
    """The commands of JOBS. What Kafka refused them, and what is not installed, is told without a trace."""

    def invoke(self, context: click.Context) -> Any:
        """Raises ClickException for an error of a client of Kafka, of librdkafka or under Spark, for a package or a JDK
        that is missing, for a file that cannot be used, and else the error. Ctrl-C is an Exit with a status of its
        own: click has that of an error."""
        try:
            return super().invoke(context)
        except click.exceptions.Exit:
            raise
        except KeyboardInterrupt:
            click.echo(err=True)  # ends the line in which a terminal shows ^C, as click does
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            told = lack(error) or refusal(error) or unusable(error)
            if told is None:
                raise
            raise click.ClickException(told) from None

    def list_commands(self, context: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in JOBS:
            return None
        command: click.Command = import_module(f"kafka_shim.spark.{JOBS[name][0]}").main
        command.epilog = f"\b\nExample:\n  kafka-shim-spark {EXAMPLES[name]}"
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the nearest job for one that is mistyped, or that is named as its module."""
        if args[0] not in JOBS and (near := get_close_matches(args[0], JOBS, n=1)):
            context.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Jobs"):
            formatter.write_dl([(name, what) for name, (_, what) in JOBS.items()])


def lack(error: Exception) -> str | None:
    """What has to be installed, or why Spark does not start. None for any other error."""
    if isinstance(error, SparkStartError):
        return str(error)
    package = PACKAGES.get((error.name or "").partition(".")[0]) if isinstance(error, ModuleNotFoundError) else None
    if package is None:
        return None
    return f"{error}: pip install {package} (docs/spark.md lists what the jobs need)"


def refusal(error: Exception) -> str | None:
    """What Kafka's client says in an error: hundreds of lines of Spark's own trace stand around it. None if it is no
    error of Kafka's client, or if it was raised in a task, whose trace says where."""
    if type(error).__module__ == "cimpl":  # confluent_kafka.KafkaException
        (found,) = error.args[:1] or (error,)
        told = found.str() if hasattr(found, "str") else str(found)
        is_unanswered = hasattr(found, "name") and found.name() in UNANSWERED
        return f"Kafka's client: {told}{ADVICE if is_unanswered else ''}"
    if not type(error).__module__.startswith(("py4j.", "pyspark.")):
        return None
    causes = CAUSE.findall(str(error))
    if not causes or "Traceback" in str(error):
        return None
    name, text = causes[-1]
    return f"Kafka's client: {name}: {text}{ADVICE if name in UNANSWERED else ''}"


def unusable(error: Exception) -> str | None:
    """Which file the system refuses, and why. None for any other error."""
    if not isinstance(error, OSError) or error.filename is None:
        return None
    return f"{error.filename}: {error.strerror}"


@click.command(
    cls=Jobs,
    help="Data pipelines on Spark. JOB --help says what a job takes.",
    subcommand_metavar="JOB ...",
    context_settings={"help_option_names": ["-h", "--help"]},  # of the jobs too, as of `kafka-shim`
)
def main() -> None:
    """Runs one job. The exit status is the job's."""
