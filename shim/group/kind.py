"""The interface of a row of the table of kinds (`kinds`): everything that depends on a group's kind."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import Decision
from kafka_shim.group.generics import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, Protocol, TypeVar

    from kafka_shim.cext.plain_commits import Commit
    from kafka_shim.cext.plain_txn_commits import TxnCommit
    from kafka_shim.group.decision import Heartbeat, TimerMoves, Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.records import Record
    from kafka_shim.group.request_context import JoinContext
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest

    # Raises an error if a member may not commit this (topic, topic id, partition).
    Check = Callable[[str, bytes, int], None]
    # Applies one record: (groups by id, key, value or None for a tombstone). The record's type, by which a handler is
    # found, says which classes key and value are of.
    RecordHandler = Callable[[dict[str, "Group"], Any, Any], None]

    class Group(Protocol):
        """The attributes and methods that all groups have."""

        group_id: str

        @property
        def TYPE(self) -> str:
            """The name of the group's row, which ListGroups shows as the group's type."""

        @property
        def state_name(self) -> str: ...
        @property
        def is_empty(self) -> bool: ...
        @property
        def protocol_type(self) -> str | None: ...
        def is_subscribed(self, topic: str) -> bool:
            """Returns whether the offsets of this topic are in use."""

        def check_offset_delete(self) -> None:
            """Raises the error of OffsetDelete for the group."""

        def check_delete(self) -> None:
            """Raises the error of DeleteGroups for the group."""

        def offset_expiry_base(self, commit_ms: int) -> int | None:
            """Returns the time from which an offset's retention counts, or None if it does not expire now."""

        def tombstones(self) -> list[Record]:
            """The tombstones that remove the group, without those of its offsets."""

    G = TypeVar("G", bound=Group)
else:
    G = None


class GroupKind(Generic[G]):
    """One row; `G` is the class of its groups. A request that a kind does not support fails as in Kafka's coordinator
    for a group of another kind."""

    name = ""
    # Whether an empty group makes room for a classic group of its id, and expires once it has no offsets.
    gives_way = True
    # Handlers by record type.
    records: Mapping[int, RecordHandler] = {}

    # --- life

    def on_timer(self, group: G, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """Handle a due timer of the group."""
        return Decision()

    def resume(self, group: G, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """Start the timers of a group that was loaded: its members' sessions start again, because the broker was down
        for an unknown time. A member that sent a request since then already has its timer."""
        return Decision()

    def on_topic_changed(self, group: G, topic: str) -> None:
        """A topic was created, was deleted, or has more partitions."""

    def set_refresh(self, group: G, deadline_ms: int, epoch: int) -> None:
        """Set the time of the next topic check, provided that the group reaches this epoch."""

    def set_describer(self, group: G, may_describe: Callable[[str], bool] | None) -> None:
        """Note which topics the client may describe who asked for a resolution of the group's expressions."""

    def delete(self, group: G) -> Decision:
        """Remove the group, which is empty and has no offsets."""
        decision = Decision()
        decision.records = group.tombstones()
        return decision

    # --- requests of classic members

    def join(self, group: G, context: JoinContext) -> Decision:
        """JoinGroup for a group that has members."""
        self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, group)

    def sync(
        self, group: G, request: SyncGroupRequest, token: Token, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        """SyncGroup of a classic member. The decision holds the response, or the token gets it later."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    def heartbeat(self, group: G, request: HeartbeatRequest) -> Heartbeat:
        """Returns the error code and the timers of Heartbeat of a classic member."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    def leave(self, group: G, request: LeaveGroupRequest, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """LeaveGroup of classic members: the decision holds the response."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    # --- offsets

    def check_commit(
        self, group: G, request: OffsetCommitRequest | Commit, version: int, moves: TimerMoves
    ) -> Check | None:
        """Check whether this member may commit. Returns a check for each partition, or None. Adds the timers
        that the commit moves."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def check_transactional_commit(self, group: G, request: TxnOffsetCommitRequest | TxnCommit) -> Check | None:
        """The same check for TxnOffsetCommit."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def check_fetch(self, group: G, request: OffsetFetchRequestGroup) -> bool:
        """Returns whether the group has offsets to return. Raises an error if its member may not read them."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def _refuse(self, code: ErrorCode, group: Group) -> NoReturn:
        raise KafkaError(code, f"Group {group.group_id} is a {group.TYPE} group.")
