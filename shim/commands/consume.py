"""`kafka-shim consume`: prints records of topics."""

from __future__ import annotations

import base64
import errno
import json
import os
import select
import sys
import time
from contextlib import suppress

import click

from kafka_shim.client.cluster import LOST
from kafka_shim.client.consumer_membership import ConsumerMember
from kafka_shim.client.reading import EARLIEST, LATEST, fetch, is_data, list_offsets
from kafka_shim.commands.options import bootstrap_option, cluster_of
from kafka_shim.commands.times import read_when, shown_time
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.client.records import Record

    Positions = dict[TopicPartition, int]

EPILOG = """\b
Examples:
  kafka-shim consume orders                        all there is, then it ends
  kafka-shim consume orders --from end --follow    what comes from now on, until Ctrl-C
  kafka-shim consume orders --from 42 -p 0 -n 1    one record
  kafka-shim consume orders --from 5m --json       of the last five minutes, with keys, headers and times
  kafka-shim consume orders --group billing -n 10  the group's next ten, which are committed

\b
Exit status: 0 printed; 1 the broker refused or was not reached; 2 wrong options.
"""
WAIT_MS = 500
UNASSIGNED_S = 0.05
# Between two looks whether a broker that went away is back.
LOST_S = 0.5
BEGINNING = ("beginning", 0)


