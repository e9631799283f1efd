"""Shared parts of the subcommands: the address option, error output, and a few conversions."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, TypeVar

import click

from kafka_shim.wire_client import DEFAULT_BOOTSTRAP, Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_F = TypeVar("_F", bound="Callable[..., Any]")


def bootstrap_option(command: _F) -> _F:
    """Adds `--bootstrap-server HOST:PORT` to a command that connects to a broker."""
    return click.option(
        "--bootstrap-server", default=DEFAULT_BOOTSTRAP, show_default=True, metavar="HOST:PORT", help="the broker"
    )(command)


@contextmanager
def connected(bootstrap_server: str) -> Iterator[Connection]:
    """Opens a connection. An error on it ends the command with one line on stderr and exit status 1."""
    try:
        with Connection(bootstrap_server) as connection:
            yield connection
    except WireClientError as err:
        click.echo(f"error: {err}", err=True)
        raise click.exceptions.Exit(1) from None


def parse_pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """Parses `name=value` arguments into a dict. Raises click.BadParameter for one without `=`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def joined(numbers: Any) -> str:
    """Joins numbers with commas, as Kafka's tools print replicas."""
    return ",".join(map(str, numbers or ()))
