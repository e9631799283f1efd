"""What `kafka-consumer-groups.sh` prints of a group, as Kafka's admin client gathers it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka_shim.client.offsets import BY_NAME
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.group.consumer_protocol import ConsumerProtocolError, read_assignment
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    instance_id: str
    client_id: str
    host: str
    held: list[TopicPartition]
    target: list[TopicPartition] = field(default_factory=list)
    epoch: int | None = None
    # Whether it speaks the newer protocol; None in a classic group.
    is_upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    group_id: str
    state: str
    assignor: str
    members: list[GroupMember]
    # host:port  (id)
    coordinator: str
    epoch: int | None = None
    assignment_epoch: int | None = None


def describe(cluster: Cluster, name: str) -> ConsumerGroup:
    """Raises RequestError, GROUP_ID_NOT_FOUND for none."""

    def ask() -> ConsumerGroup:
        (found,) = cluster.coordinator(name).request(make("ConsumerGroupDescribe", group_ids=[name])).groups
        if found.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            check(found.error_code, found.error_message)
            return ConsumerGroup(
                name,
                found.group_state,
                found.assignor_name,
                [_modern(one) for one in found.members],
                _coordinator(cluster, name),
                found.group_epoch,
                found.assignment_epoch,
            )
        (classic,) = cluster.coordinator(name).request(make("DescribeGroups", groups=[name])).groups
        check(classic.error_code, classic.error_message)
        if classic.protocol_type not in ("", "consumer"):
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"GroupId {name} is not a consumer group.")
        members = [
            GroupMember(one.member_id, one.group_instance_id or "", one.client_id, one.client_host, _assigned(one))
            for one in classic.members
        ]
        return ConsumerGroup(name, classic.group_state, classic.protocol_data, members, _coordinator(cluster, name))

    return cluster.patiently(ask)


def _coordinator(cluster: Cluster, name: str) -> str:
    (found,) = cluster.any().request(make("FindCoordinator", key_type=0, coordinator_keys=[name])).coordinators
    return f"{found.host}:{found.port}  ({found.node_id})"


def _modern(member: Any) -> GroupMember:
    def flat(assignment: Any) -> list[TopicPartition]:
        return [(one.topic_name, number) for one in assignment.topic_partitions for number in one.partitions]

    kind = getattr(member, "member_type", -1)
    return GroupMember(
        member.member_id,
        member.instance_id or "",
        member.client_id,
        member.client_host,
        flat(member.assignment),
        flat(member.target_assignment),
        member.member_epoch,
        None if kind < 0 else kind == 1,
    )


def _assigned(member: Any) -> list[TopicPartition]:
    try:
        topics, _ = read_assignment(bytes(member.member_assignment))
    except ConsumerProtocolError:
        return []
    return [(topic, number) for topic, numbers in topics.items() for number in numbers]


def committed(cluster: Cluster, name: str) -> dict[TopicPartition, tuple[int, int | None]]:
    """(offset, leader epoch) of each partition with a committed offset."""

    def ask() -> dict[TopicPartition, tuple[int, int | None]]:
        request = make("OffsetFetch", groups=[{"group_id": name, "topics": None}], require_stable=False)
        (answer,) = cluster.coordinator(name).request(request, BY_NAME).groups
        check(answer.error_code)
        return {
            (topic.name, each.partition_index): (
                each.committed_offset,
                each.committed_leader_epoch if each.committed_leader_epoch >= 0 else None,
            )
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    return cluster.patiently(ask)
