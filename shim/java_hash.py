"""Java's string hash, which Kafka uses to assign group ids and transactional ids to partitions of internal topics."""

from __future__ import annotations


def java_string_hash(text: str) -> int:
    """`String.hashCode`: computed over UTF-16 units and wrapped to a signed 32-bit integer."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        result = (31 * result + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return result - 0x1_0000_0000 if result & 0x8000_0000 else result


def internal_partition(key: str, partition_count: int) -> int:
    """Returns the partition that holds `key`: abs(hash) mod count. The abs of the smallest integer is 0
    (`Utils.abs`)."""
    value = java_string_hash(key)
    return 0 if value == -0x8000_0000 else abs(value) % partition_count
