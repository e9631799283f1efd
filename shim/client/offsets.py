"""Committed offsets of groups."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

# The last version of OffsetFetch and OffsetCommit that names topics.
BY_NAME = 9


def committed_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    """Returns all committed offsets of a group. A group that does not exist has none."""
    groups = [{"group_id": group, "topics": None}]

    def ask() -> dict[TopicPartition, int]:
        request = make("OffsetFetch", groups=groups, require_stable=False)
        (answer,) = cluster.coordinator(group).request(request, BY_NAME).groups
        check(answer.error_code, subject=group)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    return cluster.patiently(ask)


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    member_id: str = "",
    member_epoch: int = -1,
) -> None:
    """Commit offsets, as a member, or without one if the group has none. Raises RequestError for the first that is
    refused."""
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": each, "committed_offset": offsets[topic, each]} for each in partitions],
        }
        for topic, partitions in by_topic(offsets).items()
    ]

    def ask() -> None:
        request = make(
            "OffsetCommit",
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=member_epoch,
            topics=topics,
        )
        _check_each(cluster.coordinator(group).request(request, BY_NAME).topics)

    cluster.patiently(ask)


def _check_each(topics: Iterable[Any]) -> None:
    for topic in topics:
        for each in topic.partitions:
            check(each.error_code, subject=f"{topic.name}-{each.partition_index}")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Returns topic -> partitions, in the given order."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
