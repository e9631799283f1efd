"""`kafka-configs.sh` (Kafka: ConfigCommand): options of topics, brokers, groups, client metrics and broker loggers."""

from __future__ import annotations

import re
import sys

from kafka_shim.client.config_sources import SOURCES
from kafka_shim.client.groups import list_groups
from kafka_shim.client.requests import make
from kafka_shim.tools.options import FLAG, VALUE, Options, UsageError, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.tools.options import Given

# Type -> (resource type of the protocol, config source of what is set there); brokers have two sources.
TYPES = {
    "topics": (2, 1),
    "brokers": (4, 2),
    "broker-loggers": (8, None),
    "client-metrics": (16, 7),
    "groups": (32, 8),
}
DEFAULT_BROKER_SOURCE = 3
OTHER_TYPES = ("users", "clients", "ips")
# Options that name the type and the entity at once.
FLAGS = {
    "topic": "topics",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "client-metrics": "client-metrics",
    "group": "groups",
    "user": "users",
    "client": "clients",
    "ip": "ips",
}
DEFAULTS = {"broker-defaults": "brokers", "user-defaults": "users", "client-defaults": "clients", "ip-defaults": "ips"}
OPTIONS = Options(
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or "
    "group",
    {
        **dict.fromkeys(("bootstrap-server", "bootstrap-controller", "command-config", "entity-type"), VALUE),
        **dict.fromkeys(("entity-name", "add-config", "add-config-file", "delete-config", *FLAGS), VALUE),
        **dict.fromkeys(("alter", "describe", "entity-default", "force", "all", *DEFAULTS), FLAG),
    },
)
SET, DELETE = 0, 1


class ConfigsError(Exception):
    """The words do not fit; without the list of options, as there."""


def run(given: Given) -> int:
    if given.has("alter") == given.has("describe"):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    given.exclude("describe", ["add-config", "delete-config"])
    try:
        kind, name = _entity(given)
        with connect(given, "kafka-configs") as cluster:
            (alter if given.has("alter") else describe)(cluster, given, kind, name)
    except ConfigsError as err:
        sys.stderr.write(f"{err}\n")
        return 1
    except WireClientError as err:
        sys.stderr.write(f"Error while executing config command: {err}\n")
        return 1
    return 0


def _entity(given: Given) -> tuple[str, str | None]:
    """Type and name; the empty name is the default of brokers, None is all."""
    kinds = given.all("entity-type") + [kind for flag, kind in {**FLAGS, **DEFAULTS}.items() if given.has(flag)]
    if not given.has("bootstrap-server"):
        raise ConfigsError("Either --bootstrap-server or --bootstrap-controller must be specified.")
    if not kinds:
        raise ConfigsError("At least one entity type must be specified")
    kind = kinds[0]
    if len(kinds) > 1 or kind in OTHER_TYPES:
        raise ConfigsError(f"{', '.join(kinds)}: this tool has no such entity type yet; kafka-shim users and quotas do")
    if kind not in TYPES:
        raise ConfigsError(
            f"Invalid entity type {kind}, the entity type must be one of {', '.join([*TYPES, *OTHER_TYPES])} with a "
            "--bootstrap-server or --bootstrap-controller argument"
        )
    if given.has("entity-type", "entity-name", "entity-default") and given.has(*FLAGS, *DEFAULTS):
        raise ConfigsError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    flag = next((flag for flag in FLAGS if given.has(flag)), "entity-name")
    name = given.one(flag)
    if name is None and given.has("entity-default", *DEFAULTS):
        name = ""
    _check_name(given, kind, name)
    return kind, name


