"""`/api/acls`, `/api/users`, `/api/quotas`: who may do what, who can log in with SCRAM, and who is throttled."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.parameters import Query

MOST_ROWS = 1000
ANY = 1
# Kafka: ResourceType, PatternType, AclOperation, AclPermissionType, ScramMechanism
RESOURCES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token", 7: "user"}
PATTERNS = {3: "literal", 4: "prefixed"}
OPERATIONS = dict(
    enumerate(
        (
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
            "TWO_PHASE_COMMIT",
        ),
        start=2,
    )
)
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def acls(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the ACLs that hold `filter`. Raises BadRequestError, RequestError, WireClientError."""
    wanted = query.text("filter", "").lower()
    request = make(
        "DescribeAcls",
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answer = cluster.ask(request)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        return {"acls": [], "count": 0, "note": "The broker has no authorizer: everybody may do everything."}
    check(answer.error_code, answer.error_message)
    rows = [
        {
            "principal": one.principal,
            "permission": PERMISSIONS.get(one.permission_type, str(one.permission_type)),
            "operation": OPERATIONS.get(one.operation, str(one.operation)),
            "kind": RESOURCES.get(resource.resource_type, str(resource.resource_type)),
            "resource": resource.resource_name,
            "pattern": PATTERNS.get(resource.pattern_type, str(resource.pattern_type)),
            "host": one.host,
        }
        for resource in answer.resources
        for one in resource.acls
    ]
    rows = [row for row in rows if wanted in f"{row['principal']} {row['resource']} {row['operation']}".lower()]
    rows.sort(key=lambda row: tuple(row.values()))
    return {"acls": rows[:MOST_ROWS], "count": len(rows), "note": ""}


def users(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the users with SCRAM credentials, never the credentials. Raises like `acls`."""
    wanted = query.text("filter", "").lower()
    answer = cluster.ask(make("DescribeUserScramCredentials", users=None))
    check(answer.error_code, answer.error_message)
    rows = [
        {
            "name": one.user,
            "credentials": [
                f"{MECHANISMS.get(each.mechanism, each.mechanism)}, {each.iterations} iterations"
                for each in one.credential_infos
            ],
        }
        for one in answer.results
        if not one.error_code and wanted in one.user.lower()
    ]
    rows.sort(key=lambda row: str(row["name"]))
    return {"users": rows[:MOST_ROWS], "count": len(rows)}


def quotas(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the quotas of users, clients and addresses. Raises like `acls`."""
    wanted = query.text("filter", "").lower()
    answer = cluster.ask(make("DescribeClientQuotas", components=[], strict=False))
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
    return {"quotas": rows[:MOST_ROWS], "count": len(rows)}
