"""`kafka-shim top`: what a cluster does, refreshed in the terminal. It asks Admin APIs, so it works with any Kafka."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass

import click

from kafka_shim.client.overview import look
from kafka_shim.commands.options import bootstrap_option, cluster_of, step_back
from kafka_shim.commands.times import now_ms, shown_duration, shown_time
from kafka_shim.plurals import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from kafka_shim.client.overview import Overview

EPILOG = """\b
Examples:
  kafka-shim top
  kafka-shim top --once --json | jq .groups

\b
Rates count offsets between two looks, so markers of transactions are counted too.
A look costs a few requests, at a large cluster more, and comes less often there; it shows at most 200 groups.
Connections are no part of Kafka's protocol: the metrics at kafka.shim.http.listener have them.

\b
Exit status: 0 ended by Ctrl-C or --once; 1 the broker refused or was not reached; 2 wrong options.
"""
LEAST_REFRESH_S, MOST_REFRESH_S = 0.5, 60.0
# A look at a large cluster takes a while: so many times as long passes before the next.
PAUSE_FACTOR = 10
# The least width of a name in a narrow terminal, and the space between two columns.
LEAST_NAME, GAP = 16, 2


def _checked_number(context: click.Context, parameter: click.Parameter, seconds: float) -> float:
    """click's range lets nan through, which is neither below nor above it."""
    if math.isnan(seconds):
        raise click.BadParameter(f"nan is not in the range {LEAST_REFRESH_S}<=x<={MOST_REFRESH_S}.", param=parameter)
    return seconds


@click.command(name="top", epilog=EPILOG, help="Watch throughput by topic, lag of groups and open transactions.")
@bootstrap_option
@click.option(
    "--refresh",
    type=click.FloatRange(LEAST_REFRESH_S, MOST_REFRESH_S),
    callback=_checked_number,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="between two looks",
)
@click.option("--rows", type=click.IntRange(1, 1000), default=15, show_default=True, help="of each table")
@click.option("--once", is_flag=True, help="two looks, then end")
@click.option("--json", "is_json", is_flag=True, help="with --once: one JSON object")
def group(bootstrap_server: str, refresh: float, rows: int, once: bool, is_json: bool) -> None:
    if is_json and not once:
        raise click.UsageError("--json needs --once")
    with cluster_of(bootstrap_server) as cluster:
        before = look(cluster)
        if once:
            time.sleep(refresh)
            view = compare(before, look(cluster, before))
            if is_json:
                click.echo(json.dumps(as_json(view), indent=2))
            else:
                from rich.console import Console

                Console(width=None if sys.stdout.isatty() else 120).print(screen(view, rows))
            return
        from rich.live import Live

        if not sys.stdout.isatty():
            click.echo("warning: the screen needs a terminal, and the output is none: --once prints it", err=True)
        step_back()
        try:
            with Live(screen(compare(before, before), rows), screen=True, auto_refresh=False) as live:
                took_s = 0.0
                while True:
                    time.sleep(max(refresh, PAUSE_FACTOR * took_s))
                    began_s = time.monotonic()
                    after = look(cluster, before)
                    took_s = time.monotonic() - began_s
                    live.update(screen(compare(before, after), rows), refresh=True)
                    before = after
        except KeyboardInterrupt:
            pass


@dataclass(frozen=True, slots=True)
class TopicRate:
    """A topic between two looks. `rate` is None for one that was made in between."""

    name: str
    partitions: int
    records: int
    held: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class View:
    """What is shown."""

    overview: Overview
    topics: list[TopicRate]


def compare(before: Overview, after: Overview) -> View:
    """Two looks, the busiest topics first."""
    seconds = after.taken_s - before.taken_s
    known, now = before.records(), after.records()
    counts: dict[str, int] = {}
    held: dict[str, int] = {}
    for each, end in after.ends.items():
        counts[each[0]] = counts.get(each[0], 0) + 1
        held[each[0]] = held.get(each[0], 0) + end - after.starts.get(each, 0)
    topics = [
        TopicRate(
            name,
            counts[name],
            total,
            held[name],
            # A topic that was deleted and made again starts over.
            max(0, total - known[name]) / seconds if name in known and seconds > 0 else None,
        )
        for name, total in now.items()
    ]
    return View(after, sorted(topics, key=lambda one: (-(one.rate or 0), -one.held, one.name)))


