"""Which partition a key belongs to for the default partitioner of Java (Kafka: BuiltInPartitioner)."""

from __future__ import annotations

_SEED, _M, _R, _MASK = 0x9747B28C, 0x5BD1E995, 24, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Returns Kafka's hash of a key, unsigned."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * _M) & _MASK
        k ^= k >> _R
        h = ((h * _M) & _MASK) ^ ((k * _M) & _MASK)
    if length != whole:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def partition_for(key: bytes, count: int) -> int:
    """Returns the partition of `key` in a topic of `count` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % count
