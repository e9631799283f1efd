"""ACLs in words, as the command line and `Broker(acls=[...])` take them."""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.security.acl import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from kafka_shim.security.acl_binding import Acl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
OTHERS = {"principal", "operation", "pattern", "permission", "host"}


def parse_acl(words: Mapping[str, object]) -> Acl:
    """Returns the ACL that `{"principal": "User:alice", "operation": "READ", "topic": "orders"}` describes.

    `topic` may be `group`, `transactional_id`, `delegation_token`, `user` or `cluster` (whose value is True). `pattern`
    ("literal", "prefixed"), `permission` ("allow", "deny") and `host` may be left out. Raises ConfigError."""
    kinds = [kind for kind in RESOURCES if kind in words]
    unknown = sorted(words.keys() - RESOURCES.keys() - OTHERS)
    if len(kinds) != 1 or unknown:
        given = f"unknown: {', '.join(unknown)}" if unknown else f"one of {', '.join(RESOURCES)} names the resource"
        raise ConfigError(f"{dict(words)} is not an ACL: {given}")
    kind = RESOURCES[kinds[0]]
    principal = str(words.get("principal", ""))
    if ":" not in principal:
        raise ConfigError(f"{dict(words)} is not an ACL: its principal must be User:NAME")
    return Acl(
        kind,
        CLUSTER_NAME if kind == ResourceType.CLUSTER else str(words[kinds[0]]),
        parse_pattern(str(words.get("pattern", "literal"))),
        principal,
        str(words.get("host", WILDCARD)),
        parse_operation(str(words.get("operation", "ALL")), kind),
        parse_permission(str(words.get("permission", "allow"))),
    )


def parse_operation(text: str, kind: ResourceType) -> AclOperation:
    """Returns the operation of this name ("AlterConfigs" or "ALTER_CONFIGS"). Raises ConfigError for one that does not
    apply to the resource type."""
    wanted = text.replace("_", "").upper()
    operations = (*SUPPORTED_OPERATIONS[kind], AclOperation.ALL)
    for operation in operations:
        if operation.name.replace("_", "") == wanted:
            return operation
    names = ", ".join(operation.name for operation in operations)
    raise ConfigError(f"{text} is not an operation on a resource of type {kind.name}, which has {names}")


def parse_pattern(text: str) -> PatternType:
    if text.upper() not in ("LITERAL", "PREFIXED"):
        raise ConfigError(f"{text} is not a pattern of an ACL: give literal or prefixed")
    return PatternType[text.upper()]


def parse_permission(text: str) -> PermissionType:
    if text.upper() not in ("ALLOW", "DENY"):
        raise ConfigError(f"{text} is not a permission of an ACL: give allow or deny")
    return PermissionType[text.upper()]
