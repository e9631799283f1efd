"""`kafka-acls.sh`: list, add and remove ACLs (Kafka: AclCommand)."""

from __future__ import annotations

import sys

from kafka_shim.client.requests import make
from kafka_shim.security.acl import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from kafka_shim.tools.errors import exception_of
from kafka_shim.tools.options import FLAG, OPTIONAL, VALUE, Options, UsageError, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.tools.options import Given

    # (type, name, pattern type)
    Resource = tuple[ResourceType, str, PatternType]
    # (principal, host, operation, permission)
    Entry = tuple[str, str, AclOperation, PermissionType]

# Option -> type of the resource that it names; `--cluster` names the one cluster.
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
PATTERNS = {one.name: one for one in PatternType if one != PatternType.UNKNOWN}
ACTIONS = ("list", "add", "remove")
ENTRY_OPTIONS = ("allow-principal", "deny-principal", "allow-host", "deny-host", "operation")
OPTIONS = Options(
    "This tool helps to manage acls on kafka.",
    {
        **dict.fromkeys((*ACTIONS, "cluster", "idempotent", "producer", "consumer", "force"), FLAG),
        **dict.fromkeys(("bootstrap-server", "bootstrap-controller", "resource-pattern-type"), VALUE),
        **dict.fromkeys((*RESOURCES, *ENTRY_OPTIONS), VALUE),
        **dict.fromkeys(("command-config", "principal"), OPTIONAL),
    },
)
_O = AclOperation
# What --producer and --consumer allow, by type of resource.
OF_PRODUCER = {
    ResourceType.TOPIC: (_O.WRITE, _O.DESCRIBE, _O.CREATE),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
}
OF_CONSUMER = {ResourceType.TOPIC: (_O.READ, _O.DESCRIBE), ResourceType.GROUP: (_O.READ,)}
CLUSTER: Resource = (ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
ANY_ENTRY: tuple[str | None, str | None, AclOperation, PermissionType] = (None, None, _O.ANY, PermissionType.ANY)


def run(given: Given) -> int:
    _check(given)
    try:
        pattern = _pattern(given)
        with connect(given, "kafka-acls") as cluster:
            {"list": list_acls, "add": add, "remove": remove}[given.exactly_one(*ACTIONS)](cluster, given, pattern)
    except (WireClientError, EOFError, ValueError) as err:
        print(f"Error while executing ACL command: {exception_of(err)}")
        return 1
    return 0


def _check(given: Given) -> None:
    """Raises UsageError for options that do not go together."""
    if given.has("bootstrap-server") == given.has("bootstrap-controller"):
        only = "Only one" if given.has("bootstrap-server") else "One"
        raise UsageError(f"{only} of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(given.has(action) for action in ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    given.exclude("list", ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"))
    for role in ("producer", "consumer"):
        given.exclude(role, ("operation", "deny-principal", "deny-host"))
    if given.has("principal") and not given.has("list"):
        raise UsageError("The --principal option is only available if --list is set")
    if given.has("producer") and not given.has("topic"):
        raise UsageError("With --producer you must specify a --topic")
    if given.has("idempotent") and not given.has("producer"):
        raise UsageError("The --idempotent option is only available if --producer is set")
    has_more = not given.has("producer") and given.has("cluster", "transactional-id")
    if given.has("consumer") and (not given.has("topic") or not given.has("group") or has_more):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )


def _pattern(given: Given) -> PatternType:
    text = given.text("resource-pattern-type", "LITERAL")
    if text.upper() not in PATTERNS:
        raise ValueError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return PATTERNS[text.upper()]


def list_acls(cluster: Cluster, given: Given, pattern: PatternType) -> None:
    found: dict[Resource, set[Entry]] = {}
    named: list[Resource | None] = [*_resources(given, pattern)]
    for resource in named or [None]:
        for name, entries in _find(cluster, resource).items():
            found.setdefault(name, set()).update(entries)
    if not given.all("principal"):
        return _print(found)
    for principal in sorted(set(_principals(given, "principal"))):
        print(f"ACLs for principal `{principal}`")
        own = {name: {one for one in entries if one[0] == principal} for name, entries in found.items()}
        _print({name: entries for name, entries in own.items() if entries})
    return None


def _print(found: dict[Resource, set[Entry]]) -> None:
    for resource, entries in sorted(found.items()):
        print(f"Current ACLs for resource `{_resource_text(resource)}`:")
        print("".join(f"\t{_entry_text(one)}\n" for one in sorted(entries)))


