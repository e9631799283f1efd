"""The iteration order of Java's HashMap and HashSet, and of Kafka's TimelineHashMap.

Kafka's assignors and votes iterate over such maps, so their results depend on it. The order follows from the public
hash functions and the table sizes (16, doubled beyond 3/4 full; hash spread by `h ^ h >>> 16`), which are stable since
Java 8. Entries of one bucket keep their insertion order.
"""

from __future__ import annotations

from kafka_shim.java_hash import java_string_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    _K = TypeVar("_K")


def uuid_hash(uuid: bytes) -> int:
    """`org.apache.kafka.common.Uuid.hashCode`."""
    xor = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return (xor >> 32 ^ xor) & 0xFFFFFFFF


def topic_partition_hash(topic: str, partition: int) -> int:
    """`org.apache.kafka.common.TopicPartition.hashCode`."""
    return 31 * (31 + partition) + java_string_hash(topic)


def table_size(count: int, initial: int = 16) -> int:
    """Returns the number of buckets of a map that grew from `initial` buckets to `count` entries."""
    size = initial
    while count > size * 3 // 4:
        size *= 2
    return size


def copied_table_size(count: int) -> int:
    """Returns the number of buckets of `new HashSet<>(collection)`: room for count / 0.75 + 1, at least 16, the next
    power of two."""
    wanted = max(int(count / 0.75) + 1, 16)
    return 1 << (wanted - 1).bit_length()


def copied_map_size(count: int) -> int:
    """Returns the number of buckets of `new HashMap<>(map)`: room for count / 0.75, the next power of two."""
    return 1 << (-(-count * 4 // 3) - 1).bit_length() if count else 16


def presized_table_size(count: int) -> int:
    """Returns the number of buckets of a map that Kafka's `AssignorHelpers` makes for so many entries."""
    wanted = int((count + 1) / 0.75 + 1)
    return 1 << (wanted - 1).bit_length()


def scala_table_size(count: int) -> int:
    """Returns the number of buckets of a `scala.collection.mutable.HashMap` that is made from so many entries."""
    return 1 << max(int((count + 1) / 0.75) - 1, 15).bit_length()


def spread(hash_code: int) -> int:
    """Returns the signed hash by which Scala's HashMap orders the keys of a bucket."""
    mixed = (hash_code & 0xFFFFFFFF) >> 16 ^ hash_code & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >> 31 else mixed


def bucket(hash_code: int, size: int) -> int:
    """Returns the bucket, of `size`, that a HashMap puts a key with this hash code into."""
    return ((hash_code & 0xFFFFFFFF) >> 16 ^ hash_code) & (size - 1)


def order_keys(keys: Iterable[_K], hash_of: Callable[[_K], int], size: int) -> list[_K]:
    """Returns keys in the order of a HashMap with `size` buckets."""
    return sorted(keys, key=lambda key: bucket(hash_of(key), size))


def order_strings(keys: Iterable[str], size: int = 0) -> list[str]:
    """Returns strings in the order of a HashMap with `size` buckets (0: as it grows on insertion)."""
    found = list(keys)
    return order_keys(found, java_string_hash, size or table_size(len(found)))


def order_uuids(keys: Iterable[bytes], size: int = 0) -> list[bytes]:
    """Returns Uuids in the order of a HashMap with `size` buckets (0: as it grows on insertion)."""
    found = list(keys)
    return order_keys(found, uuid_hash, size or table_size(len(found))) if len(found) > 1 else found


def order_ints(keys: Iterable[int], size: int = 0) -> list[int]:
    """Returns small integers in the order of a HashSet: ascending until they exceed the number of its buckets."""
    found = sorted(keys)
    buckets = size or table_size(len(found))
    if not found or found[-1] < buckets:
        return found
    return order_keys(found, int, buckets)


# Knuth's multiplicative hash, as Kafka's BaseHashTable applies it to spread the keys over the highest bits.
_FIBONACCI = -7046029254386353131


def order_timeline(keys: Iterable[str]) -> list[str]:
    """Returns strings in the order of a TimelineHashMap into which they were put in this order. (Where keys were
    removed before, Kafka's table may be larger than this.)

    A slot lists its latest key first. The table doubles when 3/4 (size + 1) exceeds it, and a key in a free slot counts
    twice in its size."""
    slots: list[list[tuple[int, str]]] = [[], []]
    shift = 63
    size = 0
    for key in keys:
        if (size + 1) * 3 > len(slots) * 4:
            known = [each for slot in slots for each in slot]
            slots = [[] for _ in range(len(slots) * 2)]
            shift -= 1
            for each in known:
                slots[each[0] >> shift].append(each)
        spread = java_string_hash(key) * _FIBONACCI & 0xFFFFFFFFFFFFFFFF
        slot = slots[spread >> shift]
        size += 1 if slot else 2
        slot.append((spread, key))
    return [key for slot in slots for _, key in reversed(slot)]


def order_partitions(topic: str, partitions: Iterable[int]) -> list[int]:
    """Returns partitions in the order of a ConcurrentHashMap whose keys are these TopicPartitions."""
    found = list(partitions)
    size = 16
    while len(found) >= size * 3 // 4:
        size *= 2
    return order_keys(found, lambda partition: topic_partition_hash(topic, partition), size)
