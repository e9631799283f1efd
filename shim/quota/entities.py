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


def otherwise_of(entities: Collection[Entity]) -> tuple[bool, bool]:
    """Returns whether the usage of clients for which no entity has a quota is counted for the user, and for the client
    id: as that of others where all quotas are of one kind, else for the client id."""
    kinds = {(user != ABSENT, client_id != ABSENT) for user, client_id in entities}
    return kinds.pop() if len(kinds) == 1 else (False, True)


def measured_as(entities: Collection[Entity], otherwise: tuple[bool, bool], user: str, client_id: str) -> Entity:
    """Returns what the usage of this client is counted for: the most specific entity that has a quota decides whether
    its usage is counted for the user, the client id or both (DefaultQuotaCallback.quotaMetricTags). `otherwise`: what
    `otherwise_of` returned."""
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
    of_user, of_client_id = otherwise
    return user if of_user else ABSENT, client_id if of_client_id else ABSENT


def candidates(measured: Entity) -> tuple[Entity, ...]:
    """Returns the entities whose quota may hold for what is counted for `measured`, in order of precedence
    (DefaultQuotaCallback.findQuota)."""
    user, client_id = measured
    if client_id == ABSENT:
        return (user, ABSENT), (DEFAULT, ABSENT)
    if user == ABSENT:
        return (ABSENT, client_id), (ABSENT, DEFAULT)
    return (user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)
