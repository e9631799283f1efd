"""The group coordinator: the one shell around all kinds of groups. Decide, append to `__consumer_offsets`, apply, answer.

Nothing is awaited between a decision and its apply: that is the lock.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable

    from shim.clock import Clock
    from shim.config import BrokerConfig
    from shim.faults import Faults
    from shim.group.client import Client
    from shim.metadata.store import MetadataStore
    from shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from shim.protocol.messages.heartbeat_response import HeartbeatResponse
    from shim.protocol.messages.join_group_request import JoinGroupRequest
    from shim.protocol.messages.join_group_response import JoinGroupResponse
    from shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
    from shim.storage.log import PartitionLog
    from shim.storage.verification import Verification

TOPIC = "__consumer_offsets"


class GroupCoordinator:
    """Owned by the broker; event-loop thread only. `start()` replays, before the transaction coordinator resumes;
    `stop()` ends timers and answers what is parked."""

    def __init__(
        self, *, clock: Clock, config: BrokerConfig, logs: object, metadata: MetadataStore, faults: Faults
    ) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Replay `__consumer_offsets`; hang on `logs.on_marker` and the metadata hooks; start the timers."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the timers and answer parked joins and syncs with NOT_COORDINATOR."""
        raise NotImplementedError

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds this group."""
        raise NotImplementedError

    # --- transactions

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, verification: Verification | None = None
    ) -> TxnOffsetCommitResponse:
        """TxnOffsetCommit after the transaction was verified or extended (B8): validates the group, appends the offsets
        as transactional records of (producer_id, producer_epoch). They are pending until the marker. Per-partition
        codes are in the answer; raises nothing but bugs."""
        raise NotImplementedError

    def on_marker(self, log: PartitionLog, producer_id: int, producer_epoch: int, commit: bool, offset: int) -> None:
        """Hook of `logs.on_marker`: a marker on a partition of `__consumer_offsets` decides pending offsets."""
        raise NotImplementedError

    # --- classic protocol; a request that parks answers an awaitable

    def join_group(
        self, request: JoinGroupRequest, version: int, client: Client
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        """JoinGroup."""
        raise NotImplementedError

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat of a classic member, also of one in a consumer group."""
        raise NotImplementedError
