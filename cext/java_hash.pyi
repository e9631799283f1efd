"""Java's string hash, which Kafka uses to assign group ids and transactional ids to partitions of internal topics."""

def java_string_hash(text: str) -> int:
    """`String.hashCode`: computed over UTF-16 units and wrapped to a signed 32-bit integer."""

def internal_partition(key: str, partition_count: int) -> int:
    """Return the partition that holds `key`: abs(hash) mod count. The abs of the smallest integer is 0
    (`Utils.abs`). `partition_count` must not be 0."""
