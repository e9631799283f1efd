"""`kafka-shim configs`: describe and alter configs of topics, brokers and groups. The output format is that of Kafka's
tool.
"""

from __future__ import annotations

import click

from kafka_shim.client.config_sources import SOURCES
from kafka_shim.client.configs import alter_configs
from kafka_shim.commands.options import (
    advising_to_repeat,
    bootstrap_option,
    cluster_of,
    json_option,
    parse_pairs,
    show_rows,
)
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.wire_client import Connection

TYPES = {"topics": 2, "brokers": 4, "broker-loggers": 8, "client-metrics": 16, "groups": 32}
SINGULAR = {
    "topics": "topic",
    "brokers": "broker",
    "broker-loggers": "broker-logger",
    "client-metrics": "client-metric",
    "groups": "group",
}
# The source of a config that is set on the resource itself.
OWN_SOURCE = {"topics": 1, "brokers": 2, "broker-loggers": 6, "client-metrics": 7, "groups": 8}
CLUSTER_SOURCE = 3
OF_ONE_BROKER = ("brokers", "broker-loggers")


@click.group(
    name="configs",
    help="Show and change options of topics, brokers, groups and loggers, and what clients push as metrics.",
)
def group() -> None:
    pass


@group.command(help="Print the options of one entity; without --all only those that were set.")
@bootstrap_option
@click.option("--entity-type", type=click.Choice(list(TYPES)), required=True)
@click.option("--entity-name", default="", help="the topic, node id or group")
@click.option("--entity-default", is_flag=True, help="the cluster-wide default of brokers")
@click.option("--all", "everything", is_flag=True, help="defaults too")
@json_option
def describe(bootstrap_server: str, entity_type: str, entity_name: str, entity_default: bool, everything: bool) -> None:
    from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

    _check_entity(entity_type, entity_name, entity_default)
    resource = DescribeConfigsResource(
        resource_type=TYPES[entity_type], resource_name=entity_name, configuration_keys=None
    )
    own = OWN_SOURCE[entity_type] if entity_name else CLUSTER_SOURCE
    with cluster_of(bootstrap_server) as cluster:
        connection = _responsible(cluster, entity_type, entity_name)
        result = connection.request(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results[0]
        check(result.error_code, result.error_message, entity_name)
        entries = [
            entry
            for entry in sorted(result.configs, key=lambda one: one.name)
            if everything or entry.config_source == own
        ]
        rows = [
            (entry.name, entry.value, entry.is_sensitive, entry.read_only, SOURCES[entry.config_source])
            for entry in entries
        ]
        title = f"{'All' if everything else 'Dynamic'} configs for {SINGULAR[entity_type]} {entity_name} are:"
        if not entity_name:
            title = f"Default configs for {entity_type} in the cluster are:"
        show_rows(("Name", "Value", "Sensitive", "ReadOnly", "Source"), rows, lambda: _print_entries(title, entries))


def _print_entries(title: str, entries: list[Any]) -> None:
    click.echo(title)
    for entry in entries:
        synonyms = ", ".join(f"{SOURCES[one.source]}:{one.name}={one.value}" for one in entry.synonyms)
        sensitive = "true" if entry.is_sensitive else "false"
        click.echo(f"  {entry.name}={entry.value} sensitive={sensitive} synonyms={{{synonyms}}}")


@group.command(help="Set and unset options of one entity.")
@bootstrap_option
@click.option("--entity-type", type=click.Choice(list(TYPES)), required=True)
@click.option("--entity-name", default="", help="the topic, node id or group")
@click.option("--entity-default", is_flag=True, help="the cluster-wide default of brokers")
@click.option("--add-config", "added", multiple=True, metavar="NAME=VALUE", help="set an option; repeatable")
@click.option("--add-config-file", "file", metavar="FILE", help="set the options of a properties file")
@click.option("--delete-config", "deleted", multiple=True, metavar="NAME", help="unset an option; repeatable")
@click.option("--validate-only", is_flag=True, help="only say whether it would work")
@json_option
def alter(
    bootstrap_server: str,
    entity_type: str,
    entity_name: str,
    entity_default: bool,
    added: tuple[str, ...],
    file: str | None,
    deleted: tuple[str, ...],
    validate_only: bool,
) -> None:
    _check_entity(entity_type, entity_name, entity_default)
    parsed = parse_pairs(added, "--add-config")
    pairs = {**_read(file), **parsed}
    if not (pairs or deleted):
        raise click.UsageError("give at least one of --add-config, --add-config-file and --delete-config")
    with cluster_of(bootstrap_server) as cluster:
        kind = TYPES[entity_type]
        connection = _responsible(cluster, entity_type, entity_name)
        with advising_to_repeat(parsed, "--add-config"):
            alter_configs(connection, kind, entity_name, pairs, deleted, validate_only=validate_only)
        done = "Would update" if validate_only else "Completed updating"
        text = f"{done} config for {SINGULAR[entity_type]} {entity_name}."
        if not entity_name:
            text = f"{done} default config for {entity_type} in the cluster."
        row = entity_type, entity_name or None, [*pairs, *deleted]
        show_rows(("EntityType", "EntityName", "Configs"), [row], lambda: click.echo(text))


def _responsible(cluster: Cluster, entity_type: str, name: str) -> Connection:
    """A broker's own options are known to itself alone, and it refuses those of others (Kafka: ConfigAdminManager)."""
    return cluster.to(int(name)) if entity_type in OF_ONE_BROKER and name.isdecimal() else cluster.any()


def _read(file: str | None) -> dict[str, str]:
    if file is None:
        return {}
    from kafka_shim.config import ConfigError, read_properties

    try:
        return read_properties(file)
    except ConfigError as error:
        raise click.ClickException(f"--add-config-file: {error}") from None


def _check_entity(entity_type: str, name: str, default: bool) -> None:
    if bool(name) == default:
        raise click.UsageError("give one of --entity-name and --entity-default")
    if default and entity_type != "brokers":
        raise click.UsageError("--entity-default is for brokers")
