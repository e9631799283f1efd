"""A row of the table of kinds (`kinds`): all that the coordinator does by a group's kind."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, Protocol

    from kafka_shim.group.client import Client
    from kafka_shim.group.decision import Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.records import Record
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest

    # Raises where a member may not commit this (topic id, partition).
    Check = Callable[[bytes, int], None]
    # Applies one record, (groups by id, key, value or None for a tombstone).
    RecordHandler = Callable[[dict[str, "Group"], Any, Any], None]

    class Group(Protocol):
        """What all groups have."""

        group_id: str

        @property
        def TYPE(self) -> str:
            """The name of its row, which ListGroups shows as the group's type."""

        @property
        def state_name(self) -> str: ...
        @property
        def is_empty(self) -> bool: ...
        @property
        def protocol_type(self) -> str | None: ...
        def is_subscribed(self, topic: str) -> bool:
            """Whether this topic's offsets are in use."""

        def check_offset_delete(self) -> None:
            """Raises what OffsetDelete answers for the group."""

        def check_delete(self) -> None:
            """Raises what DeleteGroups answers for the group."""

        def offset_expiry_base(self, commit_ms: int) -> int | None:
            """From when an offset's retention counts; None: it does not expire now."""

        def tombstones(self) -> list[Record]:
            """The records that remove the group (its offsets apart)."""


class GroupKind:
    """One row. What a kind does not serve fails as Kafka's coordinator does with a group of another kind."""

    name = ""
    # By the type of the record.
    records: Mapping[int, RecordHandler] = {}

    # --- life

    def on_timer(
        self, group: Any, timer: str, member_id: str, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        """A timer of the group is due."""
        return Decision()

    def resume(self, group: Any, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """The group was read from the log: its members' sessions begin anew, since the broker was away for an
        unknown time. A member that sent a request since then has its timer already."""
        return Decision()

    def on_topic_changed(self, group: Any, topic: str) -> None:
        """A topic was created or deleted, or has more partitions."""

    def set_refresh(self, group: Any, deadline_ms: int, epoch: int) -> None:
        """When the topics are to be looked at again, if the group reached this epoch."""

    def delete(self, group: Any) -> Decision:
        """Remove the group, which is empty and has no offsets."""
        decision = Decision()
        decision.records = group.tombstones()
        return decision

    def describe(self, group_id: str, group: Group | None, version: int, image: CoordinatorMetadataImage) -> Any:
        """The group as this kind's Describe API shows it, or that there is none of this kind."""
        raise NotImplementedError(f"groups of kind {self.name!r} cannot be described")

    # --- requests of classic members

    def join(
        self,
        group: Any,
        request: JoinGroupRequest,
        version: int,
        client: Client,
        token: Token,
        image: CoordinatorMetadataImage,
        now_ms: int,
    ) -> Decision:
        """JoinGroup of a group that has members."""
        self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, group)

    def sync(
        self, group: Any, request: SyncGroupRequest, token: Token, image: CoordinatorMetadataImage, now_ms: int
    ) -> Decision:
        """SyncGroup; the answer is `response`, or comes by the token."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    def heartbeat(self, group: Any, request: HeartbeatRequest) -> Decision:
        """Heartbeat."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    def leave(self, group: Any, request: LeaveGroupRequest, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
        """LeaveGroup."""
        self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, group)

    # --- offsets

    def check_commit(self, group: Any, request: OffsetCommitRequest, version: int, decision: Decision) -> Check | None:
        """Whether this member may commit; a check of each partition, or None. May add timers to the decision."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def check_transactional_commit(self, group: Any, request: TxnOffsetCommitRequest) -> Check | None:
        """The same for TxnOffsetCommit."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def check_fetch(self, group: Any, request: OffsetFetchRequestGroup) -> bool:
        """Whether the group has offsets to show; raises where its member may not see them."""
        self._refuse(ErrorCode.GROUP_ID_NOT_FOUND, group)

    def _refuse(self, code: ErrorCode, group: Group) -> NoReturn:
        raise KafkaError(code, f"Group {group.group_id} is a {group.TYPE} group.")
