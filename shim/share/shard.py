"""The rules of one partition of `__share_group_state` (Kafka: ShareCoordinatorShard, ShareCoordinatorOffsetsManager).

A rule reads the state and returns the record to write; `apply` changes the state, for every written record and at
start-up for every record in the log. The caller has checked that the topic's partition exists.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.share.records import ShareRecord
from kafka_shim.share.state import (
    NO_LEADER_EPOCH,
    NO_STATE_EPOCH,
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    ShareGroupOffset,
    combine,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.share.state import StateBatch

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."
FENCED_LEADER_EPOCH = "The leader epoch in the request is older than the epoch on the broker."
FENCED_STATE_EPOCH = "The share coordinator rejected the request because the share-group state epoch did not match."

# The state before InitializeShareGroupState, as ReadShareGroupStateSummary shows it.
NO_STATE = ShareGroupOffset(0, 0, 0, UNINITIALIZED_START_OFFSET, UNINITIALIZED_DELIVERY_COMPLETE_COUNT, ())


class ShareStateShard:
    """Owned by the share coordinator. `updates_per_snapshot` is
    `share.coordinator.snapshot.update.records.per.snapshot`."""

    __slots__ = (
        "_last_redundant",
        "_leader_epochs",
        "_snapshots",
        "_state_epochs",
        "_updates",
        "_updates_limit",
        "is_current",
        "states",
    )

    def __init__(self, updates_per_snapshot: int) -> None:
        self.states: dict[SharePartitionKey, ShareGroupOffset] = {}
        # False: records are in the log that were not applied, or in part. The coordinator reads the partition again.
        self.is_current = True
        # The highest leader epoch and state epoch seen, which fence requests.
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        # Updates since the last snapshot.
        self._updates: dict[SharePartitionKey, int] = {}
        self._updates_limit = updates_per_snapshot
        # The offset of the newest snapshot of each share partition, oldest first, and that before which all records
        # are redundant.
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._last_redundant: int | None = None

    # --- rules

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int) -> ShareRecord:
        """Returns the snapshot with which a share partition starts over. Raises FENCED_STATE_EPOCH, INVALID_REQUEST."""
        self._check_partition(key)
        self._check_state_epoch(key, state_epoch)
        known = self.states.get(key)
        # With a start offset the lag is known from there on; without one it is not.
        is_unknown = start_offset == UNINITIALIZED_START_OFFSET
        state = ShareGroupOffset(
            0 if known is None else known.snapshot_epoch + 1,
            state_epoch,
            0,
            start_offset,
            UNINITIALIZED_DELIVERY_COMPLETE_COUNT if is_unknown else 0,
            (),
            now_ms,
            now_ms,
        )
        return ShareRecord(key, state)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
        now_ms: int,
    ) -> ShareRecord:
        """Returns the update or snapshot that records a change of delivery states. Raises FENCED_LEADER_EPOCH,
        FENCED_STATE_EPOCH, INVALID_REQUEST."""
        self._check_partition(key)
        if key not in self.states:
            raise KafkaError(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        self._check_leader_epoch(key, leader_epoch)
        self._check_state_epoch(key, state_epoch)
        # A write leaves the leader epoch as the last read set it.
        return self._record(
            key, self.states[key].leader_epoch, start_offset, delivery_complete_count, state_batches, now_ms
        )

    def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        """Returns the state. Raises FENCED_LEADER_EPOCH, INVALID_REQUEST."""
        self._check_partition(key)
        state = self.states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        self._check_leader_epoch(key, leader_epoch)
        return state

    def take_leadership(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> ShareRecord | None:
        """Returns the record of the leader epoch with which a state was read, or None if it is known."""
        if leader_epoch == NO_LEADER_EPOCH or self._leader_epochs.get(key) == leader_epoch:
            return None
        state = self.states[key]
        return self._record(key, leader_epoch, state.start_offset, state.delivery_complete_count, (), now_ms)

    def read_summary(self, key: SharePartitionKey) -> ShareGroupOffset:
        """Returns the state, or NO_STATE if there is none."""
        self._check_partition(key)
        return self.states.get(key, NO_STATE)

    def delete(self, key: SharePartitionKey) -> ShareRecord | None:
        """Returns the tombstone, or None if there is no state."""
        self._check_partition(key)
        return ShareRecord(key, None) if key in self.states else None

    def delete_topic(self, topic_id: bytes) -> list[ShareRecord]:
        """Returns the tombstones of all share partitions of a topic."""
        return [ShareRecord(key, None) for key in self.states if key[1] == topic_id]

    def delete_unknown_topics(self, known: Container[bytes]) -> list[ShareRecord]:
        """Returns the tombstones of all share partitions of topics whose ids are not among the known ones."""
        return [ShareRecord(key, None) for key in self.states if key[1] not in known]

    def cold(self, interval_ms: int, now_ms: int) -> list[SharePartitionKey]:
        """Returns the share partitions whose newest snapshot is as old as the interval: none of them if all are such
        snapshots already, because the system is idle."""
        states = self.states
        if all(state.create_timestamp_ms != state.write_timestamp_ms for state in states.values()):
            return []
        return [key for key, state in states.items() if now_ms - state.write_timestamp_ms >= interval_ms]

    def snapshots(self, keys: Sequence[SharePartitionKey], interval_ms: int, now_ms: int) -> list[ShareRecord]:
        """Returns new snapshots of those of these share partitions that are still cold, so that older records of others
        become redundant."""
        found = ((key, self.states.get(key)) for key in keys)
        return [
            ShareRecord(
                key,
                ShareGroupOffset(
                    state.snapshot_epoch + 1,
                    state.state_epoch,
                    state.leader_epoch,
                    state.start_offset,
                    state.delivery_complete_count,
                    state.state_batches,
                    state.create_timestamp_ms,
                    now_ms,
                ),
            )
            for key, state in found
            if state is not None and now_ms - state.write_timestamp_ms >= interval_ms
        ]

    def last_redundant_offset(self) -> int | None:
        """Returns the offset before which all records are redundant, or None if there are none."""
        return self._last_redundant or None

    # --- state

    def apply(self, record: ShareRecord, offset: int) -> None:
        """Make a written record the state."""
        key, state = record.key, record.state
        if record.is_update:
            if state is not None:
                self._apply_update(key, state)
            return
        if state is None:
            for by_key in (self.states, self._leader_epochs, self._state_epochs, self._updates):
                by_key.pop(key, None)
        else:
            self._leader_epochs[key] = max(state.leader_epoch, self._leader_epochs.get(key, state.leader_epoch))
            self._state_epochs[key] = max(state.state_epoch, self._state_epochs.get(key, state.state_epoch))
            self.states[key] = state
            if self._updates.get(key, -1) >= self._updates_limit:
                self._updates[key] = 0
        self._note_snapshot(key, offset)
        if state is None:
            del self._snapshots[key]

    def _apply_update(self, key: SharePartitionKey, update: ShareGroupOffset) -> None:
        self._leader_epochs[key] = max(update.leader_epoch, self._leader_epochs.get(key, update.leader_epoch))
        known = self.states.get(key)
        self._updates[key] = self._updates.get(key, 0) + 1
        if known is None:
            self.states[key] = update
            return
        is_unchanged = update.start_offset == UNINITIALIZED_START_OFFSET
        start_offset = known.start_offset if is_unchanged else update.start_offset
        self.states[key] = ShareGroupOffset(
            known.snapshot_epoch,
            known.state_epoch,
            known.leader_epoch if update.leader_epoch == NO_LEADER_EPOCH else update.leader_epoch,
            start_offset,
            update.delivery_complete_count,
            combine(known.state_batches, update.state_batches, start_offset),
            known.create_timestamp_ms,
            known.write_timestamp_ms,
        )

    def _note_snapshot(self, key: SharePartitionKey, offset: int) -> None:
        # Offsets only grow, so the first entry is that of the oldest snapshot.
        self._snapshots.pop(key, None)
        self._snapshots[key] = offset
        self._last_redundant = next(iter(self._snapshots.values()))

    def _record(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
        now_ms: int,
    ) -> ShareRecord:
        """Returns an update, or a snapshot when there were enough updates."""
        known = self.states[key]
        if self._updates.get(key, 0) < self._updates_limit:
            update = ShareGroupOffset(
                known.snapshot_epoch,
                0,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                combine((), state_batches, start_offset),
            )
            return ShareRecord(key, update, is_update=True)
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = known.start_offset
        snapshot = ShareGroupOffset(
            known.snapshot_epoch + 1,
            known.state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            combine(known.state_batches, state_batches, start_offset),
            now_ms,
            now_ms,
        )
        return ShareRecord(key, snapshot)

    # --- checks

    def _check_partition(self, key: SharePartitionKey) -> None:
        if key[2] < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)

    def _check_leader_epoch(self, key: SharePartitionKey, leader_epoch: int) -> None:
        if leader_epoch != NO_LEADER_EPOCH and self._leader_epochs.get(key, leader_epoch) > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, FENCED_LEADER_EPOCH)

    def _check_state_epoch(self, key: SharePartitionKey, state_epoch: int) -> None:
        if state_epoch != NO_STATE_EPOCH and self._state_epochs.get(key, state_epoch) > state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, FENCED_STATE_EPOCH)
