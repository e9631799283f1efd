"""Groups of the streams protocol (KIP-1071), as a row of the table of kinds."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import REBALANCE, SESSION, Decision
from kafka_shim.group.kind import GroupKind
from kafka_shim.group.records import RecordError
from kafka_shim.group.streams.group import StreamsGroup
from kafka_shim.group.streams.member import LEAVE_EPOCH, UNREVOKED, StreamsMember
from kafka_shim.group.streams.tasks import NONE_HELD, Tasks, numbers_of
from kafka_shim.group.streams.topology import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.group.kind import Check, Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.streams_group_describe_response import DescribedGroup
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest


class StreamsKind(GroupKind):
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

    def describe(
        self, group_id: str, group: Group | None, version: int, image: CoordinatorMetadataImage
    ) -> DescribedGroup:
        from kafka_shim.group.streams.describe import described_streams

        return described_streams(group_id, group)

    # --- offsets

    def check_commit(
        self, group: StreamsGroup, request: OffsetCommitRequest, version: int, decision: Decision
    ) -> Check | None:
        epoch = request.generation_id_or_member_epoch
        return group.check_commit(request.member_id, request.group_instance_id, epoch, False, version)

    def check_transactional_commit(self, group: StreamsGroup, request: TxnOffsetCommitRequest) -> Check | None:
        try:
            return group.check_commit(request.member_id, request.group_instance_id, request.generation_id, True, 0)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise

    def check_fetch(self, group: StreamsGroup, request: OffsetFetchRequestGroup) -> bool:
        group.check_fetch(request.member_id, request.member_epoch)
        return True


# --- records


def _of_group(apply: Callable[[StreamsGroup, Any, Any], None]) -> Callable[[dict[str, Group], Any, Any], None]:
    """Returns a record handler that creates the group if it does not exist. A tombstone creates none, and is ignored
    for a group of another kind."""

    def handle(by_id: dict[str, Group], key: Any, value: Any) -> None:
        group = by_id.get(key.group_id)
        if not isinstance(group, StreamsGroup):
            if value is None:
                return
            group = by_id[key.group_id] = StreamsGroup(key.group_id)
        try:
            apply(group, key, value)
        except KafkaError as error:
            # Kafka would not have written it.
            raise RecordError(f"a record of streams group {key.group_id} names something twice") from error

    return handle


def _metadata(by_id: dict[str, Group], key: Any, value: Any) -> None:
    if value is not None:
        _epoch(by_id, key, value)
    elif isinstance(by_id.get(key.group_id), StreamsGroup):
        del by_id[key.group_id]


@_of_group
def _epoch(group: StreamsGroup, key: Any, value: Any) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_epoch = value.validated_topology_epoch
    group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


@_of_group
def _member_metadata(group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.drop_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or StreamsMember(key.member_id)
        group.put_member(member.with_metadata(value))


@_of_group
def _target_metadata(group: StreamsGroup, key: Any, value: Any) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_ms = 0 if value is None else value.assignment_timestamp


@_of_group
def _target(group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = Tasks(
            numbers_of(value.active_tasks), numbers_of(value.standby_tasks), numbers_of(value.warmup_tasks)
        )


@_of_group
def _current(group: StreamsGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member((member or StreamsMember(key.member_id)).with_assignment(value))
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


@_of_group
def _topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.topology = None if value is None else Topology(value)
    group.configured = None


StreamsKind.records = {
    17: _metadata,
    19: _member_metadata,
    20: _target_metadata,
    21: _target,
    22: _current,
    23: _topology,
}
