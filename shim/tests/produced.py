"""Record batches and requests for tests of the data path."""

from __future__ import annotations

from typing import Any

from kafka_shim.cext import builder
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_shim.protocol.messages.fetch_response import PartitionData
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.protocol.messages.produce_response import PartitionProduceResponse
from kafka_shim.wire_client import Connection


def batch(*values: bytes, timestamp_ms: int = 1_700_000_000_000, **header: Any) -> bytes:
    """One batch of these values, offsets from 0."""
    return bytes(builder.build([(None, value, timestamp_ms, []) for value in values], **header))


def produce_request(
    topic: str | bytes, partition: int, records: bytes | None, *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """A Produce of one partition; a topic of 16 bytes is an id."""
    data = TopicProduceData(partition_data=[PartitionProduceData(index=partition, records=records)])
    if isinstance(topic, bytes):
        data.topic_id = topic
    else:
        data.name = topic
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data], transactional_id=transactional_id)


def produce(
    client: Connection, topic: str | bytes, partition: int, records: bytes | None, version: int = 9, **how: Any
) -> PartitionProduceResponse:
    """The one partition's answer to a Produce of one partition."""
    response = client.request(produce_request(topic, partition, records, **how), version)
    return response.responses[0].partition_responses[0]  # type: ignore[no-any-return]


def fetch_request(wanted: dict[tuple[str | bytes, int], int], **how: Any) -> FetchRequest:
    """A Fetch of (topic, partition) -> offset; `partition_max_bytes` is for each."""
    partition_max_bytes = how.pop("partition_max_bytes", 1 << 20)
    request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24, **how})
    for (topic, partition), offset in wanted.items():
        entry = FetchTopic()
        if isinstance(topic, bytes):
            entry.topic_id = topic
        else:
            entry.topic = topic
        entry.partitions = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        ]
        request.topics.append(entry)
    return request


def fetch(
    client: Connection, topic: str | bytes, partition: int, offset: int, version: int = 12, **how: Any
) -> PartitionData:
    """The one partition's answer to a Fetch of one partition."""
    response = client.request(fetch_request({(topic, partition): offset}, **how), version)
    return response.responses[0].partitions[0]  # type: ignore[no-any-return]


def make_topic(client: Connection, name: str, partitions: int = -1, **configs: str) -> bytes:
    """Create a topic, options with underscores; its id."""
    options = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=options)
    (told,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics
    assert told.error_code == 0, told
    return told.topic_id  # type: ignore[no-any-return]


def metadata(client: Connection, *names: str, version: int = 12, **how: Any) -> Any:
    """A Metadata answer; no names: all topics."""
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    return client.request(MetadataRequest(topics=topics, **how), version)


def size_of(records: Any) -> int:
    """Bytes of a `records` field."""
    return 0 if records is None else len(records)
