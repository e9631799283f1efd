"""Whom a quota is for: a user, a client id, both, or the defaults of each (Kafka: ClientQuotaEntity).

An entity is (user, client id). Each is a name, `DEFAULT`, or `ABSENT` if the quota does not depend on it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Entity = tuple[str | None, str | None]

# Names are never empty: AlterClientQuotas refuses it.
ABSENT = ""
DEFAULT = None
USER, CLIENT_ID, IP = "user", "client-id", "ip"


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Returns the entity of (type, name) pairs of the metadata log, which are not of type `ip`."""
    names = dict(parts)
    return names.get(USER, ABSENT), names.get(CLIENT_ID, ABSENT)


def measured_as(entities: Collection[Entity], user: str, client_id: str) -> Entity:
    """Returns what the usage of this client is counted for: the most specific entity that has a quota decides whether
    its usage is counted for the user, the client id or both (DefaultQuotaCallback.quotaMetricTags)."""
    for entity in (
        (user, client_id),
        (user, DEFAULT),
        (user, ABSENT),
        (DEFAULT, client_id),
        (DEFAULT, DEFAULT),
        (DEFAULT, ABSENT),
    ):
        if entity in entities:
            return user, ABSENT if entity[1] == ABSENT else client_id
    return ABSENT, client_id


def candidates(measured: Entity) -> tuple[Entity, ...]:
    """Returns the entities whose quota may hold for what is counted for `measured`, in order of precedence
    (DefaultQuotaCallback.findQuota)."""
    user, client_id = measured
    if client_id == ABSENT:
        return (user, ABSENT), (DEFAULT, ABSENT)
    if user == ABSENT:
        return (ABSENT, client_id), (ABSENT, DEFAULT)
    return (user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)