@click.command(name="consume", epilog=EPILOG, help="Print the records of TOPICS, and end with the last one.")
@click.argument("topics", nargs=-1, required=True)
@bootstrap_option
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="beginning, end, an offset, -N before the end, a time as 2026-01-31T12:00:00, or a duration ago as 5m  "
    "[default: beginning; with --group what is committed, else beginning]",
)
@click.option("-p", "--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="only it; repeatable")
@click.option("-n", "--count", type=click.IntRange(min=1), help="end after so many")
@click.option("-f", "--follow", is_flag=True, help="wait for more at the end")
@click.option("--group", metavar="GROUP", help="as a member of this group, which commits what was printed")
@click.option("--read-committed", is_flag=True, help="only records of committed transactions, and those without one")
@click.option("--key-separator", metavar="TEXT", help="print keys too, before it")
@click.option("--json", "is_json", is_flag=True, help="one JSON object a line, with key, headers and time")
def group(
    topics: tuple[str, ...],
    bootstrap_server: str,
    start: str | None,
    partitions: tuple[int, ...],
    count: int | None,
    follow: bool,
    group: str | None,
    read_committed: bool,
    key_separator: str | None,
    is_json: bool,
) -> None:
    if group is not None and partitions:
        raise click.UsageError("--group and --partition exclude each other: a group assigns partitions itself")
    if is_json and key_separator is not None:
        raise click.UsageError("--json and --key-separator exclude each other: JSON has the key")
    where = read_start(start or "beginning")

    def show(record: Record) -> bytes:
        return _json_line(record) if is_json else _plain_line(record, key_separator)

    with cluster_of(bootstrap_server) as cluster:
        reader = Reader(cluster, read_committed, follow, count, show)
        try:
            if group is None:
                wanted = [(topic, one) for topic in topics for one in partitions or cluster.partitions(topic)]
                reader.read(starts(cluster, wanted, where, read_committed))
            else:
                for topic in topics:
                    cluster.partitions(topic)  # a group may wait for a topic that is not there; a reader does not
                reader.read_as(ConsumerMember(cluster, group, topics), where)
        except KeyboardInterrupt:
            pass


# --- where to begin


def read_start(text: str) -> tuple[str, int]:
    """("beginning" | "end" | "offset" | "before-end" | "time", number). Raises click.BadParameter."""
    if text in ("beginning", "end"):
        return text, 0
    if text.removeprefix("-").isdecimal():
        # A bare number is an offset, not a time.
        return ("before-end", int(text[1:])) if text.startswith("-") else ("offset", int(text))
    try:
        return "time", read_when(text)
    except click.BadParameter:
        raise click.BadParameter(
            f"--from takes beginning, end, an offset, -N before the end, a time (2026-01-31T12:00:00Z) or a duration "
            f"ago (5m, P1D), not {text!r}"
        ) from None


def starts(cluster: Cluster, wanted: Iterable[TopicPartition], where: tuple[str, int], committed: bool) -> Positions:
    """Returns the offset of each partition to begin at."""
    kind, number = where
    parts = list(wanted)
    if kind == "offset":
        return dict.fromkeys(parts, number)
    if kind == "beginning":
        return list_offsets(cluster, dict.fromkeys(parts, EARLIEST))
    ends = list_offsets(cluster, dict.fromkeys(parts, LATEST), read_committed=committed)
    if kind == "end":
        return ends
    if kind == "before-end":
        first = list_offsets(cluster, dict.fromkeys(parts, EARLIEST))
        return {each: max(end - number, first[each]) for each, end in ends.items()}
    found = list_offsets(cluster, dict.fromkeys(parts, number))
    return {each: at if at >= 0 else ends[each] for each, at in found.items()}


class Reader:
    """Reads until there is enough, or nothing more."""

    def __init__(
        self, cluster: Cluster, committed: bool, follow: bool, count: int | None, show: Callable[[Record], bytes]
    ) -> None:
        self._cluster = cluster
        self._committed = committed
        self._follow = follow
        self._left = count
        self._show = show
        self._is_waiting = False

    def _end_offsets(self, parts: Iterable[TopicPartition]) -> Positions:
        return list_offsets(self._cluster, dict.fromkeys(parts, LATEST), read_committed=self._committed)

    def read(self, positions: Positions) -> None:
        """Print from these offsets on."""
        ends = {} if self._follow else self._end_offsets(positions)
        while not self._is_done(positions, ends):
            try:
                self._step(positions, ends)
            except WireClientError as error:
                self._wait_for_broker(error)

    def read_as(self, member: ConsumerMember, where: tuple[str, int]) -> None:
        """Print what a member of a group is assigned, from what is committed on, or from `where`."""
        positions: Positions = {}
        ends: Positions = {}
        stored: Positions = {}
        has_changed = False
        try:
            while self._left != 0 or stored != positions:
                try:
                    has_changed = member.beat() or has_changed
                    if has_changed:
                        positions = self._of_member(member, where)
                        ends = {} if self._follow else self._end_offsets(positions)
                        stored, has_changed = dict(positions), False
                    if not member.is_new and not self._follow and self._is_done(positions, ends):
                        break
                    if not positions:
                        time.sleep(UNASSIGNED_S)
                    else:
                        if self._left != 0:
                            self._step(positions, ends)
                        member.commit({each: at for each, at in positions.items() if at != stored[each]})
                        stored = dict(positions)
                except WireClientError as error:
                    self._wait_for_broker(error)
        finally:
            with suppress(*LOST):  # the group does without a member that it does not hear
                member.leave()

    def _wait_for_broker(self, error: WireClientError) -> None:
        """Wait a moment for a broker that went away, as a consumer does that follows what comes. Raises any other
        error."""
        if not self._follow or not self._cluster.drop_lost(error):
            raise error
        if not self._is_waiting:
            click.echo(f"warning: {error}; it goes on when the broker is back", err=True)
            self._is_waiting = True
        _stop_without_reader()
        time.sleep(LOST_S)

    def _of_member(self, member: ConsumerMember, where: tuple[str, int]) -> Positions:
        committed = member.committed()
        known = {each: committed[each] for each in member.assigned if each in committed}
        first = list_offsets(self._cluster, dict.fromkeys(known, EARLIEST))
        last = list_offsets(self._cluster, dict.fromkeys(known, LATEST))
        lost = {each: at for each, at in known.items() if not first[each] <= at <= last[each]}
        # As a consumer by its auto.offset.reset: no option of this command could move what is committed.
        again = starts(self._cluster, lost, BEGINNING if where[0] == "offset" else where, self._committed)
        for (topic, part), at in sorted(lost.items()):
            click.echo(
                f"warning: {topic}-{part} has no offset {at}, which is committed: it is read from offset "
                f"{again[topic, part]} on",
                err=True,
            )
        return {**starts(self._cluster, member.assigned - known.keys(), where, self._committed), **known, **again}

    def _is_done(self, positions: Positions, ends: Positions) -> bool:
        if self._left == 0:
            return True
        return not self._follow and all(at >= ends[each] for each, at in positions.items())

    def _step(self, positions: Positions, ends: Positions) -> None:
        todo = positions if self._follow else {each: at for each, at in positions.items() if at < ends[each]}
        try:
            found = fetch(self._cluster, todo, max_wait_ms=WAIT_MS, read_committed=self._committed)
        except RequestError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                held = list_offsets(self._cluster, dict.fromkeys(todo, EARLIEST))
                first = ", ".join(f"{topic}-{part} begins at {at}" for (topic, part), at in sorted(held.items()))
                raise RequestError(error.code, f"{first}; give another --from", str(error).split(":")[0]) from None
            raise
        out = sys.stdout.buffer
        for got in found:
            each = got.topic, got.partition
            end = ends.get(each, got.next_offset)
            # What has come since the end was asked for is not printed, and must not be committed.
            position = min(got.next_offset, end)
            for record in got.records:
                if is_data(record) and record.offset < end:
                    if self._left == 0:
                        position = record.offset
                        break
                    out.write(self._show(record) + b"\n")
                    if self._left is not None:
                        self._left -= 1
            positions[each] = position
        out.flush()
        self._is_waiting = False
        if self._follow:
            _stop_without_reader()


def _stop_without_reader() -> None:
    """Raises BrokenPipeError if nobody reads the output any more, as behind `| head`: the next record may be long in
    coming."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)  # without an event mask poll reports errors alone
    except OSError:  # it is no file
        return
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


# --- how it is shown


def _plain_line(record: Record, separator: str | None) -> bytes:
    value = b"null" if record.value is None else record.value
    if separator is None:
        return value
    return (b"null" if record.key is None else record.key) + separator.encode() + value


def _json_line(record: Record) -> bytes:
    return json.dumps(as_json(record), ensure_ascii=False).encode(errors="replace")


def as_json(record: Record) -> dict[str, Any]:
    """A record as an object that `produce --json-lines` reads. Bytes that are no UTF-8 are {"base64": ...}."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "time": shown_time(record.timestamp_ms),
        "key": _content(record.key),
        "value": _content(record.value),
        "headers": [[name, _content(value)] for name, value in record.headers],
    }


def _content(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
