"""Conversion of running groups from classic to consumer and back (`group.consumer.migration.policy`).

The first member that joins with the consumer protocol converts a classic group of consumers. The other members become
classic members of a consumer group (`consumer_classic`). When the last consumer-protocol member leaves, or is replaced
by a classic one with the same instance id, the group is converted back.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_protocol
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_join import prepare_rebalance
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.classic_state import State
from kafka_shim.group.client import Client
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.group.consumer_member import STABLE, ConsumerMember
from kafka_shim.group.decision import JOIN, SESSION, SYNC, Decision
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse
from kafka_shim.protocol.records.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kafka_shim.protocol.records.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kafka_shim.config import BrokerConfig
    from kafka_shim.group.classic_member import Protocols
    from kafka_shim.group.consumer_member import Partitions
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage


# The limit for all members: this goes into their records, which are written in one batch.
MAX_METADATA_BYTES = 4 * consumer_protocol.MAX_BYTES


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """Returns what a consumer group stores of a classic member."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


# --- classic to consumer


def check_upgrade(group: ClassicGroup, config: BrokerConfig) -> None:
    """Raises GROUP_ID_NOT_FOUND if Kafka would refuse the conversion."""
    if config.group_consumer_migration_policy.lower() not in ("bidirectional", "upgrade"):
        reason = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > config.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    elif group.metadata_bytes > MAX_METADATA_BYTES:
        reason = f"the protocols of its members take more than {MAX_METADATA_BYTES} bytes"
    else:
        return
    raise _refused(group.group_id, reason)


def _refused(group_id: str, reason: str) -> KafkaError:
    """Returns the error with Kafka's sentence."""
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
    )


def end_waits(group: ClassicGroup) -> Decision:
    """Returns the answers to the joins and syncs that wait in a group that is about to be upgraded. They are due
    whatever becomes of it: Kafka ends the waits before it looks at the members (convertToConsumerGroup). If it
    fails the sessions start again, because one that ends while its member waits is passed over."""
    decision = Decision()
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        if member.is_waiting:
            decision.schedule(group.group_id, SESSION, member.member_id, member.session_timeout_ms)
        refusal = JoinGroupResponse(error_code=code, member_id=member.member_id, protocol_name=None)
        decision.reply(member.awaiting_join, refusal)
        decision.reply(member.awaiting_sync, SyncGroupResponse(error_code=code))
        member.awaiting_join = member.awaiting_sync = None
    group.joining.clear()
    return decision


def upgrade(group: ClassicGroup, image: CoordinatorMetadataImage, decision: Decision) -> ConsumerGroup:
    """Returns the group, of which `check_upgrade` approves and in which nobody waits, as a consumer group. It is not
    registered yet; the records in `decision` do that.

    Raises GROUP_ID_NOT_FOUND if its members' bytes do not parse, or if a custom assignor's data would be lost, and
    UNKNOWN_SERVER_ERROR if a member does not support the protocol of the generation or two have the same partition.
    """
    group_id = group.group_id
    try:
        converted = _converted(group, image)
    except consumer_protocol.ConsumerProtocolError as error:
        raise _refused(group_id, "the embedded consumer protocol is malformed") from error
    for member in group.members.values():
        decision.schedule(group_id, SESSION, member.member_id, member.session_timeout_ms)
    for member_id in group.pending_joins:
        decision.cancel(group_id, SESSION, member_id)
    decision.cancel(group_id, JOIN)
    decision.cancel(group_id, SYNC)
    decision.records += group.tombstones()
    decision.records += converted.all_records()
    return converted


def _converted(group: ClassicGroup, image: CoordinatorMetadataImage) -> ConsumerGroup:
    converted = ConsumerGroup(group.group_id)
    converted.group_epoch = converted.assignment_epoch = group.generation_id
    for member in group.members.values():
        assigned: dict[bytes, list[int]] = {}
        if member.assignment:
            by_name, user_data = consumer_protocol.read_assignment(member.assignment)
            if user_data:
                raise _refused(
                    group.group_id,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                    "default assignor before re-attempting the upgrade",
                )
            for name, partitions in by_name.items():
                topic = image.metadata.topics.get(name)
                if topic is not None:
                    # Others, of a topic that was deleted and created again with fewer, would count towards the member's
                    # share, so that some would have no owner.
                    count = len(topic.partitions)
                    assigned[topic.topic_id] = [each for each in partitions if 0 <= each < count]
        if any(
            converted.owner_epoch(topic_id, partition) != -1
            for topic_id, partitions in assigned.items()
            for partition in partitions
        ):
            # Two members own it by the leader's assignment. As in Kafka, whose group has room for one.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if all(name != group.protocol for name, _ in member.protocols):
            # It waits in a rebalance for another protocol than that of the generation, or for the first generation.
            # As in Kafka, which does not look for this.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        subscription = consumer_protocol.read_subscription(member.metadata(group.protocol))
        new = ConsumerMember(member.member_id).copy(
            member_epoch=group.generation_id,
            previous_epoch=group.generation_id,
            state=STABLE,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topics=frozenset(subscription.topics),
            assigned={
                topic_id: dict.fromkeys(partitions, group.generation_id) for topic_id, partitions in assigned.items()
            },
            classic=classic_metadata(member.session_timeout_ms, member.protocols),
        )
        target = ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=partitions) for topic_id, partitions in assigned.items()
            ]
        )
        converted.put_target(member.member_id, target)
        converted.put_member(new)
    converted.metadata_hash = image.metadata_hash(converted.topic_counts)
    return converted


