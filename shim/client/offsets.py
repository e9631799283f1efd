"""Committed offsets of groups."""

from __future__ import annotations

from kafka_shim.client.cluster import GROUP, PASSING, some_at_once
from kafka_shim.client.requests import make
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

    Offsets = dict[TopicPartition, int]

# The last version of OffsetFetch and OffsetCommit that names topics.
BY_NAME = 9
# Groups whose coordinators, and whose offsets, one request asks for: a broker answers others between two requests, and
# one of a group with six offsets each takes it 0.1 ms.
LOOKED_UP_AT_ONCE, FETCHED_AT_ONCE = 20, 5


def committed_offsets(
    cluster: Cluster, group: str, wanted: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
) -> dict[TopicPartition, int]:
    """Returns the committed offsets of a group, all or those of the partitions that are named. A group that does not
    exist has none. `require_stable`: raises RequestError where a transaction still has to commit one or not; of all,
    the broker leaves out a partition that has nothing else."""
    named = None
    if wanted is not None:
        named = [{"name": topic, "partition_indexes": some} for topic, some in by_topic(wanted).items()]
    groups = [{"group_id": group, "topics": named}]

    def ask() -> dict[TopicPartition, int]:
        request = make("OffsetFetch", groups=groups, require_stable=require_stable)
        (answer,) = cluster.coordinator(group).request(request, BY_NAME).groups
        check(answer.error_code, subject=group)
        if require_stable:
            _check_each(answer.topics)
        return _offsets(answer)

    return cluster.patiently(ask)


def committed_offsets_of(cluster: Cluster, groups: Iterable[str]) -> dict[str, Offsets | RequestError]:
    """Returns all committed offsets of many groups, or why they may not be known."""
    names = list(groups)
    found: dict[str, Offsets | RequestError] = {}
    for some in some_at_once(names, LOOKED_UP_AT_ONCE):
        found |= cluster.patiently(lambda some=some: _ask_for_many(cluster, some))  # type: ignore[misc]
    return found


def _ask_for_many(cluster: Cluster, names: list[str]) -> dict[str, Offsets | RequestError]:
    """Raises RequestError for a coordinator that is being made or moved."""
    found: dict[str, Offsets | RequestError] = {}
    by_node: dict[int, list[str]] = {}
    coordinators = cluster.any().request(make("FindCoordinator", key_type=GROUP, coordinator_keys=names)).coordinators
    for one in coordinators:
        if one.error_code:
            found[one.key] = _lasting(RequestError(one.error_code, one.error_message, one.key))
        else:
            by_node.setdefault(one.node_id, []).append(one.key)
    for node_id, theirs in by_node.items():
        for some in some_at_once(theirs, FETCHED_AT_ONCE):
            asked = [{"group_id": name, "topics": None} for name in some]
            request = make("OffsetFetch", groups=asked, require_stable=False)
            for group in cluster.to(node_id).request(request, BY_NAME).groups:
                if group.error_code:
                    found[group.group_id] = _lasting(RequestError(group.error_code, subject=group.group_id))
                else:
                    found[group.group_id] = _offsets(group)
    return found


def _lasting(error: RequestError) -> RequestError:
    if error.code in PASSING:
        raise error
    return error


def _offsets(group: Any) -> Offsets:
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in group.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


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
