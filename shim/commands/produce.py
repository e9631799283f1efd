"""`kafka-shim produce`: writes lines of standard input, or of files, as records."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

import click

from kafka_shim.client.lines import Lines
from kafka_shim.client.writing import CODECS, Producer
from kafka_shim.commands.options import bootstrap_option, cluster_of, json_option, show_rows
from kafka_shim.plurals import counted
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    from kafka_shim.client.writing import Written

EPILOG = """\b
Examples:
  echo hello | kafka-shim produce orders
  kafka-shim produce orders --key-separator : < lines      key:value
  kafka-shim produce orders --json-lines < records.jsonl   {"key": "k", "value": "v", "headers": {"h": "x"}}
  kafka-shim produce orders --transactional-id t --compression zstd < lines

\b
Exit status: 0 all is stored; 1 the broker refused or was not reached; 2 wrong options or input.
"""
ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
# What waits is sent when no line has come for so long. In a transaction nobody could read it yet, and the time that the
# broker gives a transaction would begin.
PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """One record of the input. `partition` and `timestamp_ms` None: the producer chooses."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@click.command(name="produce", epilog=EPILOG, help="Write each line of standard input as a record of TOPIC.")
@click.argument("topic")
@bootstrap_option
@click.option("--file", "source", type=click.File("rb"), default="-", help="read this file instead")
@click.option("--key-separator", metavar="TEXT", help="what stands between key and value  [default: no keys]")
@click.option("--key", help="the key of all records")
@click.option("--null-value", metavar="TEXT", help="a value that is this text is a tombstone")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="of all records; repeatable")
@click.option("--json-lines", is_flag=True, help="each line is an object: key, value, headers, partition, timestamp")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="write to this one  [default: by key, or in turn]")
@click.option("--compression", type=click.Choice(list(CODECS)), default="none", show_default=True)
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("--transactional-id", metavar="ID", help="all of it in one transaction, which a mistake aborts")
@json_option
def group(
    topic: str,
    bootstrap_server: str,
    source: BinaryIO,
    key_separator: str | None,
    key: str | None,
    null_value: str | None,
    headers: tuple[str, ...],
    json_lines: bool,
    partition: int | None,
    compression: str,
    acks: str,
    transactional_id: str | None,
) -> None:
    if sum((key_separator is not None, key is not None, json_lines)) > 1:
        raise click.UsageError("--key, --key-separator and --json-lines exclude each other: each says where keys are")
    if transactional_id is not None and ACKS[acks] != -1:
        raise click.UsageError("--transactional-id needs --acks all")
    if key_separator == "":
        raise click.UsageError("--key-separator is empty")
    added = tuple(_header(text) for text in headers)
    reader = Reader(key_separator, None if key is None else key.encode(), null_value, json_lines)
    with cluster_of(bootstrap_server) as cluster:
        cluster.any()  # before the first line is read: who types learns now that nothing listens
        written = _write(
            topic,
            (line and _with(line, added, partition) for line in reader.lines(source)),
            Producer(cluster, acks=ACKS[acks], compression=compression, transactional_id=transactional_id),
            transactional_id is not None,
            source.isatty(),
        )
        _tell(written)


def _write(
    topic: str,
    lines: Iterator[Line | None],
    producer: Producer,
    is_transaction: bool,
    interactive: bool,
) -> list[Written]:
    """`interactive`: the lines are typed, each is wanted to be stored at once."""
    written: list[Written] = []
    producer.begin()
    try:
        for line in lines:
            if line is None:
                if not is_transaction:
                    written += producer.flush()
                continue
            producer.send(
                topic,
                line.value,
                line.key,
                headers=line.headers,
                partition=line.partition,
                timestamp_ms=line.timestamp_ms,
            )
            if interactive and not is_transaction:
                written += producer.flush()
        if is_transaction:
            return written + producer.commit()
        return written + producer.flush()
    except BaseException as ended:
        is_interrupted = isinstance(ended, KeyboardInterrupt)
        if is_transaction:
            with suppress(WireClientError):  # the first error is the one that is printed
                producer.abort()
                if is_interrupted:
                    click.echo("the transaction is aborted", err=True)
        else:  # the lines before a wrong one are written, as those before it would be without a batch
            try:
                written += producer.flush()
            except WireClientError as refused:
                click.echo(f"error: {refused}", err=True)  # behind it comes what went wrong first
                written += producer.flush()  # nothing waits any more
            if is_interrupted:
                _tell(written)
            elif written:
                # Who mends what was refused and gives all of them again would have these twice.
                click.echo(_summary(_rows(written)), err=True)
        raise


def _tell(written: list[Written]) -> None:
    rows = _rows(written)
    show_rows(("Topic", "Partition", "Count", "FirstOffset"), rows, lambda: click.echo(_summary(rows), err=True))