# --- consumer to classic


def _allows_downgrade(config: BrokerConfig) -> bool:
    return config.group_consumer_migration_policy.lower() in ("bidirectional", "downgrade")


def can_downgrade(group: ConsumerGroup, leaving: Collection[str], config: BrokerConfig) -> bool:
    """Returns whether only classic members remain, at least one does, and policy and group size allow the
    conversion."""
    staying = len(group.members) - len(leaving)
    classic = group.classic_count - sum(1 for member_id in leaving if group.members[member_id].uses_classic)
    return 0 < staying == classic and _allows_downgrade(config) and staying <= config.group_max_size


def can_downgrade_for(group: ConsumerGroup, replaced: ConsumerMember, config: BrokerConfig) -> bool:
    """The same check, if a classic member takes the place of the last consumer-protocol one."""
    return (
        not replaced.uses_classic
        and group.classic_count == len(group.members) - 1
        and _allows_downgrade(config)
        and len(group.members) <= config.group_max_size
    )


def downgrade(
    group: ConsumerGroup,
    leaving: Collection[str],
    joining: ConsumerMember | None,
    image: CoordinatorMetadataImage,
    decision: Decision,
    now_ms: int,
    *,
    rebalance: bool,
) -> None:
    """Replace the group by a classic one of its classic members. `joining` takes the place of the static member with
    its instance id. Raises GROUP_ID_NOT_FOUND if the bytes of a member do not parse, of which only those of the
    protocol that it prefers were read when it joined."""
    replaced = None if joining is None else group.static_member(joining.instance_id)
    staying = [
        member
        for member in group.members.values()
        if member.member_id not in leaving and (replaced is None or member.member_id != replaced.member_id)
    ]
    if joining is not None:
        staying.append(joining)
    classic = ClassicGroup(group.group_id, now_ms, State.STABLE)
    classic.generation_id = group.group_epoch
    for member in staying:
        assert member.classic is not None
        classic.add(_classic_member(member), consumer_protocol.PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    classic.refresh_subscribed_topics()
    for each in classic.members.values():
        is_joining = joining is not None and each.member_id == joining.member_id
        source = replaced.member_id if is_joining and replaced is not None else each.member_id
        target = group.target.get(source, {})
        try:
            each.assignment = _assignment_bytes(target, each.metadata(classic.protocol), image)
        except consumer_protocol.ConsumerProtocolError as error:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.group_id}: {error}."
            ) from error
        decision.schedule(group.group_id, SESSION, each.member_id, each.session_timeout_ms)
        decision.cancel(group.group_id, JOIN, each.member_id)
        decision.cancel(group.group_id, SYNC, each.member_id)
    renamed = {replaced.member_id: joining.member_id} if replaced is not None and joining is not None else {}
    decision.records += group.tombstones(renamed)
    decision.records.append(classic.record({each.member_id: each.assignment for each in classic.members.values()}))
    decision.replayed = False
    decision.replacements.append(classic)
    if rebalance:
        prepare_rebalance(classic, image.config, decision, now_ms)


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        Client(member.client_id, member.client_host),
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        [(protocol.name, bytes(protocol.metadata)) for protocol in member.classic.supported_protocols],
    )


def _assignment_bytes(target: Partitions, metadata: bytes, image: CoordinatorMetadataImage) -> bytes:
    return consumer_protocol.write_assignment(by_name(target, image), consumer_protocol.read_version(metadata))


def by_name(partitions: Mapping[bytes, Iterable[int]], image: CoordinatorMetadataImage) -> dict[str, list[int]]:
    """Returns partitions by topic name, without deleted topics."""
    topics = image.metadata.topics_by_id
    return {topics[topic_id].name: list(found) for topic_id, found in partitions.items() if topic_id in topics}