def add(cluster: Cluster, given: Given, pattern: PatternType) -> None:
    if pattern in (PatternType.ANY, PatternType.MATCH):
        raise UsageError(f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls.")
    wanted = _wanted(given, pattern)
    if not all(wanted.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for resource, entries in wanted.items():
        existing = _find(cluster, resource).get(resource, set())
        for one in sorted(entries & existing):
            print(f"Acl (pattern={_resource_text(resource)}, entry={_entry_text(one)}) already exists.")
        new = sorted(entries - existing)
        if not new:
            continue
        print(f"Adding ACLs for resource `{_resource_text(resource)}`: \n {_lines(new)}\n")
        creations = [
            {
                **dict(zip(("resource_type", "resource_name", "resource_pattern_type"), resource, strict=True)),
                **dict(zip(("principal", "host", "operation", "permission_type"), one, strict=True)),
            }
            for one in new
        ]
        for result in cluster.any().request(make("CreateAcls", creations=creations)).results:
            check(result.error_code, result.error_message)


def _lines(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{_entry_text(one)}" for one in entries)


def remove(cluster: Cluster, given: Given, pattern: PatternType) -> None:
    for resource, entries in _wanted(given, pattern).items():
        shown = _resource_text(resource)
        question = f"Are you sure you want to delete all ACLs for resource filter `{shown}`? (y/n)"
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(sorted(entries))}\n from resource filter "
                f"`{shown}`? (y/n)"
            )
        if not _confirmed(given, question):
            continue
        filters = [_filter(resource, one) for one in entries or (ANY_ENTRY,)]
        for result in cluster.any().request(make("DeleteAcls", filters=filters)).filter_results:
            check(result.error_code, result.error_message)
            for one in result.matching_acls:
                check(one.error_code, one.error_message)


def _confirmed(given: Given, question: str) -> bool:
    if given.has("force"):
        return True
    print(question, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError("the standard input has ended: give --force to go on without the question")
    return answer.strip().lower() == "y"


def _wanted(given: Given, pattern: PatternType) -> dict[Resource, set[Entry]]:
    """The entries that the options give each resource. Raises UsageError."""
    resources = _resources(given, pattern)
    if not resources:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    found: dict[Resource, set[Entry]] = {}
    if not given.has("producer", "consumer"):
        operations = [_operation(text) for text in given.all("operation") or ("All",)]
        found = {resource: _entries(given, operations) for resource in resources}
    for role, allowed in (("producer", OF_PRODUCER), ("consumer", OF_CONSUMER)):
        for resource in resources:
            if given.has(role) and resource[0] in allowed:
                found.setdefault(resource, set()).update(_entries(given, allowed[resource[0]]))
    if given.has("producer") and given.has("idempotent"):
        found[CLUSTER] = _entries(given, [AclOperation.IDEMPOTENT_WRITE])
    for resource, entries in found.items():
        valid = {*SUPPORTED_OPERATIONS[resource[0]], AclOperation.ALL}
        if not all(one[2] in valid for one in entries):
            names = ", ".join(one.name for one in sorted(valid))
            raise UsageError(f"ResourceType {resource[0].name} only supports operations [{names}]")
    return found


def _resources(given: Given, pattern: PatternType) -> list[Resource]:
    found: list[Resource] = [
        (kind, name.strip(), pattern) for option, kind in RESOURCES.items() for name in given.all(option)
    ]
    if pattern == PatternType.LITERAL and given.has("cluster", "idempotent"):
        found.append(CLUSTER)
    return list(dict.fromkeys(found))


def _operation(text: str) -> AclOperation:
    """Kafka writes them in camel case. One that is unknown is UNKNOWN, which no resource supports."""
    wanted = text.strip()
    for operation in AclOperation:
        shown = "".join(word.capitalize() for word in operation.name.split("_"))
        if wanted in (shown, shown.upper()):
            return operation
    return AclOperation.UNKNOWN


def _entries(given: Given, operations: Iterable[AclOperation]) -> set[Entry]:
    operations = list(operations)
    return {
        (principal, host, operation, permission)
        for who, permission in (("allow", PermissionType.ALLOW), ("deny", PermissionType.DENY))
        for principal in _principals(given, f"{who}-principal")
        for host in (one.strip() for one in given.all(f"{who}-host") or (WILDCARD,))
        for operation in operations
    }


def _principals(given: Given, option: str) -> list[str]:
    """Raises ValueError for one that is not TYPE:NAME."""
    found = [text.strip() for text in given.all(option)]
    for text in found:
        if ":" not in text:
            raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return found


def _find(cluster: Cluster, resource: Resource | None) -> dict[Resource, set[Entry]]:
    """The ACLs on a resource, or on all."""
    asked = _filter(resource, ANY_ENTRY)
    answer = cluster.any().request(make("DescribeAcls", **asked))
    check(answer.error_code, answer.error_message)
    found: dict[Resource, set[Entry]] = {}
    for one in answer.resources:
        name = ResourceType(one.resource_type), one.resource_name, PatternType(one.pattern_type)
        found[name] = {
            (acl.principal, acl.host, AclOperation(acl.operation), PermissionType(acl.permission_type))
            for acl in one.acls
        }
    return found


def _filter(
    resource: Resource | None, entry: tuple[str | None, str | None, AclOperation, PermissionType]
) -> dict[str, Any]:
    kind, name, pattern = resource or (ResourceType.ANY, None, PatternType.ANY)
    return {
        **{"resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": pattern},
        **dict(zip(("principal_filter", "host_filter", "operation", "permission_type"), entry, strict=True)),
    }


def _resource_text(resource: Resource) -> str:
    kind, name, pattern = resource
    return f"ResourcePattern(resourceType={kind.name}, name={name}, patternType={pattern.name})"


def _entry_text(entry: Entry) -> str:
    principal, host, operation, permission = entry
    return f"(principal={principal}, host={host}, operation={operation.name}, permissionType={permission.name})"


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
