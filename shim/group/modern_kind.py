"""What the kinds of groups share whose members have epochs (Kafka: ModernGroup, and StreamsGroup beside it)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.generics import Generic
from kafka_shim.group.kind import GroupKind
from kafka_shim.group.records import RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    from kafka_shim.cext.plain_commits import Commit
    from kafka_shim.cext.plain_txn_commits import TxnCommit
    from kafka_shim.group.decision import TimerMoves
    from kafka_shim.group.kind import Check, Group, RecordHandler
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest

    class GroupKey(Protocol):
        """The key of a record of a group."""

        group_id: str

    class MemberKey(GroupKey, Protocol):
        """The key of a record of a member."""

        member_id: str

    class TargetMetadata(Protocol):
        """The value of the record of a target assignment's epoch."""

        assignment_epoch: int
        assignment_timestamp: int

    class CommittingGroup(Group, Protocol):
        """A group whose members commit offsets with their epochs."""

        def check_commit(
            self, member_id: str, instance_id: str | None, epoch: int, transactional: bool, version: int
        ) -> Check | None:
            """Returns a check for each partition, or None. Raises the error of a member that may not commit."""

        def check_fetch(self, member_id: str | None, epoch: int) -> None:
            """Raises the error of a member that may not read offsets."""

    M = TypeVar("M")

    class ModernGroup(Group, Protocol[M]):
        """A group with members of the class `M`."""

        members: dict[str, M]
        assignment_epoch: int
        assignment_ms: int

        def __init__(self, group_id: str) -> None: ...
        def put_member(self, member: M) -> None:
            """Add or replace a member."""

        def drop_member(self, member_id: str) -> None:
            """Remove a member."""

    C = TypeVar("C", bound=CommittingGroup)
    G = TypeVar("G", bound=ModernGroup[Any])
    K = TypeVar("K", bound=GroupKey)
    V = TypeVar("V")
else:
    C = G = M = None


class CommittingKind(GroupKind[C]):
    """A kind whose members commit offsets with their epochs."""

    def check_commit(
        self, group: C, request: OffsetCommitRequest | Commit, version: int, moves: TimerMoves
    ) -> Check | None:
        epoch = request.generation_id_or_member_epoch
        return group.check_commit(request.member_id, request.group_instance_id, epoch, False, version)

    def check_transactional_commit(self, group: C, request: TxnOffsetCommitRequest | TxnCommit) -> Check | None:
        epoch = request.generation_id
        try:
            return group.check_commit(request.member_id, request.group_instance_id, epoch, True, 0)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise

    def check_fetch(self, group: C, request: OffsetFetchRequestGroup) -> bool:
        group.check_fetch(request.member_id, request.member_epoch)
        return True


class RecordHandlers(Generic[G, M]):
    """The handlers of the records that these kinds have in common. Each goes with the kind's own classes, of a group
    and of a member."""

    def __init__(self, group_type: type[G], member_type: Callable[[str], M], *, takes_over: bool = True) -> None:
        """`takes_over`: whether a first record of this kind replaces a group of another kind, or is ignored."""
        self._group_type = group_type
        self._member_type = member_type
        self._takes_over = takes_over

    def of_group(self, apply: Callable[[G, K, V | None], None]) -> RecordHandler:
        """Returns a record handler that creates the group if it does not exist. A tombstone creates none, and is
        ignored for a group of another kind. The handler raises RecordError for what Kafka would not have written."""

        def handle(by_id: dict[str, Group], key: K, value: V | None) -> None:
            group = by_id.get(key.group_id)
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

    def metadata(self, set_epoch: Callable[[G, V], None]) -> RecordHandler:
        """Returns the handler of the record that a group begins and ends with; `set_epoch` applies its value."""

        def apply(group: G, key: GroupKey, value: V | None) -> None:
            if value is not None:
                set_epoch(group, value)

        put = self.of_group(apply)

        def handle(by_id: dict[str, Group], key: GroupKey, value: V | None) -> None:
            if value is not None:
                put(by_id, key, value)
            elif isinstance(by_id.get(key.group_id), self._group_type):
                del by_id[key.group_id]

        return handle

    def member_metadata(self, changed: Callable[[M, V], M]) -> RecordHandler:
        """Returns the handler of a member's subscription: `changed` returns the member with its values. A tombstone
        removes the member."""

        def apply(group: G, key: MemberKey, value: V | None) -> None:
            if value is None:
                group.drop_member(key.member_id)
            else:
                group.put_member(changed(self.member(group, key.member_id), value))

        return self.of_group(apply)

    def target_metadata(self) -> RecordHandler:
        """Returns the handler of the epoch and time of the target assignment."""

        def apply(group: G, key: GroupKey, value: TargetMetadata | None) -> None:
            group.assignment_epoch = -1 if value is None else value.assignment_epoch
            group.assignment_ms = 0 if value is None else value.assignment_timestamp

        return self.of_group(apply)

    def member(self, group: ModernGroup[M], member_id: str) -> M:
        """Returns the group's member, or a new one that the group does not know yet."""
        return group.members.get(member_id) or self._member_type(member_id)