def _rows(written: list[Written]) -> list[tuple[str, int, int, int | None]]:
    """Of each partition its topic, index, the number of records and the first offset, if the broker has told it."""
    counts: dict[tuple[str, int], list[int]] = {}
    for one in written:
        first_and_count = counts.setdefault((one.topic, one.partition), [one.offset, 0])
        first_and_count[1] += one.count
    return [
        (topic, partition, count, first if first >= 0 else None)
        for (topic, partition), (first, count) in sorted(counts.items())
    ]


def _summary(rows: list[tuple[str, int, int, int | None]]) -> str:
    total = sum(row[2] for row in rows)
    where = ", ".join(
        f"{topic}-{partition} from offset {'-' if first is None else first}" for topic, partition, _, first in rows
    )
    return f"{counted(total, 'record')} written{': ' + where if where else ''}"


class Reader:
    """Parses the lines of the input."""

    def __init__(self, separator: str | None, key: bytes | None, null_value: str | None, is_json: bool) -> None:
        self._separator = None if separator is None else separator.encode()
        self._key = key
        self._null_value = None if null_value is None else null_value.encode()
        self._is_json = is_json

    def lines(self, source: BinaryIO) -> Iterator[Line | None]:
        """And None where no line has come for a while. Raises click.ClickException with the number of a line that is
        not one."""
        number = 0
        for raw in Lines(source, PAUSE_S):
            if raw is None:
                yield None
                continue
            number += 1
            text = raw.removesuffix(b"\r")
            if self._is_json:
                if text.strip():
                    yield _json_line(number, text)
                continue
            key = self._key
            if self._separator is not None:
                key, found, value = text.partition(self._separator)
                if not found:
                    raise InputError(f"line {number} has no key separator {self._separator.decode()!r}")
                text = value
            yield Line(key, None if text == self._null_value else text)


# What the protocol has room for, and how it says that a record has no time.
INT32_MAX, INT64_MAX, NO_TIME = (1 << 31) - 1, (1 << 63) - 1, -1
TOO_DEEP = 'give such a value as text, or as {"base64": ...}'


class InputError(click.ClickException):
    """Input that is no record."""

    exit_code = 2


def _json_line(number: int, text: bytes) -> Line:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"line {number} is not JSON: {error}") from None
    except RecursionError:
        raise InputError(f"line {number} is nested too deeply: {TOO_DEEP}") from None
    fields = {"key", "value", "headers", "partition", "timestamp", "offset", "topic", "time"}
    if not isinstance(found, dict) or not set(found) <= fields:
        raise InputError(f"line {number} is not an object of {', '.join(sorted(fields))}")
    try:
        return Line(
            _content(found.get("key")),
            _content(found.get("value")),
            tuple((_name(name), _content(value)) for name, value in _pairs(found.get("headers"))),
            _number("partition", found.get("partition"), 0, INT32_MAX),
            _number("timestamp", found.get("timestamp"), NO_TIME, INT64_MAX),
        )
    except RecursionError:
        raise InputError(f"line {number} is nested too deeply: {TOO_DEEP}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"line {number}: {error}") from None


def _number(field: str, value: Any, lowest: int, highest: int) -> int | None:
    """A whole number, also as text, or None. Raises TypeError, ValueError."""
    if value is None:
        return None
    is_none = isinstance(value, bool) or (isinstance(value, float) and not value.is_integer())
    if is_none or not lowest <= (number := int(value)) <= highest:
        raise ValueError(f"{field} is a whole number from {lowest} to {highest}, not {value}")
    return number


def _pairs(headers: Any) -> Iterable[tuple[object, object]]:
    """Headers as an object, or as a list of [name, value], in which a name may come twice. Raises ValueError."""
    if not headers:
        return ()
    if isinstance(headers, dict):
        return headers.items()
    if not isinstance(headers, list) or not all(isinstance(one, list) and len(one) == 2 for one in headers):
        raise ValueError("headers is an object, or a list of [name, value]")
    return headers


def _name(value: object) -> str:
    """The name of a header. Raises ValueError for one that is no text, or no Unicode."""
    if not isinstance(value, str):
        raise ValueError(f"the name of a header is a text, not {json.dumps(value)}")  # noqa: TRY004 told with its line
    value.encode()
    return value


def _content(value: object) -> bytes | None:
    """A JSON value as stored: text as it is, {"base64": ...} as bytes, all else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and list(value) == ["base64"]:
        import base64

        return base64.b64decode(value["base64"], validate=True)
    return json.dumps(value).encode()


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()


def _with(line: Line, headers: tuple[tuple[str, bytes | None], ...], partition: int | None) -> Line:
    chosen = line.partition if line.partition is not None else partition
    return Line(line.key, line.value, line.headers + headers, chosen, line.timestamp_ms)
