"""The order in which Kafka lists client quotas: that of HashMaps of ClientQuotaControlManager and ClientQuotasImage.

Java's clients put the answers into maps again; others show them as they come, and compare them with lists.
"""

from __future__ import annotations

from operator import itemgetter

from kafka_shim.java_hash import java_string_hash
from kafka_shim.java_order import bucket, order_keys, order_strings, table_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    from kafka_shim.protocol.messages.alter_client_quotas_request import OpData
    from kafka_shim.turns import Steps

    _T = TypeVar("_T")


def entity_hash(parts: Iterable[tuple[str, str | None]]) -> int:
    """Returns `org.apache.kafka.common.quota.ClientQuotaEntity.hashCode`, of (type, name)."""
    found = 31
    for kind, name in parts:
        found += java_string_hash(kind) ^ (0 if name is None else java_string_hash(name))
    return found & 0xFFFFFFFF


def order_types(kinds: Sequence[str]) -> list[str]:
    """Returns the types of an entity as AlterClientQuotas lists them: its map begins with room for so many."""
    return order_strings(kinds, _grown_table_size(len(kinds)))


def order_new_values(operations: Iterable[OpData]) -> Steps[list[tuple[str, float | None]]]:
    """Returns (key, value or None to remove it) of one alteration in the order in which they enter the image."""
    buckets: dict[int, list[tuple[str, float | None]]] = {}
    for one in operations:
        number = bucket(java_string_hash(one.key), 16)
        buckets.setdefault(number, []).append((one.key, None if one.remove else one.value))
        yield
    return [value for number in sorted(buckets) for value in buckets[number]]


def order_values(keys: Sequence[str]) -> list[str]:
    """Returns the keys of an entity, which are in the order in which they entered the image, as they are described."""
    return order_strings(keys, _grown_table_size(len(keys)))


def order_altered(altered: list[tuple[int, _T]]) -> Steps[list[_T]]:
    """Returns what is paired with the hash of an entity, in the order in which a new HashMap has the entities: that of
    the answer, and of what is new in the image. Of an entity that comes twice the first stays the first."""
    size = table_size(len({known for known, _ in altered}))
    buckets: dict[int, list[_T]] = {}
    for known, one in altered:
        buckets.setdefault(bucket(known, size), []).append(one)
        yield
    return [one for number in sorted(buckets) for one in buckets[number]]


def order_described(found: list[tuple[int, _T]], count: int) -> list[_T]:
    """Returns what is paired with the hash of an entity, in the order of an image of `count` entities."""
    return [one for _, one in order_keys(found, itemgetter(0), _grown_table_size(count))]


def _grown_table_size(count: int) -> int:
    """Returns the number of buckets of a HashMap that was made for one entry less, or for as many."""
    return table_size(count, 1)
