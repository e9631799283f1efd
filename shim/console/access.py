"""`/api/own`: what the person may do; `/api/acls`, `/api/users`, `/api/quotas`: who may do what, who can log in with
SCRAM, and who is throttled. A part that the person may not see is empty, and its note says which ACL that takes."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.sasl.scram import NAME_OF
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import IntEnum
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.parameters import Query

MOST_ROWS = 1000
# Metadata, where it says nothing of them.
UNKNOWN_OPERATIONS = -(1 << 31)


def own(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the topics that the person may describe and what else they may do with each, of those whose names hold
    `filter`. Raises BadRequestError, RequestError, WireClientError."""
    wanted = query.text("filter", "").lower()
    answer = cluster.ask(
        make("Metadata", topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    )
    rows = [
        {"topic": topic.name, "operations": _operations(topic.topic_authorized_operations)}
        for topic in answer.topics
        if not topic.error_code and wanted in topic.name.lower()
    ]
    rows.sort(key=lambda row: str(row["topic"]))
    return {"own": rows[:MOST_ROWS], "count": len(rows), "note": ""}


def _operations(bits: int) -> list[str]:
    """The names of the operations whose bits are set."""
    if bits == UNKNOWN_OPERATIONS:
        return []
    return [one.name for one in AclOperation if one > AclOperation.ALL and bits >> one & 1]


def acls(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the ACLs that hold `filter`. Raises BadRequestError, RequestError, WireClientError."""
    wanted = query.text("filter", "").lower()
    request = make(
        "DescribeAcls",
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=PermissionType.ANY,
    )
    answer = cluster.ask(request)
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return _refused("acls", "the ACLs", AclOperation.DESCRIBE)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return {"acls": [], "count": 0, "note": "The broker has no authorizer: everybody may do everything."}
    check(answer.error_code, answer.error_message)
    rows = [
        {
            "principal": one.principal,
            "permission": _name(PermissionType, one.permission_type),
            "operation": _name(AclOperation, one.operation),
            "kind": _name(ResourceType, resource.resource_type).lower().replace("_", " "),
            "resource": resource.resource_name,
            "pattern": _name(PatternType, resource.pattern_type).lower(),
            "host": one.host,
        }
        for resource in answer.resources
        for one in resource.acls
    ]
    rows = [row for row in rows if wanted in f"{row['principal']} {row['resource']} {row['operation']}".lower()]
    rows.sort(key=lambda row: tuple(row.values()))
    return {"acls": rows[:MOST_ROWS], "count": len(rows), "note": ""}


def _refused(part: str, what: str, operation: AclOperation) -> dict[str, Any]:
    """A part that the person may not see."""
    name = operation.name.title().replace("_", "")
    takes = f"kafka-shim acls add --allow-principal User:NAME --cluster --operation {name}"
    return {part: [], "count": 0, "refused": True, "note": f"You may not see {what}. An ACL would let you: {takes}"}


def _name(kind: type[IntEnum], value: int) -> str:
    """The name of a number of Kafka's; the number itself if a newer broker sent it."""
    try:
        return kind(value).name
    except ValueError:
        return str(value)


def users(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the users with SCRAM credentials, never the credentials. Raises like `acls`."""
    wanted = query.text("filter", "").lower()
    answer = cluster.ask(make("DescribeUserScramCredentials", users=None))
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return _refused("users", "the users", AclOperation.DESCRIBE)
    check(answer.error_code, answer.error_message)
    rows = [
        {
            "name": one.user,
            "credentials": [
                f"{NAME_OF.get(each.mechanism, each.mechanism)}, {each.iterations} iterations"
                for each in one.credential_infos
            ],
        }
        for one in answer.results
        if not one.error_code and wanted in one.user.lower()
    ]
    rows.sort(key=lambda row: str(row["name"]))
    return {"users": rows[:MOST_ROWS], "count": len(rows), "note": ""}


def quotas(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the quotas of users, clients and addresses. Raises like `acls`."""
    wanted = query.text("filter", "").lower()
    answer = cluster.ask(make("DescribeClientQuotas", components=[], strict=False))
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return _refused("quotas", "the quotas", AclOperation.DESCRIBE_CONFIGS)
    check(answer.error_code, answer.error_message)
    rows = [
        {
            "entity": ", ".join(
                f"{part.entity_type} {'(default)' if part.entity_name is None else part.entity_name}"
                for part in entry.entity
            ),
            "quotas": [f"{value.key} = {value.value:g}" for value in entry.values],
        }
        for entry in answer.entries or ()
    ]
    rows = [row for row in rows if wanted in str(row["entity"]).lower()]
    rows.sort(key=lambda row: str(row["entity"]))
    return {"quotas": rows[:MOST_ROWS], "count": len(rows), "note": ""}
