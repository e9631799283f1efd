"""Alters and finds client quotas, which are records of the metadata log (Kafka: ClientQuotaControlManager,
ClientQuotasImage)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord, EntityData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_shim.metadata.image import Image
    from kafka_shim.turns import Steps

    # Type -> name; None is the default of that type.
    EntityNames = Mapping[str, str | None]
    # One alteration: the entity, and (key, new value or None to remove it).
    Alteration = tuple[EntityNames, Sequence[tuple[str, float | None]]]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
# Key -> the largest integer, or None for a key that takes fractions (QuotaConfig).
USER_AND_CLIENT_KEYS: dict[str, int | None] = {
    "producer_byte_rate": MAX_INT64,
    "consumer_byte_rate": MAX_INT64,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
IP_KEYS: dict[str, int | None] = {"connection_creation_rate": MAX_INT32}
# Match types of DescribeClientQuotas.
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def decide_in_steps(
    image: Image, alterations: Sequence[Alteration], resolvable: Collection[str]
) -> Steps[tuple[list[ClientQuotaRecord], list[tuple[EntityNames, KafkaError | None]]]]:
    """Returns the records to commit, and the result of each entity. An entity that is named twice gets an error, and
    keeps what its first alteration says, as in Kafka. `resolvable` are the names of entities of type `ip` that are
    addresses or names of hosts."""
    records: list[ClientQuotaRecord] = []
    results: dict[tuple[tuple[str, str | None], ...], tuple[EntityNames, KafkaError | None]] = {}
    for names, operations in alterations:
        yield
        key = _key(names)
        values: dict[str, float | None] = {}
        # Of an option that is named twice Kafka says the same as of an entity that is.
        is_twice = key in results
        for option, value in operations:
            is_twice = is_twice or option in values
            values.setdefault(option, value)
            yield
        if is_twice:
            results[key] = names, _invalid(f"Ignoring duplicate entity {_shown(names)}")
            continue
        try:
            records += yield from _decide(image, names, values, resolvable)
        except KafkaError as error:
            results[key] = names, error
        else:
            results[key] = names, None
    return records, list(results.values())


def find(
    image: Image, components: Sequence[tuple[str, int, str | None]], *, strict: bool
) -> Steps[Sequence[tuple[tuple[tuple[str, str | None], ...], Mapping[str, float]]]]:
    """Returns (entity, values) of those that the filter matches. A component is (type, match type, name). With `strict`
    an entity with further types does not match.

    Raises KafkaError INVALID_REQUEST, UNSUPPORTED_VERSION."""
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for kind, match_type, name in components:
        _check_component(kind, match_type, name, named=kind in exact or kind in specified)
        if match_type == SPECIFIED:
            specified.add(kind)
        else:
            exact[kind] = name
    kinds = exact.keys() | specified
    if IP in kinds and kinds & {USER, CLIENT_ID}:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    found: list[tuple[tuple[tuple[str, str | None], ...], Mapping[str, float]]] = []
    for entity, values in list(image.quotas.items()):
        names = dict(entity)
        if (
            (not strict or len(names) == len(kinds))
            and specified <= names.keys()
            and all(kind in names and names[kind] == exact[kind] for kind in exact)
        ):
            found.append((entity, values))
        yield
    return found


def _decide(
    image: Image, names: EntityNames, values: Mapping[str, float | None], resolvable: Collection[str]
) -> Steps[list[ClientQuotaRecord]]:
    _check_entity(names)
    keys = _keys_for(names, resolvable)
    current = image.quotas.get(_key(names), {})
    for key, value in values.items():
        if value is not None:
            _check_value(keys, key, value)
        yield
    records = []
    for key, value in values.items():
        if value is None:
            if key in current:
                records.append(ClientQuotaRecord(entity=_parts(names), key=key, remove=True))
        elif current.get(key) != value:
            records.append(ClientQuotaRecord(entity=_parts(names), key=key, value=value))
        yield
    return records


def _check_entity(names: EntityNames) -> None:
    if not names:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")


def _keys_for(names: EntityNames, resolvable: Collection[str]) -> dict[str, int | None]:
    if IP not in names:
        return USER_AND_CLIENT_KEYS
    if len(names) > 1:
        # Kafka leaves out the space too.
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = names[IP]
    if address is not None and address not in resolvable:
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return IP_KEYS


def _check_value(keys: Mapping[str, int | None], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0.0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None:
        return
    if value > float(largest):  # as a double the largest LONG is one more, and all that clients can send for it
        kind = "an INT" if largest == MAX_INT32 else "a LONG"
        raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if value % 1.0 > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")


def _check_component(kind: str, match_type: int, name: str | None, *, named: bool) -> None:
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if named:
        raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in (USER, CLIENT_ID, IP):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if match_type == EXACT:
        if name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif match_type in (DEFAULT, SPECIFIED):
        if name is not None:
            shown = "DEFAULT" if match_type == DEFAULT else "SPECIFIED"
            raise _invalid(f"Request specified MATCH_TYPE_{shown}, but also specified a match string.")
    else:
        raise _invalid(f"Unknown match type {match_type}")


def _key(names: EntityNames) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(names.items()))


def _parts(names: EntityNames) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]


def _shown(names: EntityNames) -> str:
    inside = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in names.items())
    return f"ClientQuotaEntity(entries={{{inside}}})"


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
