"""`kafka-configs.sh` (Kafka: ConfigCommand): options of topics, brokers, groups, client metrics and broker loggers;
those of users, clients and addresses in client_configs.py."""

from __future__ import annotations

import re
import sys

from kafka_shim.client.config_sources import SOURCES
from kafka_shim.client.groups import list_groups
from kafka_shim.client.requests import make
from kafka_shim.tools import client_configs
from kafka_shim.tools.options import FLAG, VALUE, Options, UsageError, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.tools.subcommands import ToolError
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
# Those with a default entity.
WITH_DEFAULT = ("users", "clients", "brokers", "ips")
# Options that name the type and the entity at once, in the order in which Kafka's tool looks at them.
FLAGS = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULTS = {"client-defaults": "clients", "user-defaults": "users", "broker-defaults": "brokers", "ip-defaults": "ips"}
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


KEY = re.compile(r"[$a-zA-Z0-9._-]*")


def run(given: Given) -> int:
    if given.has("alter") == given.has("describe"):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    given.exclude("describe", ["add-config", "delete-config"])
    try:
        kinds, names = _kinds(given), _names(given)
        _check(given, kinds, names)
        with connect(given, "kafka-configs") as cluster:
            if given.has("alter"):
                alter(cluster, given, kinds, names)
            elif kinds[0] in client_configs.KINDS:
                client_configs.describe(cluster, kinds, names)
            else:
                describe(cluster, given, kinds[0], names[0] if names else None)
    except ToolError as err:
        sys.stderr.write(f"{err}\n")
        return 1
    except WireClientError as err:
        sys.stderr.write(f"Error while executing config command: {err}\n")
        return 1
    return 0


def _kinds(given: Given) -> list[str]:
    return given.all("entity-type") + [kind for flag, kind in {**FLAGS, **DEFAULTS}.items() if given.has(flag)]


def _names(given: Given) -> list[str]:
    """The names of the entities, in the order of the types; the empty one is the default."""
    named = iter(given.all("entity-name"))
    found = [
        next(named) if option == "entity-name" else ""
        for option in given.order
        if option in ("entity-name", "entity-default")
    ]
    found += [given.text(flag) for flag in FLAGS if given.has(flag)]
    return found + ["" for flag in DEFAULTS if given.has(flag)]


def _check(given: Given, kinds: list[str], names: list[str]) -> None:
    """Raises ToolError for words that do not go together."""
    if given.has("bootstrap-server") == given.has("bootstrap-controller"):
        only = "Only one of" if given.has("bootstrap-server") else "Either"
        raise ToolError(f"{only} --bootstrap-server or --bootstrap-controller must be specified.")
    known = [*TYPES, *client_configs.KINDS]
    for kind in kinds:
        if kind not in known:
            raise ToolError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(known)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not kinds:
        raise ToolError("At least one entity type must be specified")
    if len(set(kinds)) < len(kinds):
        raise ToolError(f"Duplicate entity type(s) specified: {','.join(kinds)}")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise ToolError("Only 'users' and 'clients' entity types may be specified together")
    if given.has("entity-type", "entity-name", "entity-default") and given.has(*FLAGS, *DEFAULTS):
        raise ToolError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    _check_names(kinds, names)
    if given.has("describe"):
        if given.has("entity-default") and not set(kinds) & set(WITH_DEFAULT):
            raise ToolError(f"--entity-default must not be specified with --describe of {','.join(kinds)}")
        if kinds == ["broker-loggers"] and not any(names):
            raise ToolError("An entity name must be specified with --describe of broker-loggers")
        return
    if set(kinds) & set(WITH_DEFAULT):
        if not names:
            raise ToolError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(names):
        raise ToolError(f"An entity name must be specified with --alter of {','.join(kinds)}")
    if given.has("add-config") and given.has("add-config-file"):
        raise ToolError("Only one of --add-config or --add-config-file must be specified")
    if not given.has("add-config", "add-config-file", "delete-config"):
        raise ToolError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(kinds) != len(names):
        raise ToolError("An entity name must be specified for every entity type")


def _check_names(kinds: list[str], names: list[str]) -> None:
    for name in filter(None, names):
        if kinds[0] in ("brokers", "broker-loggers") and not re.fullmatch(r"-?\d+", name):
            raise ToolError(f"The entity name for {kinds[0]} must be a valid integer broker id, but it is: {name}")
        if kinds[0] == "ips":
            client_configs.check_address(name)


def alter(cluster: Cluster, given: Given, kinds: list[str], names: list[str]) -> None:
    from kafka_shim.config import read_properties

    path = given.one("add-config-file")
    added = read_properties(path) if path else _pairs(given)
    for key in added:
        if not KEY.fullmatch(key):
            raise ToolError(f"Invalid character found for config key: {key}")
    removed = [one.strip() for text in given.all("delete-config") for one in text.split(",") if one.strip()]
    if kinds[0] in client_configs.KINDS:
        client_configs.alter(cluster, kinds, names, added, removed)
    else:
        _alter_resource(cluster, kinds[0], names[0], added, removed)
    if names[0]:
        print(f"Completed updating config for {kinds[0][:-1]} {names[0]}.")
    else:
        print(f"Completed updating default config for {kinds[0]} in the cluster.")


def _alter_resource(cluster: Cluster, kind: str, name: str, added: dict[str, str], removed: list[str]) -> None:
    if kind == "broker-loggers":
        known = {one.name for one in _entries(cluster, kind, name)}
        unknown = [one for one in (*removed, *added) if one not in known]
        if unknown:
            raise ToolError(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [{"name": one, "config_operation": DELETE, "value": ""} for one in removed]
    changes += [{"name": one, "config_operation": SET, "value": value} for one, value in added.items()]
    resource = {"resource_type": TYPES[kind][0], "resource_name": name, "configs": changes}
    # A broker changes its own options, and those of its loggers.
    to_one = kind in ("brokers", "broker-loggers") and name
    connection = cluster.to(int(name)) if to_one else cluster.any()
    for result in connection.request(make("IncrementalAlterConfigs", resources=[resource])).responses:
        check(result.error_code, result.error_message)


def _pairs(given: Given) -> dict[str, str]:
    """`a=1,b=[2,3]`: brackets stand about a value with commas."""
    found = {}
    for pair in re.split(r",(?=[^\]]*(?:\[|$))", given.text("add-config")):
        if not pair.strip():
            continue
        parts = re.split(r"=(?=[^\]]*(?:\[|$))", pair)
        if len(parts) != 2:
            raise ToolError(
                'requirement failed: Invalid entity config: all configs to be added must be in the format "key=val" or '
                '"key=[val1,val2]" or "key=[]"'
            )
        name, value = parts[0], parts[1].strip()
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
