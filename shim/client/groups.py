"""Groups of all kinds: classic, consumer (KIP-848), share (KIP-932) and streams (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.client.requests import NAMES, make
from kafka_shim.errors import ErrorCode
from kafka_shim.group.consumer_protocol import ConsumerProtocolError, read_assignment
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

GROUP_TYPES = ("classic", "consumer", "share", "streams")
# As Kafka writes them (GroupState); brokers take them in any case.
GROUP_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A group as ListGroups tells of it. `kind` is one of GROUP_TYPES; `protocol` is consumer, connect ..."""

    group_id: str
    kind: str
    state: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group of any kind. `held` are its partitions; those of a streams member are the partitions of the
    source topics of its active tasks."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    held: frozenset[TopicPartition]
    epoch: int


@dataclass(frozen=True, slots=True)
class Group:
    """A group of any kind. `epoch` is -1 for a classic group, whose generation nobody tells."""

    group_id: str
    kind: str
    state: str
    assignor: str
    epoch: int
    members: list[Member]


def list_groups(cluster: Cluster, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[Listed]:
    """Returns all groups, or those in one of these states and of one of these kinds, by name."""
    nodes = [broker.node_id for broker in cluster.metadata(()).brokers]
    found: list[Listed] = []
    for node_id in nodes:
        answer = cluster.to(node_id).request(make("ListGroups", states_filter=list(states), types_filter=list(kinds)))
        check(answer.error_code)
        found += [
            Listed(each.group_id, each.group_type.lower(), each.group_state, each.protocol_type)
            for each in answer.groups
        ]
    return sorted(found, key=lambda each: each.group_id)


def describe_group(cluster: Cluster, name: str) -> Group:
    """Returns a group of any kind. Raises RequestError GROUP_ID_NOT_FOUND."""
    ranges = cluster.any().ranges()
    for api, kind, read in (
        ("ConsumerGroupDescribe", "consumer", _modern),
        ("ShareGroupDescribe", "share", _modern),
        ("StreamsGroupDescribe", "streams", _streams),
    ):
        if NAMES[api] not in ranges:
            continue
        found = _ask(cluster, name, make(api, group_ids=[name]))
        if not found.error_code:
            return read(found, kind)
        if found.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            check(found.error_code, found.error_message, name)
    found = _ask(cluster, name, make("DescribeGroups", groups=[name]))
    if found.group_state == "Dead":
        raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, getattr(found, "error_message", None), name)
    check(found.error_code, found.error_message, name)
    members = [
        Member(one.member_id, one.group_instance_id, one.client_id, one.client_host, _assigned(one), -1)
        for one in found.members
    ]
    return Group(name, "classic", found.group_state, found.protocol_data, -1, members)


def _ask(cluster: Cluster, name: str, request: Any) -> Any:
    def ask() -> Any:
        (found,) = cluster.coordinator(name).request(request).groups
        if found.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            check(found.error_code, found.error_message, name)
        return found

    return cluster.patiently(ask)


def _modern(found: Any, kind: str) -> Group:
    members = [
        Member(
            one.member_id,
            getattr(one, "instance_id", None),
            one.client_id,
            one.client_host,
            frozenset(
                (each.topic_name, partition)
                for each in one.assignment.topic_partitions
                for partition in each.partitions
            ),
            one.member_epoch,
        )
        for one in found.members
    ]
    return Group(found.group_id, kind, found.group_state, found.assignor_name, found.group_epoch, members)


def _streams(found: Any, kind: str) -> Group:
    topics: dict[str, list[str]] = {}
    for part in (found.topology.subtopologies if found.topology is not None else None) or ():
        topics[part.subtopology_id] = [
            *part.source_topics,
            *(one.name for one in part.repartition_source_topics),
        ]
    members = [
        Member(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            frozenset(
                (topic, partition)
                for task in one.assignment.active_tasks
                for topic in topics.get(task.subtopology_id, ())
                for partition in task.partitions
            ),
            one.member_epoch,
        )
        for one in found.members
    ]
    return Group(found.group_id, kind, found.group_state, "", found.group_epoch, members)


def _assigned(member: Any) -> frozenset[TopicPartition]:
    try:
        topics, _ = read_assignment(bytes(member.member_assignment))
    except ConsumerProtocolError:
        return frozenset()  # not the consumer protocol
    return frozenset((topic, partition) for topic, partitions in topics.items() for partition in partitions)


def share_offsets(cluster: Cluster, name: str) -> dict[TopicPartition, tuple[int, int]]:
    """Returns (start offset, lag) of each partition that a share group has read. -1: not known."""
    request = make("DescribeShareGroupOffsets", groups=[{"group_id": name, "topics": None}])
    found = _ask(cluster, name, request)
    check(found.error_code, found.error_message, name)
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag)
        for topic in found.topics
        for each in topic.partitions
        if not each.error_code
    }
