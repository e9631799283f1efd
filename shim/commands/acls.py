"""`kafka-shim acls`: list, add and remove ACLs. The output format is that of Kafka's tool."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import click

from kafka_shim.commands.options import bootstrap_option, connected
from kafka_shim.config import ConfigError
from kafka_shim.security.acl import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl
from kafka_shim.security.acl_spec import parse_operation
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_shim.wire_client import Connection

_F = TypeVar("_F", bound="Callable[..., Any]")

PATTERNS = {one.name.lower(): one for one in PatternType if one != PatternType.UNKNOWN}
# Option -> resource type; the option of the cluster is a flag.
RESOURCES = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "delegation_tokens": ResourceType.DELEGATION_TOKEN,
    "user_principals": ResourceType.USER,
}
Resource = tuple[ResourceType, str | None]
# Who, from where, and whether they are allowed.
Entry = tuple[str, str, AclOperation, PermissionType]


@click.group(name="acls", help="List, add and remove ACLs.")
def group() -> None:
    pass


def resource_options(patterns: Iterable[str]) -> Callable[[_F], _F]:
    """Adds the options that name resources."""

    def add(command: _F) -> _F:
        options = (
            click.option("--topic", "topics", multiple=True, metavar="NAME", help="repeatable, as the next ones"),
            click.option("--group", "groups", multiple=True, metavar="NAME"),
            click.option("--transactional-id", "transactional_ids", multiple=True, metavar="NAME"),
            click.option(
                "--delegation-token", "delegation_tokens", multiple=True, metavar="NAME", help="the id of a token"
            ),
            click.option(
                "--user-principal", "user_principals", multiple=True, metavar="User:NAME", help="whose tokens"
            ),
            click.option("--cluster", is_flag=True, help="the cluster itself"),
            click.option(
                "--resource-pattern-type",
                "pattern",
                type=click.Choice(list(patterns)),
                default="literal",
                show_default=True,
                help="whether a NAME is one name or what names begin with",
            ),
        )
        for option in reversed(options):  # the last one applied is the first in the help
            command = option(command)
        return command

    return add


def entry_options(command: _F) -> _F:
    """Adds the options that say who may do what."""
    options = (
        click.option("--allow-principal", "allowed", multiple=True, metavar="User:NAME", help="repeatable"),
        click.option("--deny-principal", "denied", multiple=True, metavar="User:NAME", help="repeatable"),
        click.option("--allow-host", "allowed_hosts", multiple=True, metavar="ADDRESS", help="default: all"),
        click.option("--deny-host", "denied_hosts", multiple=True, metavar="ADDRESS", help="default: all"),
        click.option("--operation", "operations", multiple=True, metavar="NAME", help="as Read; default: All"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@group.command(name="list", help="Print ACLs: all, or those of the given resources.")
@bootstrap_option
@resource_options(PATTERNS)
@click.option("--principal", "principals", multiple=True, metavar="User:NAME", help="only of these; repeatable")
@click.option("--json", "as_json", is_flag=True, help="one JSON array")
def list_acls(bootstrap_server: str, pattern: str, principals: tuple[str, ...], as_json: bool, **named: Any) -> None:
    with connected(bootstrap_server) as connection:
        found = dict.fromkeys(
            acl
            for resource in _resources(named) or [(ResourceType.ANY, None)]
            for acl in _find(connection, resource, PATTERNS[pattern])
            if not principals or acl.principal in principals
        )
    if as_json:
        click.echo(json.dumps([_as_json(acl) for acl in found], indent=2))
    else:
        _print(found, "Current ACLs for resource")


@group.command(help="Add ACLs for each given resource, principal, host and operation.")
@bootstrap_option
@resource_options(["literal", "prefixed"])
@entry_options
@click.option("--json", "as_json", is_flag=True, help="print what was added as one JSON array")
def add(bootstrap_server: str, pattern: str, as_json: bool, **options: Any) -> None:
    from kafka_shim.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest

    resources = _resources(options)
    if not resources:
        raise click.UsageError("name a resource: --topic, --group, --cluster, --transactional-id ...")
    acls = [
        Acl(kind, name or "", PATTERNS[pattern], *who) for kind, name in resources for who in _entries(kind, options)
    ]
    if not acls:
        raise click.UsageError("give at least one of --allow-principal and --deny-principal")
    creations = [
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    ]
    with connected(bootstrap_server) as connection:
        results = connection.request(CreateAclsRequest(creations=creations)).results
        for acl, result in zip(acls, results, strict=True):
            check(result.error_code, result.error_message, acl.resource_name)
    if as_json:
        click.echo(json.dumps([_as_json(acl) for acl in acls], indent=2))
    else:
        _print(acls, "Adding ACLs for resource")


@group.command(help="Remove the ACLs of the given resources; without a principal, all of them.")
@bootstrap_option
@resource_options(PATTERNS)
@entry_options
@click.option("--force", is_flag=True, help="do not ask")
@click.option("--json", "as_json", is_flag=True, help="print what was removed as one JSON array")
def remove(bootstrap_server: str, pattern: str, force: bool, as_json: bool, **options: Any) -> None:
    from kafka_shim.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest

    resources = _resources(options)
    if not resources:
        raise click.UsageError("name a resource: --topic, --group, --cluster, --transactional-id ...")
    everybody: list[tuple[str | None, str | None, AclOperation, PermissionType]] = [
        (None, None, AclOperation.ANY, PermissionType.ANY)
    ]
    filters = [
        DeleteAclsFilter(
            resource_type_filter=resource[0],
            resource_name_filter=resource[1],
            pattern_type_filter=PATTERNS[pattern],
            principal_filter=principal,
            host_filter=host,
            operation=operation,
            permission_type=permission,
        )
        for resource in resources
        for principal, host, operation, permission in _entries(resource[0], options) or everybody
    ]
    names = ", ".join(f"{kind.name} {name}" for kind, name in resources)
    if not force:
        click.confirm(f"Remove the ACLs of {names}?", abort=True, err=True)
    removed: dict[Acl, None] = {}
    with connected(bootstrap_server) as connection:
        for result in connection.request(DeleteAclsRequest(filters=filters)).filter_results:
            check(result.error_code, result.error_message, names)
            for one in result.matching_acls:
                check(one.error_code, one.error_message, one.resource_name)
                removed[
                    Acl(
                        one.resource_type,
                        one.resource_name,
                        one.pattern_type,
                        one.principal,
                        one.host,
                        one.operation,
                        one.permission_type,
                    )
                ] = None
    if as_json:
        click.echo(json.dumps([_as_json(acl) for acl in removed], indent=2))
    else:
        _print(removed, "Removed ACLs for resource")


def _resources(named: dict[str, Any]) -> list[Resource]:
    found: list[Resource] = [(kind, name) for option, kind in RESOURCES.items() for name in named[option]]
    return [*found, (ResourceType.CLUSTER, CLUSTER_NAME)] if named["cluster"] else found


def _entries(kind: ResourceType, options: dict[str, Any]) -> list[Entry]:
    """Returns (principal, host, operation, permission) of each combination that the options give."""
    try:
        operations = [parse_operation(text, kind) for text in options["operations"] or ("ALL",)]
    except ConfigError as error:
        raise click.BadParameter(str(error), param_hint="--operation") from None
    found: list[Entry] = []
    for who, where, permission in (
        ("allowed", "allowed_hosts", PermissionType.ALLOW),
        ("denied", "denied_hosts", PermissionType.DENY),
    ):
        for principal in options[who]:
            if ":" not in principal:
                raise click.BadParameter(f"{principal} is not User:NAME", param_hint="--allow-principal")
            for host in options[where] or (WILDCARD,):
                found += [(principal, host, operation, permission) for operation in operations]
    return found


def _find(connection: Connection, resource: Resource, pattern: PatternType) -> list[Acl]:
    from kafka_shim.protocol.messages.describe_acls_request import DescribeAclsRequest

    kind, name = resource
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=PatternType.ANY if name is None else pattern,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=PermissionType.ANY,
    )
    answer = connection.request(request)
    check(answer.error_code, answer.error_message)
    return [
        Acl(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in answer.resources
        for acl in each.acls
    ]


def _as_json(acl: Acl) -> dict[str, str]:
    return {
        "resourceType": acl.resource_type.name,
        "resourceName": acl.resource_name,
        "patternType": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permissionType": acl.permission_type.name,
    }


def _print(acls: Iterable[Acl], title: str) -> None:
    resources: dict[tuple[str, str, str], list[Acl]] = {}
    for acl in acls:
        key = (acl.resource_type.name, acl.resource_name, acl.pattern_type.name)
        resources.setdefault(key, []).append(acl)
    for (kind, name, pattern), entries in sorted(resources.items()):
        click.echo(f"{title} `ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})`:")
        for acl in entries:
            click.echo(
                f"\t(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
                f"permissionType={acl.permission_type.name})"
            )
        click.echo()