def as_json(view: View) -> dict[str, Any]:
    found = view.overview
    return {
        "brokers": found.brokers,
        "topics": [
            {
                "topic": one.name,
                "partitions": one.partitions,
                "offsetsWritten": one.records,
                "offsetsHeld": one.held,
                "perSecond": None if one.rate is None else round(one.rate, 1),
            }
            for one in view.topics
        ],
        "groups": [
            {"group": one.group_id, "type": one.kind, "state": one.state, "lag": one.lag} for one in found.groups
        ],
        "groupsLeftOut": found.groups_left_out,
        "transactions": [
            {
                "transactionalId": one.transactional_id,
                "producerId": one.producer_id,
                "state": one.state,
                "started": shown_time(one.started_ms),
                "timeoutMs": one.timeout_ms,
                "partitions": [f"{topic}-{part}" for topic, part in one.partitions],
            }
            for one in found.transactions
        ],
        "refused": found.refused,
    }


def screen(view: View, rows: int) -> RenderableType:
    """The tables; the last line says what is left out."""
    from rich.console import Group
    from rich.text import Text

    found = view.overview
    total = sum(one.rate or 0 for one in view.topics)
    head = (
        f"{counted(found.brokers, 'broker')}  {counted(len(view.topics), 'topic')}  "
        f"{counted(len(found.ends), 'partition')}  {counted(len(found.groups), 'group')}  "
        f"{counted(len(found.transactions), 'open transaction')}  {total:,.0f} records/s"
    )
    topics = [
        (one.name, one.partitions, f"{one.held:,}", "-" if one.rate is None else f"{one.rate:,.1f}")
        for one in view.topics
    ]
    groups = [
        (one.group_id, one.kind, one.state, "-" if one.lag is None else f"{one.lag:,}")
        for one in sorted(found.groups, key=lambda one: (-(one.lag or 0), one.group_id))
    ]
    now = now_ms()
    open_now = [
        (
            one.transactional_id,
            one.state,
            shown_duration(max(0, now - one.started_ms)),
            shown_duration(one.timeout_ms),
            ", ".join(
                [*(f"{topic}-{part}" for topic, part in one.partitions[:4]), *["..."][: len(one.partitions[4:])]]
            ),
        )
        for one in found.transactions
    ]
    parts: list[RenderableType] = [
        Text(head, style="bold"),
        Fitted(("TOPIC", "PARTITIONS", "HELD", "RECORDS/S"), topics, rows, (1, 2)),
        Fitted(("GROUP", "TYPE", "STATE", "LAG"), groups, rows, (1, 2)),
        Fitted(("TRANSACTION", "STATE", "OPEN FOR", "TIMEOUT", "PARTITIONS"), open_now, rows, (4, 1, 3)),
    ]
    left = max(0, len(topics) - rows), max(0, len(groups) - rows) + found.groups_left_out
    if any(left):
        parts.append(Text(f"not shown: {counted(left[0], 'topic')}, {counted(left[1], 'group')}", style="dim"))
    parts += [Text(text, style="red") for text in found.refused[:3]]
    return Group(*parts)


class Fitted:
    """A table as wide as its place. Where that is narrow, columns are left out, those of `first_out` in its order,
    until there is room for the first one, a name, which is then cut.
    """

    def __init__(
        self, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]], most: int, first_out: tuple[int, ...]
    ) -> None:
        self._columns = columns
        self._rows = [tuple(str(cell) for cell in row) for row in rows[:most]]
        self._first_out = first_out

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        widths = [max(map(len, column)) for column in zip(self._columns, *self._rows, strict=True)]
        shown = list(range(len(widths)))

        def left_for_name() -> int:
            return options.max_width - sum(widths[number] + GAP for number in shown[1:])

        for number in self._first_out:
            if left_for_name() < min(LEAST_NAME, widths[0]):
                shown.remove(number)
        table = Table(box=None, pad_edge=False, expand=False)
        table.add_column(self._columns[0], no_wrap=True, max_width=max(1, min(widths[0], left_for_name())))
        for number in shown[1:]:
            table.add_column(self._columns[number], no_wrap=True, justify="right")
        for row in self._rows:
            table.add_row(*[Text(row[number]) for number in shown])
        yield table
