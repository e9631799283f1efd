"""The lines of the log that tell an operator who may do what from now on: ACLs, users of SCRAM, quotas, delegation
tokens. Passwords and keys are in none."""

from __future__ import annotations

from kafka_shim.metadata.authors import cut
from kafka_shim.metadata.replay import entity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from kafka_shim.metadata.image import Image

# One request may add or remove 10,000 ACLs, and each line holds the loop.
MAX_LINES = 100
# Quotas of which the entity is looked at: an entity has at most five.
MAX_QUOTAS = 5 * MAX_LINES
# Kafka's codes (kafka_shim.security.acl, which imports this package).
RESOURCES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token", 7: "user"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
PREFIXED = 4
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
NOUNS = {"user": "user", "client-id": "client id", "ip": "address"}


def access_lines(records: Sequence[Any], image: Image) -> Iterator[str]:
    """Yields a line for each of the records, whose types are in `TOLD`. `image` is the one before them."""
    quotas: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    others = []
    read = left_out = 0
    for record in records:
        if record.API_KEY != QUOTA:
            others.append(record)
        elif read == MAX_QUOTAS:
            left_out += 1
        else:
            read += 1
            change = f"{record.key} is unset" if record.remove else f"{record.key}={record.value:.15g}"
            quotas.setdefault(entity_of(record), []).append(change)
    for record in others[:MAX_LINES]:
        yield TOLD[record.API_KEY](record, image)
    for entity, changes in list(quotas.items())[:MAX_LINES]:
        yield f"quotas of {_entity(entity)} change: {', '.join(changes)}"
    left_out += max(0, len(others) - MAX_LINES) + max(0, len(quotas) - MAX_LINES)
    if left_out:
        yield f"{left_out} more ACLs, users, quotas or delegation tokens change with these"


def _acl(acl: Any) -> str:
    pattern = "s that begin with" if acl.pattern_type == PREFIXED else ""
    return (
        f"{PERMISSIONS.get(acl.permission_type, acl.permission_type)} "
        f"{OPERATIONS.get(acl.operation, acl.operation)} on {RESOURCES.get(acl.resource_type, acl.resource_type)}"
        f"{pattern} {cut(acl.resource_name)} for {cut(acl.principal)} from host {cut(acl.host)}"
    )


def _acl_added(record: Any, image: Image) -> str:
    return f"ACL is added: {_acl(record)}"


def _acl_removed(record: Any, image: Image) -> str:
    acl = image.acls.get(record.id)
    return f"ACL is removed: {record.id.hex() if acl is None else _acl(acl)}"


def _user(record: Any, image: Image) -> str:
    mechanism = MECHANISMS.get(record.mechanism, str(record.mechanism))
    which = "another" if (record.name, record.mechanism) in image.scram else "a"
    return f"user {cut(record.name)} has {which} password for {mechanism}"


def _user_removed(record: Any, image: Image) -> str:
    mechanism = MECHANISMS.get(record.mechanism, str(record.mechanism))
    return f"user {cut(record.name)} has no password for {mechanism} any more"


def _token(record: Any, image: Image) -> str:
    what = "has another expiry" if record.token_id in image.delegation_tokens else "is created"
    return f"the delegation token {record.token_id} of {cut(record.owner)} {what}"


def _entity(entity: tuple[tuple[str, str | None], ...]) -> str:
    """An entity without a name is the default of its kind."""
    return ", ".join(
        f"the default {NOUNS.get(kind, kind)}" if name is None else f"{NOUNS.get(kind, kind)} {cut(name)}"
        for kind, name in sorted(entity, key=lambda one: list(NOUNS).index(one[0]) if one[0] in NOUNS else len(NOUNS))
    )


QUOTA = 14
# Record type (API key) -> function that makes its line. `security.delegation_tokens` says why a token is removed.
TOLD: dict[int, Callable[[Any, Image], str]] = {
    10: _token,
    11: _user,
    18: _acl_added,
    19: _acl_removed,
    22: _user_removed,
}
