"""Builds requests from plain values, for tests, scenarios and the bench, which send them with
``kafka_shim.wire_client``.
"""

from __future__ import annotations

from kafka_shim.cext.messages import encode
from kafka_shim.cext.records import build
from kafka_shim.client.requests import NAMES, make, struct
from kafka_shim.protocol.records.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from kafka_shim.protocol.message import Message

Record = tuple[bytes | None, bytes | None]


# The most partitions that one CreateTopics may make.
MOST_NEW_PARTITIONS = 10_000

__all__ = [
    "MOST_NEW_PARTITIONS",
    "NAMES",
    "create_topic",
    "create_topics",
    "fetch",
    "finalise",
    "make",
    "produce",
    "struct",
]


def produce(
    topic: str,
    partition: int,
    records: Sequence[Record] | bytes | bytearray | None,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    topic_id: bytes = bytes(16),
    **batch: Any,
) -> Message:
    """Builds a Produce request for one partition. `records` are (key, value) pairs or the bytes of whole batches.
    `batch` are keyword arguments of ``kafka_shim.cext.records.build``.
    """
    if not isinstance(records, bytes | bytearray | None):
        records = build([(key, value, 1, ()) for key, value in records], **batch)
    return make(
        "Produce",
        acks=acks,
        timeout_ms=30_000,
        transactional_id=transactional_id,
        topic_data=[
            {"name": topic, "topic_id": topic_id, "partition_data": [{"index": partition, "records": records}]}
        ],
    )


def fetch(
    topic: str,
    partition: int,
    offset: int,
    *,
    isolation_level: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    topic_id: bytes = bytes(16),
) -> Message:
    """Builds a sessionless Fetch request for one partition."""
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    return make(
        "Fetch",
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[{"topic": topic, "topic_id": topic_id, "partitions": [part]}],
    )


def finalise(client: Connection, feature: str, level: int) -> None:
    """Finalises a feature at a level up to the one that it has."""
    safe_downgrade = 2
    update = {"feature": feature, "max_version_level": level, "upgrade_type": safe_downgrade}
    answer = client.request(make("UpdateFeatures", feature_updates=[update], timeout_ms=10_000), 1)
    check(answer.error_code, answer.error_message)


def create_topic(client: Connection, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Creates a topic. Raises RequestError if that fails."""
    options = [{"name": key, "value": value} for key, value in (config or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": options}
    answer = client.request(make("CreateTopics", topics=[topic], timeout_ms=60_000), 5)
    check(answer.topics[0].error_code, answer.topics[0].error_message, name)


def create_topics(client: Connection, names: Sequence[str], partitions: int) -> None:
    """Creates topics of so many partitions each, in as few requests as there may be. Raises RequestError."""
    # A topic is a record of its own beside those of its partitions, and one request may store as many as partitions.
    first = min(partitions, MOST_NEW_PARTITIONS - 1)
    each = MOST_NEW_PARTITIONS // (first + 1)
    for start in range(0, len(names), each):
        topics = [
            {"name": name, "num_partitions": first, "replication_factor": 1} for name in names[start : start + each]
        ]
        for told in client.request(make("CreateTopics", topics=topics, timeout_ms=60_000), 5).topics:
            check(told.error_code, told.error_message, told.name)
    for name in names if first < partitions else ():
        whole = {"name": name, "count": partitions, "assignments": None}
        for result in client.request(make("CreatePartitions", topics=[whole], timeout_ms=60_000), 2).results:
            check(result.error_code, result.error_message, name)


def subscription(*topics: str, owned: dict[str, list[int]] | None = None, version: int = 1) -> bytes:
    """Returns the subscription bytes that a consumer puts into JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[TopicPartition(topic=topic, partitions=numbers) for topic, numbers in (owned or {}).items()],
    )
    return version.to_bytes(2, "big") + encode(message, version)


def protocols(*names: str, metadata: bytes = b"") -> list[dict[str, Any]]:
    """Returns the protocols field of JoinGroup."""
    return [{"name": name, "metadata": metadata} for name in names]
