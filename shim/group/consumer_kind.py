"""Groups of the consumer protocol (KIP-848), as a row of the table of kinds."""

from __future__ import annotations

from kafka_shim.group.consumer import ConsumerGroup, Resolved
from kafka_shim.group.consumer_member import LEAVE_EPOCH, UNREVOKED, ConsumerMember
from kafka_shim.group.decision import REBALANCE, REGEX, SESSION, Decision
from kafka_shim.group.modern_kind import CommittingKind, RecordHandlers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.group.decision import Heartbeat, Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import JoinContext
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
    from kafka_shim.protocol.records.consumer_group_current_member_assignment_key import (
        ConsumerGroupCurrentMemberAssignmentKey,
    )
    from kafka_shim.protocol.records.consumer_group_current_member_assignment_value import (
        ConsumerGroupCurrentMemberAssignmentValue,
    )
    from kafka_shim.protocol.records.consumer_group_metadata_value import ConsumerGroupMetadataValue
    from kafka_shim.protocol.records.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
    from kafka_shim.protocol.records.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
    from kafka_shim.protocol.records.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
    from kafka_shim.protocol.records.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
    from kafka_shim.protocol.records.consumer_group_target_assignment_member_key import (
        ConsumerGroupTargetAssignmentMemberKey,
    )
    from kafka_shim.protocol.records.consumer_group_target_assignment_member_value import (
        ConsumerGroupTargetAssignmentMemberValue,
    )


class ConsumerKind(CommittingKind[ConsumerGroup]):
    """ConsumerGroupHeartbeat, and the requests of members that still use the classic protocol (`consumer_classic`)."""

    name = ConsumerGroup.TYPE

    # --- life

    def on_timer(
        self, group: ConsumerGroup, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        from kafka_shim.group import consumer_leave, consumer_regex

        if timer == REGEX:
            return consumer_regex.resolve(group, image, now_ms)
        if timer == REBALANCE:
            return consumer_leave.revocation_over(group, member_id, image, now_ms)
        return consumer_leave.session_over(group, member_id, image, now_ms)

    def resume(self, group: ConsumerGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        decision = Decision()
        group_id = group.group_id
        for member in group.members.values():
            session_ms = image.session_timeout_ms(group_id)
            decision.schedule_if_absent(group_id, SESSION, member.member_id, session_ms)
            if member.state == UNREVOKED:
                decision.schedule_if_absent(group_id, REBALANCE, member.member_id, member.rebalance_timeout_ms)
        return decision

    def on_topic_changed(self, group: ConsumerGroup, topic: str) -> None:
        if group.is_subscribed(topic):
            group.request_refresh()

    def set_refresh(self, group: ConsumerGroup, deadline_ms: int, epoch: int) -> None:
        group.set_refresh(deadline_ms, epoch)

    def set_describer(self, group: ConsumerGroup, may_describe: Callable[[str], bool] | None) -> None:
        group.may_describe = may_describe

    def delete(self, group: ConsumerGroup) -> Decision:
        decision = super().delete(group)
        decision.cancel(group.group_id, REGEX)
        return decision

    # --- requests of classic members

    def join(self, group: ConsumerGroup, context: JoinContext) -> Decision:
        from kafka_shim.group import consumer_classic

        return consumer_classic.join(group, context)

    def sync(
        self,
        group: ConsumerGroup,
        request: SyncGroupRequest,
        token: Token,
        image: CoordinatorMetadataImage,
        now_ms: int,
    ) -> Decision:
        from kafka_shim.group import consumer_classic

        return consumer_classic.sync(group, request, image)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> Heartbeat:
        from kafka_shim.group import consumer_classic

        return consumer_classic.heartbeat(group, request)

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        from kafka_shim.group import consumer_classic

        return consumer_classic.leave(group, request, image, now_ms)


# --- records

_RECORDS = RecordHandlers(ConsumerGroup, ConsumerMember)


def _set_epoch(group: ConsumerGroup, value: ConsumerGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


@_RECORDS.of_group
def _partition_metadata(
    group: ConsumerGroup, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
) -> None:
    group.has_partition_metadata_record = value is not None


@_RECORDS.of_group
def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.put_target(key.member_id, value)


@_RECORDS.of_group
def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(_RECORDS.member(group, key.member_id).with_assignment(value))
    elif member is not None:
        # The tombstone of the member's metadata, which follows, removes the member.
        group.put_member(
            member.copy(member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={})
        )


@_RECORDS.of_group
def _regex(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
        group.resolved[key.regular_expression] = resolved


ConsumerKind.records = {
    3: _RECORDS.metadata(_set_epoch),
    4: _partition_metadata,
    5: _RECORDS.member_metadata(ConsumerMember.with_metadata),
    6: _RECORDS.target_metadata(),
    7: _target,
    8: _current,
    16: _regex,
}