def _check_name(given: Given, kind: str, name: str | None) -> None:
    if kind in ("brokers", "broker-loggers") and name and not re.fullmatch(r"-?\d+", name):
        raise ConfigsError(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
    if given.has("describe"):
        if kind != "brokers" and given.has("entity-default"):
            raise ConfigsError(f"--entity-default must not be specified with --describe of {kind}")
        if kind == "broker-loggers" and not name:
            raise ConfigsError(f"An entity name must be specified with --describe of {kind}")
        return
    if kind == "brokers" and name is None:
        raise ConfigsError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if kind != "brokers" and not name:
        raise ConfigsError(f"An entity name must be specified with --alter of {kind}")
    if given.has("add-config") and given.has("add-config-file"):
        raise ConfigsError("Only one of --add-config or --add-config-file must be specified")
    if not given.has("add-config", "add-config-file", "delete-config"):
        raise ConfigsError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def alter(cluster: Cluster, given: Given, kind: str, name: str | None) -> None:
    from kafka_shim.config import read_properties

    path = given.one("add-config-file")
    added = read_properties(path) if path else _pairs(given)
    removed = [one.strip() for text in given.all("delete-config") for one in text.split(",") if one.strip()]
    changes = [{"name": one, "config_operation": DELETE, "value": ""} for one in removed]
    changes += [{"name": one, "config_operation": SET, "value": value} for one, value in added.items()]
    resource = {"resource_type": TYPES[kind][0], "resource_name": name, "configs": changes}
    # A broker changes its own options, and those of its loggers.
    to_one = kind in ("brokers", "broker-loggers") and name
    connection = cluster.to(int(name)) if to_one and name else cluster.any()
    for result in connection.request(make("IncrementalAlterConfigs", resources=[resource])).responses:
        check(result.error_code, result.error_message)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _pairs(given: Given) -> dict[str, str]:
    """`a=1,b=[2,3]`: brackets stand about a value with commas."""
    found = {}
    for pair in re.split(r",(?=[^\]]*(?:\[|$))", given.text("add-config")):
        if not pair.strip():
            continue
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigsError(
                'requirement failed: Invalid entity config: all configs to be added must be in the format "key=val" or '
                '"key=[val1,val2]" or "key=[]"'
            )
        value = value.strip()
        found[name.strip()] = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return found


def describe(cluster: Cluster, given: Given, kind: str, name: str | None) -> None:
    wants_all = given.has("all")
    known = _known(cluster, kind)
    if name is not None and not wants_all and name not in known:
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for one in known if name is None else [name]:
        if kind == "brokers" and not one:
            print(f"Default configs for {kind} in the cluster are:")
        else:
            print(f"{'All' if wants_all else 'Dynamic'} configs for {kind[:-1]} {one} are:")
        source = DEFAULT_BROKER_SOURCE if kind == "brokers" and not one else TYPES[kind][1]
        for entry in sorted(_entries(cluster, kind, one), key=lambda each: each.name):
            if wants_all or source in (None, entry.config_source):
                _print(entry)


def _known(cluster: Cluster, kind: str) -> list[str]:
    if kind == "topics":
        return [topic.name for topic in cluster.metadata().topics]
    if kind in ("brokers", "broker-loggers"):
        return [*(str(broker.node_id) for broker in cluster.metadata(()).brokers), ""]
    request = make("ListConfigResources", resource_types=[TYPES[kind][0]])
    answer = cluster.any().request(request)
    check(answer.error_code)
    found = [one.resource_name for one in answer.config_resources]
    if kind == "groups":
        found += [group.group_id for group in list_groups(cluster) if group.group_id not in found]
    return found


def _entries(cluster: Cluster, kind: str, name: str) -> list[Any]:
    resource = {"resource_type": TYPES[kind][0], "resource_name": name, "configuration_keys": None}
    is_own = kind in ("brokers", "broker-loggers") and name
    connection = cluster.to(int(name)) if is_own else cluster.any()
    request = make("DescribeConfigs", resources=[resource], include_synonyms=True)
    (result,) = connection.request(request).results
    check(result.error_code, result.error_message)
    return list(result.configs)


def _print(entry: Any) -> None:
    synonyms = ", ".join(f"{SOURCES[one.source]}:{one.name}={_value(one.value)}" for one in entry.synonyms)
    is_sensitive = "true" if entry.is_sensitive else "false"
    print(f"  {entry.name}={_value(entry.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}")


def _value(value: str | None) -> str:
    return "null" if value is None else value


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
