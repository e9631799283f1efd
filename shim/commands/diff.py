"""`kafka-shim diff`: shows the first responses of two captures that differ in meaning, side by side."""

from __future__ import annotations

from collections import defaultdict

import click

from kafka_shim.errors import ErrorCode
from kafka_shim.plurals import counted
from kafka_shim.protocol.message import Message, has_version
from kafka_shim.wiretap.calls import Call, calls_of
from kafka_shim.wiretap.capture import CaptureError, read_capture
from kafka_shim.wiretap.compare import IGNORED, Pairs, answers_differ
from kafka_shim.wiretap.fetched import Fetched
from kafka_shim.wiretap.order import FETCH, arranged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

API_VERSIONS = 18
COLUMN = 60


def answers(path: str) -> list[Call]:
    """Returns the calls of a capture, connection by connection, in the order in which a replay sends them."""
    entries = [entry for _, entry in arranged(list(read_capture(path)))]
    found: dict[int, list[Call]] = defaultdict(list)
    for call in calls_of(entries):
        found[entries[call.sent].connection].append(call)
    return [call for connection in sorted(found) for call in found[connection]]


def flat(value: Any, version: int, path: str = "", field: str = "") -> Iterator[tuple[str, str]]:
    """Yields (path, value) of the fields of a message that are compared and that the version has."""
    if isinstance(value, Message):
        for name, _, versions, *_ in value.FIELDS:
            if name not in IGNORED and has_version(versions, version):
                yield from flat(getattr(value, name), version, f"{path}.{name}" if path else name, name)
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from flat(each, version, f"{path}[{at}]", field)
    else:
        yield path, ErrorCode(value).name if "error_code" in field and isinstance(value, int) else repr(value)


def beside(one: Any, two: Any, versions: tuple[int, int]) -> str:
    """Returns two messages, each of its version, field by field; `!` marks fields that differ."""
    left, right = dict(flat(one, versions[0])), dict(flat(two, versions[1]))
    rows = [(path, left.get(path, ""), right.get(path, "")) for path in dict.fromkeys((*left, *right))]
    widths = [min(COLUMN, max(len(row[at]) for row in rows)) for at in (0, 1)]
    return "\n".join(f"  {path:{widths[0]}} {'|' if a == b else '!'} {a:{widths[1]}} | {b}" for path, a, b in rows)


@click.command(name="diff", help="Compare two captures of the same traffic, answer by answer.")
@click.argument("first", type=click.Path(exists=True, dir_okay=False))
@click.argument("second", type=click.Path(exists=True, dir_okay=False))
def group(first: str, second: str) -> int:
    try:
        ours, theirs = answers(first), answers(second)
    except CaptureError as error:
        raise click.ClickException(str(error)) from None
    pairs = Pairs()
    fetched = Fetched(pairs)
    for number, (one, two) in enumerate(zip(ours, theirs, strict=False)):
        name = one.request.name
        if name != two.request.name:
            click.echo(f"answer {number}: {name}  |  {two.request.name}")
            return 1
        if one.response is None or two.response is None or one.request.api_key == API_VERSIONS:
            continue
        if one.request.api_key == FETCH:
            fetched.add(one.request.message, one.response, two.response)
            continue
        if answers_differ(one.response, two.response, pairs):
            click.echo(f"answer {number}, {name}:")
            click.echo(beside(one.response, two.response, (one.request.version, two.request.version)))
            return 1
    records, found = fetched.compare(is_whole=False)
    if found:
        click.echo(found[0][0])
        return 1
    if len(ours) != len(theirs):
        click.echo(f"{counted(len(ours), 'answer')}  |  {counted(len(theirs), 'answer')}")
        return 1
    click.echo(f"{counted(len(ours), 'answer')} and {counted(records, 'record')}, no difference")
    return 0
