"""Share groups (KIP-932), as a row of the table of kinds."""

from __future__ import annotations

from kafka_shim.group.decision import SESSION, Decision
from kafka_shim.group.kind import GroupKind
from kafka_shim.group.modern_kind import RecordHandlers
from kafka_shim.group.share import ShareGroup
from kafka_shim.group.share_member import LEAVE_EPOCH, ShareMember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.records.share_group_current_member_assignment_key import (
        ShareGroupCurrentMemberAssignmentKey,
    )
    from kafka_shim.protocol.records.share_group_current_member_assignment_value import (
        ShareGroupCurrentMemberAssignmentValue,
    )
    from kafka_shim.protocol.records.share_group_metadata_value import ShareGroupMetadataValue
    from kafka_shim.protocol.records.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
    from kafka_shim.protocol.records.share_group_state_partition_metadata_value import (
        ShareGroupStatePartitionMetadataValue,
    )
    from kafka_shim.protocol.records.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
    from kafka_shim.protocol.records.share_group_target_assignment_member_value import (
        ShareGroupTargetAssignmentMemberValue,
    )


class ShareKind(GroupKind[ShareGroup]):
    """ShareGroupHeartbeat. Requests of classic members and offsets are refused."""

    name = ShareGroup.TYPE
    gives_way = False

    def on_timer(
        self, group: ShareGroup, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        from kafka_shim.group import share_heartbeat

        decision = Decision()
        member = group.members.get(member_id)
        if member is not None:
            share_heartbeat.fence(group, member, image, decision)
        return decision

    def resume(self, group: ShareGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        decision = Decision()
        session_ms = image.share_session_timeout_ms(group.group_id)
        for member_id in group.members:
            decision.schedule_if_absent(group.group_id, SESSION, member_id, session_ms)
        return decision

    def on_topic_changed(self, group: ShareGroup, topic: str) -> None:
        if group.is_subscribed(topic):
            group.set_refresh(0, 0)

    def set_refresh(self, group: ShareGroup, deadline_ms: int, epoch: int) -> None:
        group.set_refresh(deadline_ms, epoch)

    def check_fetch(self, group: ShareGroup, request: OffsetFetchRequestGroup) -> bool:
        """A share group has no committed offsets; to ask for them is no error."""
        return False


# --- records

# A share group never takes the id of a group of another kind.
_RECORDS = RecordHandlers(ShareGroup, ShareMember, takes_over=False)


def _set_epoch(group: ShareGroup, value: ShareGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


@_RECORDS.of_group
def _target(
    group: ShareGroup, key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> None:
    group.put_target(key.member_id, value)


@_RECORDS.of_group
def _current(
    group: ShareGroup, key: ShareGroupCurrentMemberAssignmentKey, value: ShareGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(_RECORDS.member(group, key.member_id).with_assignment(value))
    elif member is not None:
        # The tombstone of the member's metadata, which follows, removes the member.
        group.put_member(member.copy(member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}))


@_RECORDS.of_group
def _states(
    group: ShareGroup, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> None:
    group.put_states(value)


ShareKind.records = {
    10: _RECORDS.member_metadata(ShareMember.with_metadata),
    11: _RECORDS.metadata(_set_epoch),
    12: _RECORDS.target_metadata(),
    13: _target,
    14: _current,
    15: _states,
}
