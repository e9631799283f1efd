"""`kafka-shim quotas`: list, set and remove client quotas, as `kafka-configs --entity-type users|clients|ips` does."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import click

from kafka_shim.commands.options import (
    advice_to_repeat,
    bootstrap_option,
    connected,
    json_option,
    parse_pairs,
    show_rows,
)
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

# Option -> entity type; each has a flag for the default of its type.
ENTITIES = {"user": "user", "client_id": "client-id", "ip": "ip"}
KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
EXACT, OF_DEFAULT = 0, 1


@click.group(name="quotas", help="List, set and unset client quotas.")
def group() -> None:
    pass


def entity_options(command: _F) -> _F:
    """Adds the options that name whom a quota is for."""
    options = (
        click.option("--user", metavar="NAME", help="with a client id: that client of the user"),
        click.option("--user-default", is_flag=True, help="every user without a quota of its own"),
        click.option("--client-id", metavar="ID"),
        click.option("--client-id-default", is_flag=True, help="every client id without a quota of its own"),
        click.option("--ip", metavar="ADDRESS"),
        click.option("--ip-default", is_flag=True, help="every address without a quota of its own"),
    )
    for option in reversed(options):  # the last one applied is the first in the help
        command = option(command)
    return command


@group.command(name="list", help="Print quotas: all, or those of exactly the given user, client id or address.")
@bootstrap_option
@entity_options
@click.option("--json", "as_json", is_flag=True, help="one JSON array")
def list_quotas(bootstrap_server: str, as_json: bool, **options: Any) -> None:
    from kafka_shim.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest

    entity = _entity(options)
    components = [
        ComponentData(entity_type=kind, match_type=OF_DEFAULT if name is None else EXACT, match=name)
        for kind, name in entity.items()
    ]
    with connected(bootstrap_server) as connection:
        answer = connection.request(DescribeClientQuotasRequest(components=components, strict=bool(entity)))
        check(answer.error_code, answer.error_message)
    found = sorted(
        (
            {
                "entity": {part.entity_type: part.entity_name for part in one.entity},
                "quotas": {value.key: value.value for value in sorted(one.values, key=lambda each: each.key)},
            }
            for one in answer.entries or ()
        ),
        key=lambda row: _shown(row["entity"]),
    )
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for row in found:
        values = ", ".join(f"{key}={value}" for key, value in row["quotas"].items())
        click.echo(f"Quota configs for {_shown(row['entity'])} are {values}")


@group.command(name="set", help=f"Set and unset quotas of one entity. NAME is one of {', '.join(KEYS)}.")
@bootstrap_option
@entity_options
@click.option("--add", "added", multiple=True, metavar="NAME=NUMBER", help="set a quota; repeatable")
@click.option("--delete", "deleted", multiple=True, type=click.Choice(KEYS), metavar="NAME", help="unset; repeatable")
@click.option("--validate-only", is_flag=True, help="only say whether it would work")
@json_option
def set_quotas(
    bootstrap_server: str, added: tuple[str, ...], deleted: tuple[str, ...], validate_only: bool, **options: Any
) -> None:
    from kafka_shim.protocol.messages.alter_client_quotas_request import (
        AlterClientQuotasRequest,
        EntityData,
        EntryData,
        OpData,
    )

    entity = _entity(options)
    if not entity:
        raise click.UsageError("say for whom: --user, --client-id, --ip, or --user-default ...")
    changes = []
    for name, text in parse_pairs(added, "--add").items():
        if name not in KEYS:
            raise click.BadParameter(f"{name} is not one of {', '.join(KEYS)}", param_hint="--add")
        try:
            changes.append(OpData(key=name, value=float(text)))
        except ValueError:
            advice = advice_to_repeat({name: text}, "--add")
            raise click.BadParameter(f"{name}={text}: {text} is not a number{advice}", param_hint="--add") from None
    changes += [OpData(key=name, remove=True) for name in deleted]
    if not changes:
        raise click.UsageError("give at least one of --add and --delete")
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=changes)], validate_only=validate_only)
    with connected(bootstrap_server) as connection:
        (result,) = connection.request(request).entries
        check(result.error_code, result.error_message, _shown(entity))
        text = f"{'Would update' if validate_only else 'Completed updating'} quotas for {_shown(entity)}."
        show_rows(("Entity", "Quotas"), [(entity, [one.key for one in changes])], lambda: click.echo(text))


def _entity(options: dict[str, Any]) -> dict[str, str | None]:
    """Returns entity type -> name, None for the default. Raises click.UsageError."""
    found: dict[str, str | None] = {}
    for option, kind in ENTITIES.items():
        if options[option] is not None and options[f"{option}_default"]:
            raise click.UsageError(f"give one of --{kind} and --{kind}-default")
        if options[option] is not None or options[f"{option}_default"]:
            found[kind] = options[option]
    if "ip" in found and len(found) > 1:
        raise click.UsageError("a quota is for an address, or for a user and a client id")
    return found


def _shown(entity: dict[str, str | None]) -> str:
    """Returns an entity in the words of Kafka's tool."""
    return ", ".join(
        f"the default {word}" if entity[kind] is None else f"{word} '{entity[kind]}'"
        for kind, word in WORDS.items()
        if kind in entity
    )
