"""`/api/topics`: the topics, a page of them; `/api/topic`: one with its partitions."""

from __future__ import annotations

from kafka_shim.client.cluster import some_at_once
from kafka_shim.client.reading import EARLIEST, LATEST
from kafka_shim.console.cluster import COMMITTED, is_denied, name_of
from kafka_shim.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.parameters import Query

    TopicPartition = tuple[str, int]

ROWS, MOST_ROWS = 100, 500
# Beyond this many partitions of a page their offsets are not asked for.
MOST_OFFSETS = 5000
# The partitions of one topic that are shown.
MOST_PARTITIONS = 1000
# Topics of one request for sizes: a broker answers others between two.
SIZES_AT_ONCE = 20


def listed(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return a page of the topics whose names hold `filter`. Raises BadRequestError, RequestError, WireClientError."""
    wanted = query.text("filter", "").lower()
    start, most = query.number("start", 0, high=1 << 31), query.number("limit", ROWS, 1, MOST_ROWS)
    with_internal = query.choice("internal", ("yes", "no"), "yes") == "yes"
    found = [
        topic
        for topic in cluster.metadata(None).topics
        if wanted in topic.name.lower() and (with_internal or not topic.is_internal)
    ]
    found.sort(key=lambda topic: (topic.is_internal, topic.name))
    part = found[start : start + most]
    leaders = _leaders(part)
    counts = {} if len(leaders) > MOST_OFFSETS else _counts(cluster, leaders)
    sizes = _sizes(cluster, part) if len(leaders) <= MOST_OFFSETS else {}
    return {
        "total": len(found),
        "start": start,
        "topics": [
            {
                "name": topic.name,
                "internal": topic.is_internal,
                "partitions": len(topic.partitions),
                "replicas": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
                "offsets": _sum(topic, counts),
                "bytes": _sum(topic, sizes),
                "offline": sum(one.leader_id < 0 for one in topic.partitions),
                "underReplicated": sum(len(one.isr_nodes) < len(one.replica_nodes) for one in topic.partitions),
                "error": name_of(topic.error_code),
            }
            for topic in part
        ],
    }


def described(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return one topic. Raises BadRequestError, RequestError, WireClientError."""
    name = query.text("name")
    (topic,) = cluster.metadata([name]).topics
    check(topic.error_code, subject=name)
    partitions = sorted(topic.partitions, key=lambda one: int(one.partition_index))[:MOST_PARTITIONS]
    leaders = {(name, one.partition_index): one.leader_id for one in partitions}
    first = cluster.offsets(dict.fromkeys(leaders, EARLIEST), leaders)
    last = cluster.offsets(dict.fromkeys(leaders, LATEST), leaders)
    stable = cluster.offsets(dict.fromkeys(leaders, LATEST), leaders, COMMITTED)
    sizes = _sizes(cluster, [topic])
    return {
        "name": name,
        "id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitionCount": len(topic.partitions),
        "partitions": [
            {
                "partition": one.partition_index,
                "leader": one.leader_id,
                "epoch": one.leader_epoch,
                "replicas": list(one.replica_nodes),
                "isr": list(one.isr_nodes),
                "earliest": first.get((name, one.partition_index)),
                "latest": last.get((name, one.partition_index)),
                "lastStable": stable.get((name, one.partition_index)),
                "bytes": sizes.get((name, one.partition_index)),
            }
            for one in partitions
        ],
    }


def _leaders(topics: list[Any]) -> dict[TopicPartition, int]:
    return {(topic.name, one.partition_index): one.leader_id for topic in topics for one in topic.partitions}


def _counts(cluster: Cluster, leaders: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    first = cluster.offsets(dict.fromkeys(leaders, EARLIEST), leaders)
    last = cluster.offsets(dict.fromkeys(leaders, LATEST), leaders)
    return {each: last[each] - offset for each, offset in first.items() if each in last}


def _sizes(cluster: Cluster, topics: list[Any]) -> dict[TopicPartition, int]:
    """Bytes on the disk of the partitions' leaders; empty if the person may not see them."""
    found: dict[TopicPartition, int] = {}
    leaders = _leaders(topics)
    for node in sorted({leader for leader in leaders.values() if leader >= 0}):
        asked = [
            DescribableLogDirTopic(
                topic=topic.name, partitions=[one.partition_index for one in topic.partitions if one.leader_id == node]
            )
            for topic in topics
        ]
        for some in some_at_once(asked, SIZES_AT_ONCE):
            try:
                answer = cluster.ask(DescribeLogDirsRequest(topics=list(some)), node=node)
                check(answer.error_code)
                for directory in answer.results:
                    check(directory.error_code)
            except RequestError as error:
                if is_denied(error):
                    return {}
                raise
            for directory in answer.results:
                for topic in directory.topics:
                    for one in topic.partitions:
                        if not one.is_future_key:
                            found[topic.name, one.partition_index] = one.partition_size
    return found


def _sum(topic: Any, of: dict[TopicPartition, int]) -> int | None:
    """The sum over the partitions that are known; None where none is."""
    known = [of[topic.name, one.partition_index] for one in topic.partitions if (topic.name, one.partition_index) in of]
    return sum(known) if known else None
