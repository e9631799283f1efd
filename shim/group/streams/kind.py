"""Groups of the streams protocol (KIP-1071), as a row of the table of kinds."""

from __future__ import annotations

from kafka_shim.group.decision import REBALANCE, SESSION, Decision
from kafka_shim.group.modern_kind import CommittingKind, RecordHandlers
from kafka_shim.group.streams.group import StreamsGroup
from kafka_shim.group.streams.member import LEAVE_EPOCH, UNREVOKED, StreamsMember
from kafka_shim.group.streams.tasks import NONE_HELD, Tasks, numbers_of
from kafka_shim.group.streams.topology import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.protocol.records.streams_group_current_member_assignment_key import (
        StreamsGroupCurrentMemberAssignmentKey,
    )
    from kafka_shim.protocol.records.streams_group_current_member_assignment_value import (
        StreamsGroupCurrentMemberAssignmentValue,
    )
    from kafka_shim.protocol.records.streams_group_metadata_value import StreamsGroupMetadataValue
    from kafka_shim.protocol.records.streams_group_target_assignment_member_key import (
        StreamsGroupTargetAssignmentMemberKey,
    )
    from kafka_shim.protocol.records.streams_group_target_assignment_member_value import (
        StreamsGroupTargetAssignmentMemberValue,
    )
    from kafka_shim.protocol.records.streams_group_topology_key import StreamsGroupTopologyKey
    from kafka_shim.protocol.records.streams_group_topology_value import StreamsGroupTopologyValue


class StreamsKind(CommittingKind[StreamsGroup]):
    """StreamsGroupHeartbeat. As in 4.3.1 only an empty group can be converted."""

    name = StreamsGroup.TYPE

    # --- life

    def on_timer(
        self, group: StreamsGroup, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        from kafka_shim.group.streams import heartbeat

        if timer == heartbeat.INITIAL_REBALANCE:
            return heartbeat.initial_delay_over(group, image, now_ms)
        member = group.members.get(member_id)
        if member is None or (timer == REBALANCE and member.state != UNREVOKED):
            return Decision()
        return heartbeat.fence(group, member)

    def resume(self, group: StreamsGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        decision = Decision()
        group_id = group.group_id
        for member in group.members.values():
            session_ms = image.streams_session_timeout_ms(group_id)
            decision.schedule_if_absent(group_id, SESSION, member.member_id, session_ms)
            if member.state == UNREVOKED:
                decision.schedule_if_absent(group_id, REBALANCE, member.member_id, member.rebalance_timeout_ms)
        return decision

    def on_topic_changed(self, group: StreamsGroup, topic: str) -> None:
        if group.needs_topic(topic):
            group.refresh_deadline_ms = 0

    def delete(self, group: StreamsGroup) -> Decision:
        from kafka_shim.group.streams.heartbeat import INITIAL_REBALANCE

        decision = super().delete(group)
        decision.cancel(group.group_id, INITIAL_REBALANCE)
        return decision


# --- records

_RECORDS = RecordHandlers(StreamsGroup, StreamsMember)


def _set_epoch(group: StreamsGroup, value: StreamsGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_epoch = value.validated_topology_epoch
    group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


@_RECORDS.of_group
def _target(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = Tasks(
            numbers_of(value.active_tasks), numbers_of(value.standby_tasks), numbers_of(value.warmup_tasks)
        )


@_RECORDS.of_group
def _current(
    group: StreamsGroup,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(_RECORDS.member(group, key.member_id).with_assignment(value))
    elif member is not None:
        # The tombstone of the member's metadata, which follows, removes the member.
        group.put_member(
            member.copy(
                member_epoch=LEAVE_EPOCH,
                previous_epoch=LEAVE_EPOCH,
                assigned=NONE_HELD,
                pending_revocation=NONE_HELD,
            )
        )


@_RECORDS.of_group
def _topology(group: StreamsGroup, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:
    group.topology = None if value is None else Topology(value)


StreamsKind.records = {
    17: _RECORDS.metadata(_set_epoch),
    19: _RECORDS.member_metadata(StreamsMember.with_metadata),
    20: _RECORDS.target_metadata(),
    21: _target,
    22: _current,
    23: _topology,
}
