"""Java's string hash, which Kafka uses to assign group ids and transactional ids to partitions of internal topics."""

from __future__ import annotations

from kafka_shim.cext.java_hash import internal_partition, java_string_hash

__all__ = ["internal_partition", "java_string_hash"]
