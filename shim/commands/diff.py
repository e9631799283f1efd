"""`kafka-shim diff`: the first answers of two captures that mean different things, side by side."""

from __future__ import annotations

from typing import Any

import click

from cext.wire import WireError
from shim.wiretap.capture import CaptureError, Kind, read_capture
from shim.wiretap.compare import Pairs, differences
from shim.wiretap.frames import Request, parse_request, parse_response

API_VERSIONS, FETCH = 18, 1


def answers(path: str) -> list[tuple[Request, Any]]:
    """(request, response) in the order in which the requests were sent, connection by connection."""
    waiting: dict[int, list[Request]] = {}
    found: dict[int, list[tuple[Request, Any]]] = {}
    for entry in read_capture(path):
        if entry.kind == Kind.REQUEST:
            try:
                request = parse_request(entry.frame)
            except WireError:
                continue
            if request.is_answered:
                waiting.setdefault(entry.connection, []).append(request)
        elif entry.kind == Kind.RESPONSE and waiting.get(entry.connection):
            request = waiting[entry.connection].pop(0)
            found.setdefault(entry.connection, []).append((request, parse_response(request, entry.frame)))
    return [row for connection in sorted(found) for row in found[connection]]


@click.command(name="diff", help="Compare two captures of the same traffic, answer by answer.")
@click.argument("first", type=click.Path(exists=True, dir_okay=False))
@click.argument("second", type=click.Path(exists=True, dir_okay=False))
def group(first: str, second: str) -> int:
    try:
        ours, theirs = answers(first), answers(second)
    except CaptureError as error:
        raise click.ClickException(str(error)) from None
    pairs = Pairs()
    for number, ((request, one), (other_request, two)) in enumerate(zip(ours, theirs, strict=False)):
        if request.name != other_request.name:
            click.echo(f"request {number}: {request.name}  |  {other_request.name}")
            return 1
        lines = [] if request.api_key in (API_VERSIONS, FETCH) else differences(one, two, pairs)
        if lines:
            click.echo(f"request {number}, {request.name}:")
            for line in lines:
                click.echo(f"  {line}")
            return 1
    if len(ours) != len(theirs):
        click.echo(f"{len(ours)} answers  |  {len(theirs)} answers")
        return 1
    click.echo(f"{len(ours)} answers, no difference")
    return 0
