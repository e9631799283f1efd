"""The topic hash in a group's epoch record (KIP-1101): XXH3-64 over the topic data that a rebalance depends on.

The byte layout is that of Kafka's hash stream (little endian, strings as UTF-16 code units followed by their count), so
that Kafka, started on the same directory, finds no change.
"""

from __future__ import annotations

from struct import Struct

from xxhash import xxh3_64_intdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.metadata.image import Topic

MAGIC = 0

_INT = Struct("<i")
_LONG = Struct("<Q")


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def hash_topic(topic: Topic, rack: str | None) -> int:
    """Returns the hash of a topic: its id, name, partition count and the racks of its replicas, which are all on this
    node."""
    count = len(topic.partitions)
    parts = [
        bytes((MAGIC,)),
        topic.topic_id[7::-1],  # two longs, each converted to little endian
        topic.topic_id[15:7:-1],
        _string(topic.name),
        _INT.pack(count),
    ]
    racks = b"" if rack is None else _INT.pack(len(rack.encode("utf-16-le")) // 2) + _string(rack)
    for partition in range(count):
        parts.append(_INT.pack(partition))
        parts.append(racks)
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def combine(hashes: Iterable[int]) -> int:
    """Returns the hash of a group, from its topics' hashes in the order of their names."""
    return _signed(xxh3_64_intdigest(b"".join(_LONG.pack(value & 0xFFFFFFFFFFFFFFFF) for value in hashes)))
