"""Groups as administrators see them: ListGroups, DescribeGroups, ConsumerGroupDescribe (keys 16, 15, 69)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_state import State
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.java_order import order_strings, order_timeline
from kafka_shim.protocol.messages import consumer_group_describe_response as consumer_describe
from kafka_shim.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from kafka_shim.protocol.messages.list_groups_response import ListedGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.group.consumer_member import ConsumerMember
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.turns import Steps


def listed(groups: Iterable[Group], states: Iterable[str], types: Iterable[str]) -> Steps[list[ListedGroup]]:
    """Returns the groups in one of these states and of one of these types. An empty filter matches all (KIP-518,
    848)."""
    wanted_states = {state.lower().strip() for state in states}
    wanted_types = {kind.lower() for kind in types}
    found = []
    for group in groups:
        state = group.state_name
        if (not wanted_states or _filter_name(state) in wanted_states) and (
            not wanted_types or group.TYPE in wanted_types
        ):
            found.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=state,
                    group_type=group.TYPE,
                )
            )
        yield
    return found


def _filter_name(state: str) -> str:
    """Returns the name by which a filter finds a state. Kafka's own has an underscore where ListGroups shows none."""
    return "not_ready" if state == "NotReady" else state.lower()


def described_classic(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """Describe a classic group. Any other group is Dead, from v6 with GROUP_ID_NOT_FOUND (KIP-1043)."""
    if not isinstance(group, ClassicGroup):
        answer = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if version >= 6:
            reason = "not found" if group is None else "is not a classic group"
            answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            answer.error_message = f"Group {group_id} {reason}."
        return answer
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in [group.members[member_id] for member_id in order_strings(group.members)]
        ],
    )


def described_consumer(
    group_id: str, group: Group | None, image: CoordinatorMetadataImage
) -> consumer_describe.DescribedGroup:
    """Describe a group of the consumer protocol. Any other group is GROUP_ID_NOT_FOUND."""
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        return consumer_describe.DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {reason}.",
        )
    in_order = [group.members[member_id] for member_id in order_timeline(group.members)]
    return consumer_describe.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(image.config.group_consumer_assignors[0]),
        members=[_member(group, member, image) for member in in_order],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: CoordinatorMetadataImage) -> consumer_describe.Member:
    held: dict[bytes, list[int]] = {}
    for epochs in (member.assigned, member.pending_revocation):
        for topic_id, partitions in epochs.items():
            held.setdefault(topic_id, []).extend(partitions)
    target = {topic_id: list(found) for topic_id, found in group.target.get(member.member_id, {}).items()}
    return consumer_describe.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(held, image),
        target_assignment=_assignment(target, image),
        member_type=0 if member.uses_classic else 1,
    )


def _assignment(partitions: dict[bytes, list[int]], image: CoordinatorMetadataImage) -> consumer_describe.Assignment:
    topics = image.metadata.topics_by_id
    return consumer_describe.Assignment(
        topic_partitions=[
            consumer_describe.TopicPartitions(
                topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(found)
            )
            for topic_id, found in partitions.items()
            if topic_id in topics
        ]
    )
