"""`kafka-shim groups reset-offsets`, with the scenarios of Kafka's tool (ConsumerGroupCommandOptions)."""

from __future__ import annotations

import csv

import click

from kafka_shim.client.offset_reset import PLACES, Target, plan_reset
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.commands.options import bootstrap_option, cluster_of, json_option
from kafka_shim.commands.tables import print_table
from kafka_shim.commands.times import now_ms, read_datetime, read_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.client.cluster import Cluster, TopicPartition

    Offsets = dict[TopicPartition, int]

SCENARIOS = (
    "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --to-timestamp, --by-duration, "
    "--from-file"
)
EPILOG = """\b
Examples:
  kafka-shim groups reset-offsets billing --topic orders --to-earliest            only prints
  kafka-shim groups reset-offsets billing --topic orders:0,2 --shift-by -10 --execute
  kafka-shim groups reset-offsets billing --all-topics --by-duration P1D --execute
  kafka-shim groups reset-offsets billing --from-file offsets.csv --execute       topic,partition,offset

\b
Exit status: 0; 1 the broker refused or was not reached; 2 wrong or contradicting options.
"""


@click.command(
    name="reset-offsets",
    epilog=EPILOG,
    help="Move the offsets of a group without members; only prints without --execute.",
)
@click.argument("name")
@bootstrap_option
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:P,P]", help="repeatable  [default: all committed]")
@click.option("--all-topics", is_flag=True, help="all that the group has committed; the default")
@click.option("--to-earliest", is_flag=True, help="to the first record")
@click.option("--to-latest", is_flag=True, help="to the end")
@click.option("--to-current", is_flag=True, help="to where it is, inside what the log holds")
@click.option("--to-offset", type=click.IntRange(min=0), help="to this offset")
@click.option("--shift-by", type=int, help="by this many records, back when negative")
@click.option(
    "--to-datetime", metavar="TIME", help="to the first record from 2026-01-31T12:00:00.000 on, of UTC or +01:00"
)
@click.option("--to-timestamp", type=click.IntRange(min=0), metavar="MS", help="as --to-datetime, in milliseconds")
@click.option("--by-duration", metavar="DURATION", help="to the first record of the last P1DT2H, or 5m")
@click.option(
    "--from-file",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="to the offsets in lines of topic,partition,offset",
)
@click.option("--dry-run", is_flag=True, help="only print; the default")
@click.option("--execute", is_flag=True, help="do it")
@click.option("--export", is_flag=True, help="print lines for --from-file")
@json_option
def reset_offsets(
    name: str,
    bootstrap_server: str,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    to_timestamp: int | None,
    by_duration: str | None,
    from_file: Iterable[str] | None,
    dry_run: bool,
    execute: bool,
    export: bool,
) -> None:
    _check_contradictions(topics, all_topics, from_file is not None, dry_run, execute)
    places = [place for place, is_given in zip(PLACES, (to_earliest, to_latest, to_current), strict=True) if is_given]
    given = (to_offset, shift_by, to_datetime, to_timestamp, by_duration, from_file)
    if len(places) + sum(one is not None for one in given) != 1:
        raise click.UsageError(f"give one of {SCENARIOS}")
    when = to_timestamp
    if to_datetime is not None:
        when = read_datetime(to_datetime)
    if by_duration is not None:
        when = now_ms() - read_duration(by_duration)
    wanted = (
        Target(places[0] if places else None, to_offset, shift_by, when) if from_file is None else _read_file(from_file)
    )
    with cluster_of(bootstrap_server) as cluster:
        moves = plan_reset(cluster, name, wanted, partitions_of(cluster, topics))
        for one in moves:
            if one.wanted != one.offset:
                where = f"{one.topic}-{one.partition}"
                click.echo(f"warning: {where} has no offset {one.wanted}: offset {one.offset} is used", err=True)
        if execute:
            commit_offsets(cluster, name, {(one.topic, one.partition): one.offset for one in moves})
        if export:
            for one in moves:
                click.echo(f"{one.topic},{one.partition},{one.offset}")
        else:
            rows = [(name, one.topic, one.partition, one.offset) for one in moves]
            print_table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows)
        if not execute:
            click.echo("nothing was changed: add --execute", err=True)


def _check_contradictions(
    topics: tuple[str, ...], all_topics: bool, from_file: bool, dry_run: bool, execute: bool
) -> None:
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute contradict each other")
    if topics and all_topics:
        raise click.UsageError("--topic and --all-topics contradict each other")
    if from_file and (topics or all_topics):
        raise click.UsageError("--from-file names the partitions: leave --topic and --all-topics out")


def _read_file(lines: Iterable[str]) -> Offsets:
    found: Offsets = {}
    try:
        rows = list(csv.reader(lines))
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.BadParameter(f"it holds no lines of text: {error}", param_hint="--from-file") from None
    for number, row in enumerate(rows, start=1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            each, at = (topic.strip(), int(partition)), int(offset)
        except ValueError:
            raise click.BadParameter(f"line {number} is not topic,partition,offset", param_hint="--from-file") from None
        if each in found:
            raise click.BadParameter(f"line {number} names {topic}-{partition} again", param_hint="--from-file")
        found[each] = at
    return found


def partitions_of(cluster: Cluster, texts: Iterable[str]) -> list[TopicPartition]:
    """Parses `TOPIC` (all partitions) or `TOPIC:0,2`. Raises click.UsageError, RequestError."""
    found: list[TopicPartition] = []
    for text in texts:
        topic, _, numbers = text.partition(":")
        if numbers:
            try:
                found += [(topic, int(each)) for each in numbers.split(",")]
            except ValueError as error:
                raise click.UsageError(f"--topic {text}: partitions are numbers") from error
            continue
        found += [(topic, each) for each in cluster.partitions(topic)]
    return list(dict.fromkeys(found))
