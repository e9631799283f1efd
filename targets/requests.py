"""Builds requests from plain values, for tests, scenarios and the bench, which send them with
``kafka_shim.wire_client``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from kafka_shim.cext.messages import encode
from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import request_class
from kafka_shim.protocol.records.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

Record = tuple[bytes | None, bytes | None]


NAMES = {row[0]: key for key, row in API_KEYS.items()}


def make(name: str, **fields: Any) -> Message:
    """Builds a request by Kafka's name. Nested structs are dicts: ``make("Metadata", topics=[{"name": "t"}])``."""
    made = request_class(NAMES[name])
    return struct(sys.modules[made.__module__], made, fields)


def struct(module: Any, made: type[Message], fields: Mapping[str, Any]) -> Message:
    """Builds a message or nested struct of `module` from plain values. Raises TypeError for an unknown field."""
    types = {row[0]: row[1] for row in made.FIELDS}
    return made(**{name: _value(module, types.get(name, ""), value) for name, value in fields.items()})


def _value(module: Any, kind: str, value: Any) -> Any:
    name = kind.removeprefix("[]")
    nested = getattr(module, name, None) if name[:1].isupper() else None
    if nested is None:
        return value
    if isinstance(value, Mapping):
        return struct(module, nested, value)
    if isinstance(value, list):
        return [struct(module, nested, item) if isinstance(item, Mapping) else item for item in value]
    return value


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


def create_topic(client: Connection, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """Creates a topic. Raises RequestError if that fails."""
    options = [{"name": key, "value": value} for key, value in (config or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": options}
    answer = client.request(make("CreateTopics", topics=[topic], timeout_ms=60_000), 5)
    check(answer.topics[0].error_code, answer.topics[0].error_message, name)


def error_names(codes: Iterable[int]) -> list[str]:
    """Returns Kafka's names of error codes."""
    return [ErrorCode(code).name for code in codes]


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
