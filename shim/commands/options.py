"""Shared parts of the subcommands: the address option, error output, and a few conversions."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click

from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import (
    DEFAULT_BOOTSTRAP,
    CannotConnectError,
    Connection,
    ConnectionLostError,
    HandshakeLostError,
    OtherProtocolError,
    RequestError,
    SilentPeerError,
    WireClientError,
    parse_address,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.client_security import ClientSecurity

_F = TypeVar("_F", bound="Callable[..., Any]")
T = TypeVar("T")


_SECURITY, _ROWS = "kafka_shim.security", "kafka_shim.rows"


def bootstrap_option(command: _F) -> _F:
    """Adds `--bootstrap-server HOST:PORT`, which is `--bootstrap` too, and `--command-config FILE` to a command that
    connects to a broker. The file is for `connected`."""
    address = click.option(
        "--bootstrap-server",
        "--bootstrap",
        "bootstrap_server",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        envvar="KAFKA_SHIM_BOOTSTRAP",
        show_envvar=True,
        metavar="HOST:PORT",
        callback=_checked_address,
        help="the broker",
    )
    return address(config_option(command))


def _checked_address(context: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        for each in [one for one in text.split(",") if one.strip()] or [text]:
            parse_address(each)
    except WireClientError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    return text


def config_option(command: _F) -> _F:
    """Adds `--command-config FILE` to a command, in which `given_security` returns what it says."""
    return click.option(
        "--command-config",
        metavar="FILE",
        expose_value=False,
        callback=_read_security,
        envvar="KAFKA_SHIM_COMMAND_CONFIG",
        show_envvar=True,
        help="properties of a Kafka client, for listeners with TLS or SASL",
    )(command)


def given_security() -> ClientSecurity | None:
    """What `--command-config` of the command that runs says, or None."""
    found: ClientSecurity | None = click.get_current_context().meta.get(_SECURITY)
    return found


def json_option(command: _F) -> _F:
    """Adds `--json` to a command that prints with `show_rows`: one JSON array, once all was successful."""
    return click.option("--json", is_flag=True, expose_value=False, callback=_collect_rows, help="one JSON array")(
        command
    )


def _collect_rows(context: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        context.meta[_ROWS] = []


def wants_json() -> bool:
    """Whether the command that runs has `--json`."""
    return _ROWS in click.get_current_context().meta


def show_rows(columns: Iterable[str], rows: Iterable[Iterable[object]], print_them: Callable[[], None]) -> None:
    """Print rows: as members of the JSON array, whose keys are the columns in camel case, or by `print_them`. None is
    null, and in a table a dash: "-" and "None" may be names of something."""
    context = click.get_current_context()
    if _ROWS not in context.meta:
        print_them()
        return
    keys = [_key(column) for column in columns]
    context.meta[_ROWS] += [dict(zip(keys, row, strict=True)) for row in rows]


def _key(column: str) -> str:
    """consumerId for CONSUMER-ID, members for #MEMBERS, topicId for TopicId, durationMin for Duration(min)."""
    words: list[str] = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", column)
    return words[0].lower() + "".join(word.title() for word in words[1:])


def security_option(name: str, help_text: str) -> Callable[[_F], _F]:
    """An option for a further file of properties: the command gets a `ClientSecurity`, or None."""
    return click.option(name, metavar="FILE", callback=_security_of, help=help_text)


