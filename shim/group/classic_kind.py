"""Groups of the classic protocol, as a row of the table of kinds."""

from __future__ import annotations

from functools import cached_property

from kafka_shim.group import classic_join, classic_sync
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_state import DEAD, PREPARING, STABLE
from kafka_shim.group.decision import JOIN, SESSION, SYNC, Decision
from kafka_shim.group.kind import GroupKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from kafka_shim.cext.plain_commits import Commit
    from kafka_shim.cext.plain_txn_commits import TxnCommit
    from kafka_shim.group.decision import Heartbeat, TimerMoves, Token
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import JoinContext
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from kafka_shim.protocol.records.group_metadata_key import GroupMetadataKey
    from kafka_shim.protocol.records.group_metadata_value import GroupMetadataValue


class ClassicKind(GroupKind[ClassicGroup]):
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup. The rules are in `classic_join`, `classic_sync`, `classic_leave`."""

    name = ClassicGroup.TYPE

    # --- life

    def on_timer(
        self, group: ClassicGroup, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        if timer == SESSION:
            return classic_sync.session_over(group, member_id, image.config, now_ms)
        if timer == JOIN and member_id == "":
            return classic_join.join_phase_over(group, image, now_ms)
        if timer == SYNC and member_id == "":
            return classic_sync.sync_phase_over(group, now_ms)
        return Decision()

    def resume(self, group: ClassicGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """Start the timers after loading. A group with more than `group.max.size` members rebalances, so that its
        members can still commit."""
        decision = Decision()
        decision.replayed = False
        for member in group.members.values():
            decision.schedule_if_absent(group.group_id, SESSION, member.member_id, member.session_timeout_ms)
        if group.state is STABLE and len(group.members) > image.config.group_max_size:
            classic_join.prepare_rebalance(group, image.config, decision, now_ms)
        return decision

    def delete(self, group: ClassicGroup) -> Decision:
        decision = super().delete(group)
        for member_id in group.pending_joins:
            decision.cancel(group.group_id, SESSION, member_id)
        decision.cancel(group.group_id, JOIN)
        return decision

    # --- requests of members

    def join(self, group: ClassicGroup, context: JoinContext) -> Decision:
        return classic_join.join(group, context, is_new_group=False)

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, token: Token, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        return classic_sync.sync(group, request, token, image, now_ms)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> Heartbeat:
        return classic_sync.heartbeat(group, request)

    def leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        decision: Decision = self._leaving.leave(group, request, image.config, now_ms)
        return decision

    @cached_property
    def _leaving(self) -> ModuleType:
        """The module of the rules. To import it at each request takes 7,000 instructions."""
        from kafka_shim.group import classic_leave

        return classic_leave

    # --- offsets

    def check_commit(
        self, group: ClassicGroup, request: OffsetCommitRequest | Commit, version: int, moves: TimerMoves
    ) -> None:
        member_id = request.member_id
        group.check_commit(member_id, request.group_instance_id, request.generation_id_or_member_epoch, False)
        state = group.state
        if state is STABLE or state is PREPARING:
            # A commit counts as a heartbeat (KAFKA-4682).
            session_ms = group.members[member_id].session_timeout_ms
            moves.append((group.group_id, SESSION, member_id, session_ms, False))

    def check_transactional_commit(self, group: ClassicGroup, request: TxnOffsetCommitRequest | TxnCommit) -> None:
        group.check_commit(request.member_id, request.group_instance_id, request.generation_id, True)

    def check_fetch(self, group: ClassicGroup, request: OffsetFetchRequestGroup) -> bool:
        return group.state is not DEAD


def _group_metadata(by_id: dict[str, Group], key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    if value is not None:
        by_id[key.group] = ClassicGroup.replay(key.group, value)
    elif isinstance(by_id.get(key.group), ClassicGroup):
        del by_id[key.group]


ClassicKind.records = {2: _group_metadata}
