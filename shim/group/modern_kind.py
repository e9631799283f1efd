"""What the kinds of groups share whose members have epochs (Kafka: ModernGroup, and StreamsGroup beside it)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.kind import GroupKind
from kafka_shim.group.records import RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.group.decision import TimerMoves
    from kafka_shim.group.kind import Check, Group, RecordHandler
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest


class CommittingKind(GroupKind):
    """A kind whose members commit offsets with their epochs."""

    def check_commit(self, group: Any, request: OffsetCommitRequest, version: int, moves: TimerMoves) -> Check | None:
        epoch = request.generation_id_or_member_epoch
        check: Check | None = group.check_commit(request.member_id, request.group_instance_id, epoch, False, version)
        return check

    def check_transactional_commit(self, group: Any, request: TxnOffsetCommitRequest) -> Check | None:
        epoch = request.generation_id
        try:
            check: Check | None = group.check_commit(request.member_id, request.group_instance_id, epoch, True, 0)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise
        return check

    def check_fetch(self, group: Any, request: OffsetFetchRequestGroup) -> bool:
        group.check_fetch(request.member_id, request.member_epoch)
        return True


class RecordHandlers:
    """The handlers of the records that these kinds have in common. Each goes with the kind's own classes: a group, and
    a member with `with_metadata`."""

    def __init__(self, group_type: type[Any], member_type: type[Any], *, takes_over: bool = True) -> None:
        """`takes_over`: whether a first record of this kind replaces a group of another kind, or is ignored."""
        self._group_type = group_type
        self._member_type = member_type
        self._takes_over = takes_over

    def of_group(self, apply: Callable[[Any, Any, Any], None]) -> RecordHandler:
        """Returns a record handler that creates the group if it does not exist. A tombstone creates none, and is
        ignored for a group of another kind. The handler raises RecordError for what Kafka would not have written."""

        def handle(by_id: dict[str, Group], key: Any, value: Any) -> None:
            group: Any = by_id.get(key.group_id)
            if not isinstance(group, self._group_type):
                if value is None or (group is not None and not self._takes_over):
                    return
                group = by_id[key.group_id] = self._group_type(key.group_id)
            try:
                apply(group, key, value)
            except KafkaError as error:
                what = f"a record of {group.TYPE} group {key.group_id}"
                raise RecordError(f"{what} names something twice or has an epoch below 0") from error

        return handle

    def metadata(self, epoch: Callable[[Any, Any, Any], None]) -> RecordHandler:
        """Returns the handler of the record that a group begins and ends with; `epoch` applies its value."""
        set_epoch = self.of_group(epoch)

        def handle(by_id: dict[str, Group], key: Any, value: Any) -> None:
            if value is not None:
                set_epoch(by_id, key, value)
            elif isinstance(by_id.get(key.group_id), self._group_type):
                del by_id[key.group_id]

        return handle

    def member_metadata(self) -> RecordHandler:
        """Returns the handler of a member's subscription; a tombstone removes the member."""

        def apply(group: Any, key: Any, value: Any) -> None:
            if value is None:
                group.drop_member(key.member_id)
            else:
                group.put_member(self.member(group, key.member_id).with_metadata(value))

        return self.of_group(apply)

    def target_metadata(self) -> RecordHandler:
        """Returns the handler of the epoch and time of the target assignment."""

        def apply(group: Any, key: Any, value: Any) -> None:
            group.assignment_epoch = -1 if value is None else value.assignment_epoch
            group.assignment_ms = 0 if value is None else value.assignment_timestamp

        return self.of_group(apply)

    def member(self, group: Any, member_id: str) -> Any:
        """Returns the group's member, or a new one that the group does not know yet."""
        return group.members.get(member_id) or self._member_type(member_id)