def _read_security(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    found = _security_of(context, parameter, path)
    if found is not None:
        context.meta[_SECURITY] = found


def _security_of(context: click.Context, parameter: click.Parameter, path: str | None) -> ClientSecurity | None:
    if path is None:
        return None
    from kafka_shim.client_security import read_client_security
    from kafka_shim.config import ConfigError

    try:
        found = read_client_security(path)
        warn_of_strange(path)
    except ConfigError as err:
        raise click.BadParameter(str(err), param=parameter) from None
    return found


def warn_of_strange(path: str) -> None:
    """Say which properties of a client's file are misspelt. Raises ConfigError."""
    from kafka_shim.client_security import strange_properties
    from kafka_shim.config import read_properties

    for line in strange_properties(read_properties(path)):
        click.echo(f"warning: {path}: {line}", err=True)


@contextmanager
def connected(bootstrap_server: str) -> Iterator[Connection]:
    """Opens a connection. An error on it ends the command with one line on stderr and exit status 1."""
    with _told() as security, Connection(bootstrap_server, security=security) as connection:
        yield connection


@contextmanager
def cluster_of(bootstrap_server: str) -> Iterator[Cluster]:
    """Opens connections to all brokers that a command needs. Errors are told as by `connected`."""
    from kafka_shim.client.cluster import Cluster

    with _told() as security, Cluster(bootstrap_server, security=security) as cluster:
        yield cluster


@contextmanager
def _told() -> Iterator[Any]:
    context = click.get_current_context(silent=True)
    security = None if context is None else context.meta.get(_SECURITY)
    try:
        yield security
        if context is not None and _ROWS in context.meta:
            click.echo(json.dumps(context.meta[_ROWS], indent=2))
    except WireClientError as err:
        for each in err.errors if isinstance(err, _SeveralError) else (err,):
            click.echo(f"error: {each}{_advice(each, security)}", err=True)
        raise click.exceptions.Exit(1) from None


class _SeveralError(WireClientError):
    """Several of the things that one command was given failed."""

    def __init__(self, errors: list[RequestError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


def each_in_turn(results: Iterable[T], tell: Callable[[T], None]) -> None:
    """Tell of each result, those that failed at the end and each of them. Raises WireClientError if there are any."""
    failed = []
    for result in results:
        try:
            tell(result)
        except RequestError as error:
            failed.append(error)
    if failed:
        raise _SeveralError(failed)


# Advice for error codes that come without a message and do not say what to do.
_WHAT_TO_DO = {
    "INVALID_REGULAR_EXPRESSION": " (patterns are of RE2, as orders-.*)",
    "UNKNOWN_TOPIC_OR_PARTITION": " (kafka-shim topics list shows what is there)",
    "TRANSACTIONAL_ID_NOT_FOUND": " (kafka-shim transactions list shows what is there)",
    "SECURITY_DISABLED": " (the broker's option authorizer.class.name names one)",
    "GROUP_ID_NOT_FOUND": " (kafka-shim groups list shows what is there)",
    "NON_EMPTY_GROUP": " (stop its members first: kafka-shim groups describe GROUP --members)",
    "KAFKA_STORAGE_ERROR": " (a full disk, mostly: the broker's log names the file and the reason)",
    "MESSAGE_TOO_LARGE": " (message.max.bytes of the broker, or max.message.bytes of the topic, is the limit)",
    "INVALID_PRODUCER_EPOCH": " (another producer has taken over its transactional id)",
    "PRODUCER_FENCED": " (another producer has taken over its transactional id)",
}


def _advice(err: WireClientError, security: object) -> str:
    """What to do about errors that the broker does not explain."""
    if isinstance(err, RequestError):
        denied = err.code.name.endswith("AUTHORIZATION_FAILED")
        return " (the user needs an ACL: kafka-shim acls add)" if denied else _WHAT_TO_DO.get(err.code.name, "")
    if isinstance(err, OtherProtocolError):
        if err.name == "TLS":
            return (
                "" if security else " (give the client's properties with --command-config FILE: security.protocol=SSL)"
            )
        return " (name a listener of the broker with --bootstrap-server)"
    if isinstance(err, SilentPeerError):
        return " (is it a listener of a broker? servers of other protocols wait for more)"
    if isinstance(err, CannotConnectError):
        return " (is it running? name another with --bootstrap-server or KAFKA_SHIM_BOOTSTRAP)"
    if isinstance(err, ConnectionLostError) and not isinstance(err, HandshakeLostError):
        if security is None and err.is_unanswered:
            return " (if the listener has TLS or SASL, give the client's properties with --command-config FILE)"
        if security is None and err.is_after_versions:
            return " (as a listener with SASL does: give the client's properties with --command-config FILE)"
        if err.is_unanswered:
            return " (the listener may be of another security.protocol, or have stopped: the broker's log says it)"
        return " (the broker's log says whether it has stopped)"
    return ""


# The niceness (nice(1)) of a process that only shows what others do.
STEPS_BACK = 5


def step_back() -> None:
    """Leave the CPU to the broker and its clients, where they want it at the same time. On Linux, where it is of this
    thread alone."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, max(STEPS_BACK, os.getpriority(os.PRIO_PROCESS, 0)))


def parse_pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """Parses `name=value` arguments into a dict. Raises click.BadParameter for one without `=`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
        found[name.strip()] = value.strip()
    return found


# What comes behind a comma, where Kafka's tools have several options in one word.
_NEXT_PAIR = re.compile(r",\s*([A-Za-z][\w.-]*)=")


def advice_to_repeat(pairs: Mapping[str, str], option: str) -> str:
    """What to say of a value that is refused and looks like further pairs, which Kafka's tools separate by commas."""
    for name, value in pairs.items():
        if others := _NEXT_PAIR.findall(value):
            return f" (repeat the option for each: {' '.join(f'{option} {one}=...' for one in (name, *others))})"
    return ""


@contextmanager
def advising_to_repeat(pairs: Mapping[str, str], option: str) -> Iterator[None]:
    """Raises RequestError with this advice where the broker refuses a value. A broker knows which may have commas, and
    says which option it refused."""
    try:
        yield
    except RequestError as error:
        if error.code == ErrorCode.INVALID_CONFIG:
            error.args = (f"{error}{advice_to_repeat(_named(pairs, error.reason or ''), option)}",)
        raise


def _named(pairs: Mapping[str, str], reason: str) -> dict[str, str]:
    """Those of the pairs that this text is about. It has their value, which may hold the name of another, or their name
    alone, or a part of their value with the next pair."""
    by_value = {name: value for name, value in pairs.items() if f"value {value} for configuration {name}" in reason}
    if by_value:
        return by_value
    return {
        name: value
        for name, value in pairs.items()
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?!\.?[\w-])", reason)
        or any(f"{one}=" in reason for one in _NEXT_PAIR.findall(value))
    }


def warn_of_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Say of each word that is none of the known ones, in whatever case, which there are. It is no error: a newer
    broker may have more."""
    lower = [one.lower() for one in known]
    for each in given:
        if each.lower() not in lower:
            click.echo(f"warning: no {what} is named {each}: there are {', '.join(known)}", err=True)


def joined(numbers: Any) -> str:
    """Joins numbers with commas, as Kafka's tools print replicas."""
    return ",".join(map(str, numbers or ()))
