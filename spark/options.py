"""Command-line options that several jobs share, as decorators that hand over a finished object."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import click

from kafka_shim.spark import formats, kafka_topic
from kafka_shim.spark.formats import Format
from kafka_shim.spark.kafka_topic import Part, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Command = Callable[..., Any]

SOURCE = (
    click.option("--bootstrap-servers", required=True, help="HOST:PORT of a broker."),
    click.option("--topics", default="", help="Names with commas."),
    click.option("--from", "starting", default="earliest", help='earliest, latest or {"topic": {"0": offset}}.'),
    click.option("--to", "ending", default="latest", help="The same, exclusive; batches alone."),
    click.option(
        "--from-timestamp-ms", help='Instead of --from: from this time on; a number, or {"topic": {"0": time}}.'
    ),
    click.option("--to-timestamp-ms", help="Instead of --to: before this time, in the same forms."),
    click.option(
        "--isolation",
        type=click.Choice([kafka_topic.READ_COMMITTED, kafka_topic.READ_UNCOMMITTED]),
        default=kafka_topic.READ_COMMITTED,
        show_default=True,
    ),
    click.option("--headers", is_flag=True, help="Read headers, too."),
    click.option("--min-partitions", type=int, help="Split into at least this many tasks."),
    click.option("--max-offsets-per-trigger", type=int, help="Bound of a micro-batch; streams alone."),
)
FORMATS = tuple(
    option
    for part in ("key", "value")
    for option in (
        click.option(f"--{part}-format", type=click.Choice(formats.KINDS), default=formats.BINARY, show_default=True),
        click.option(f"--{part}-schema", help="DDL of JSON, or Avro's JSON."),
    )
)


def existing(_context: click.Context, _option: click.Parameter, location: str) -> str:
    """Checks a path of this machine. What has a scheme is Spark's to find. Locations stay text: `Path` would make one
    slash of the two of ``hdfs://``.
    """
    if not re.match(r"[a-z][a-z0-9+.-]*:/", location) and not Path(location).exists():
        raise click.BadParameter(f"{location} does not exist")
    return location


def source(command: Command) -> Command:
    """Options of a Kafka source; the command gets ``source``."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        try:
            begin_ms, begins_ms = kafka_topic.parse_timestamps(given.pop("from_timestamp_ms"))
            end_ms, ends_ms = kafka_topic.parse_timestamps(given.pop("to_timestamp_ms"))
            part = Part(
                kafka_topic.parse_offsets(given.pop("starting")),
                kafka_topic.parse_offsets(given.pop("ending")),
                *(begin_ms, end_ms, begins_ms, ends_ms),
            )
        except (ValueError, TypeError, AttributeError) as wrong:
            raise click.UsageError(
                f"--from and --to take earliest, latest or JSON, their times a number or JSON: {wrong}"
            ) from None
        names = ("bootstrap_servers", "topics", "isolation", "headers", "min_partitions", "max_offsets_per_trigger")
        return command(source=Source(part=part, **{name: given.pop(name) for name in names}), **given)

    return _with(run, SOURCE)


def formats_of(command: Command) -> Command:
    """Options of the formats of key and value; the command gets ``key`` and ``value``."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        try:
            made = {part: Format(given.pop(f"{part}_format"), given.pop(f"{part}_schema")) for part in ("key", "value")}
        except ValueError as wrong:
            raise click.UsageError(str(wrong)) from None
        return command(**made, **given)

    return _with(run, FORMATS)


def _with(command: Command, added: tuple[Command, ...]) -> Command:
    for option in reversed(added):
        command = option(command)
    return command
