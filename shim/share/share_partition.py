"""One share partition: a partition as one share group reads it (Kafka: SharePartition).

This file holds the window of offsets in flight and how its start moves; what members do with the records is in
`share_partition_acquire` and `share_partition_acknowledge`. The window:

    start_offset            end_offset
        | batch | batch | ... |      everything before is done, everything after was never acquired

States are in memory, and what must survive is in `__share_group_state`: a record that was acknowledged, archived, or
released with its delivery count. That one is acquired is not stored, so it is available again after a crash. A change
is decided, persisted, and only then applied; nothing is awaited in between.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from enum import Enum
from itertools import islice

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.share.acquisition_locks import AcquisitionLocks
from kafka_shim.share.client_errors import RETRIABLE, client_error
from kafka_shim.share.in_flight_batch import InFlightBatch, InFlightState
from kafka_shim.share.persister import EARLIEST, LATEST
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.state import UNINITIALIZED_START_OFFSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.outcome import Flushes
    from kafka_shim.scheduler import Scheduler
    from kafka_shim.share.acquisition_locks import Lock
    from kafka_shim.share.persister import ShareStatePersister
    from kafka_shim.share.state import StateBatch
    from kafka_shim.storage.log import PartitionLog

    # Group id, topic id, partition.
    SharePartitionKey = tuple[str, bytes, int]
    ReleaseExpired = Callable[["SharePartition", list[tuple[int, int]], int], None]


_STATE_NUMBERS = frozenset(state.value for state in RecordState)


class PartitionState(Enum):
    """EMPTY: the stored state was not read yet. FENCED: somebody else's state counts from now on, or the partition is
    gone; nothing is acquired, and the next fetch makes a new share partition."""

    EMPTY = "empty"
    ACTIVE = "active"
    FENCED = "fenced"


class SharePartition:
    """Owned by `SharePartitions`. Event-loop thread only."""

    __slots__ = (
        "_clock",
        "_must_search",
        "_persister",
        "_release_expired",
        "available_from",
        "batches",
        "delivery_complete_count",
        "end_offset",
        "gap_end_offset",
        "gap_start_offset",
        "group_id",
        "key",
        "leader_epoch",
        "locks",
        "log",
        "position_offset",
        "readers",
        "start_offset",
        "state",
        "state_epoch",
    )

    def __init__(
        self,
        key: SharePartitionKey,
        log: PartitionLog,
        persister: ShareStatePersister,
        clock: Clock,
        scheduler: Scheduler,
        release_expired: ReleaseExpired,
    ) -> None:
        # fixed
        self.key = key
        self.group_id = key[0]
        self.log = log
        self.leader_epoch = log.leader_epoch
        self._persister = persister
        self._clock = clock
        # The rule for locks that may have ended: (share partition, ranges of offsets, now).
        self._release_expired = release_expired
        name = f"locks of {key[0]}:{key[1].hex()}:{key[2]}"
        self.locks = AcquisitionLocks(name, clock, scheduler, self._locks_held, self._locks_ended, self._locks_lost)
        # read from the share coordinator
        self.state = PartitionState.EMPTY
        self.state_epoch = 0
        # the window; `end_offset` is the last offset of the last batch, or equals `start_offset` if there is no batch
        self.start_offset = self.end_offset = 0
        self.batches: list[InFlightBatch] = []
        # Terminal records in the window: the share lag does not count them.
        self.delivery_complete_count = 0
        # The stored state may have gaps: offsets that were acquired when the broker crashed, and never stored. They are
        # acquired again, from `gap_start_offset` on; -1: there are none.
        self.gap_start_offset = -1
        self.gap_end_offset = -1
        # The last offset at which a fetch looked for records, or -1 (Kafka: fetchOffsetMetadata).
        self.position_offset = -1
        # Whether a record before the end may be available, and an offset before which none is.
        self._must_search = False
        self.available_from = -1
        # Called when records may have become available.
        self.readers: set[Callable[[], None]] = set()

    # --- options of the group

    @property
    def delivery_limit(self) -> int:
        return self._persister.delivery_count_limit(self.group_id)

    @property
    def max_record_locks(self) -> int:
        return self._persister.partition_max_record_locks(self.group_id)

    @property
    def may_renew(self) -> bool:
        return self._persister.may_renew(self.group_id)

    # --- life

    def load(self) -> None:
        """Read the stored state. Raises KafkaError with the code for the client, or with one of RETRIABLE while the
        share coordinator loads."""
        try:
            state_epoch, start_offset, _, stored = self._persister.read_state(*self.key, self.leader_epoch)
        except KafkaError as error:
            if error.code in RETRIABLE:
                raise
            raise client_error(error, "read") from error
        self.state_epoch = state_epoch
        is_new = start_offset == UNINITIALIZED_START_OFFSET
        self.start_offset = self._first_offset() if is_new else start_offset
        self.end_offset = self.start_offset
        self._take_over(stored)
        self.state = PartitionState.ACTIVE

    def _first_offset(self) -> int:
        """Returns where a group begins that never read the partition (`share.auto.offset.reset`)."""
        reset = self._persister.auto_offset_reset(self.group_id)
        if reset == LATEST:
            return self.log.latest().offset
        if reset == EARLIEST:
            return self.log.earliest().offset
        timestamp_ms = self._clock.now_ms() - int(reset)
        offset = self.log.offset_for_timestamp(timestamp_ms).offset
        if offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE, f"{self.log.name} has no record at or after {timestamp_ms}"
            )
        return offset

    def _take_over(self, stored: Sequence[StateBatch]) -> None:
        previous_offset = self.start_offset - 1
        for batch in stored:
            is_range = self.start_offset <= batch.first_offset <= batch.last_offset
            if not is_range or batch.delivery_state not in _STATE_NUMBERS:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"stored state of {self.key} is inconsistent: {batch}")
            if self.gap_start_offset < 0 and batch.first_offset > previous_offset + 1:
                self.gap_start_offset = previous_offset + 1
            previous_offset = batch.last_offset
            state = InFlightState(RecordState(batch.delivery_state), batch.delivery_count)
            self.batches.append(InFlightBatch(batch.first_offset, batch.last_offset, state))
            if state.is_terminal:
                self.delivery_complete_count += batch.last_offset - batch.first_offset + 1
        if self.batches:
            self._must_search = True
            self.end_offset = self.gap_end_offset = previous_offset
            self.advance()

    def fence(self) -> None:
        """The state in memory does not count any more."""
        self.state = PartitionState.FENCED
        self.locks.stop()
        self.wake()

    def wake(self) -> None:
        """Let waiting fetches look again."""
        for reader in tuple(self.readers):
            reader()

    # --- the window

    def floor(self, offset: int) -> int:
        """Returns the index of the last batch that begins at or before `offset`, or -1."""
        return bisect_right(self.batches, offset, key=_first_offset) - 1

    def between(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Returns the batches that begin in the range."""
        batches = self.batches
        first = self.floor(first_offset)
        if first < 0 or batches[first].first_offset < first_offset:
            first += 1
        return batches[first : self.floor(last_offset) + 1]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch of newly acquired offsets."""
        if self.batches and self.batches[-1].first_offset >= batch.first_offset:
            insort(self.batches, batch, key=_first_offset)
        else:
            self.batches.append(batch)

    def begins_within(self, batch: InFlightBatch) -> bool:
        """Returns whether the start offset is in the batch, but not its first offset."""
        return batch.first_offset < self.start_offset <= batch.last_offset

    def in_flight_count(self) -> int:
        """Returns the number of offsets in the window."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def count_from_start(self, first_offset: int, last_offset: int) -> int:
        """Returns how many of the offsets are in the window."""
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    def has_gap(self) -> bool:
        """Returns whether offsets between stored batches are still to be acquired."""
        return self.gap_start_offset >= 0 and self.gap_end_offset == self.end_offset

    def move_gap(self, offset: int) -> None:
        """Offsets before this one were acquired."""
        if self.gap_start_offset >= 0:
            is_over = self.gap_end_offset != self.end_offset or offset > self.gap_end_offset
            self.gap_start_offset = -1 if is_over else offset

    def found_available(self, offset: int) -> None:
        """A record before the end became available, and perhaps others behind it."""
        self._must_search = True
        self.available_from = min(self.available_from, offset)

    def next_fetch_offset(self) -> int:
        """Returns where to read next: the first available record, or else the end."""
        batches = self.batches
        if not batches or self.start_offset > batches[-1].last_offset:
            self._must_search = False
            return self.end_offset
        if self._must_search:
            gap_offset = self.gap_start_offset
            has_gap = self.has_gap()
            first = 0 if has_gap else max(self.floor(self.available_from), 0)
            for batch in islice(batches, first, None):
                if has_gap:
                    if batch.first_offset > gap_offset:
                        return gap_offset
                    gap_offset = max(batch.last_offset + 1, gap_offset)
                offset = batch.first_available(self.available_from)
                if offset >= 0:
                    self.available_from = offset
                    return offset
            self._must_search = False
            self.available_from = self.end_offset + 1
        return self.end_offset + 1

    def can_acquire(self) -> bool:
        """Returns whether a member could get a record, if the log has one."""
        return self.acquirable_offset() is not None

    def acquirable_offset(self) -> int | None:
        """Returns where a member could get a record, if the log has one."""
        offset = self.next_fetch_offset()
        has_room = offset != self.end_offset + 1 or self.in_flight_count() < self.max_record_locks
        return offset if has_room and self.state is PartitionState.ACTIVE else None

    # --- the start offset

    def advance(self) -> bool:
        """Move the start offset past what is done. Returns whether it moved."""
        batches = self.batches
        index = self.floor(self.start_offset)
        if index < 0 or not batches[index].is_done_at(self.start_offset):
            return False
        last_offset, count = self._last_done()
        if last_offset < 0:
            return False
        if last_offset == batches[-1].last_offset:
            self.start_offset = self.end_offset = max(self.start_offset, last_offset + 1)
            batches.clear()
            self.delivery_complete_count = 0
            return True
        index = self.floor(last_offset)
        if last_offset == batches[index].last_offset:
            index += 1
            self.start_offset = max(self.start_offset, batches[index].first_offset)
            if self.has_gap():
                self.start_offset = min(self.start_offset, self.gap_start_offset)
        else:
            self.start_offset = max(self.start_offset, last_offset + 1)
        self.delivery_complete_count -= count
        del batches[:index]
        return True

    def _last_done(self) -> tuple[int, int]:
        """Returns the last offset before the first that is not done, and how many of those before are in the window."""
        last_done, count = -1, 0
        has_gap = self.has_gap()
        for batch in self.batches:
            if has_gap and batch.last_offset >= self.gap_start_offset:
                break
            last_offset = batch.last_done()
            if last_offset >= batch.first_offset:
                last_done = last_offset
                count += self.count_from_start(batch.first_offset, last_offset)
            if last_offset < batch.last_offset:
                break
        return last_done, count

    def raise_start_offset(self, log_start_offset: int) -> None:
        """The log begins here now (retention, DeleteRecords): archive what is available before it. What is acquired is
        archived when its member gives it back."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        done = 0
        for batch in self.batches:
            for first_offset, last_offset, state in batch.pieces(self.start_offset, log_start_offset - 1):
                if state.is_terminal:
                    done += self.count_from_start(first_offset, min(last_offset, log_start_offset - 1))
        self.archive(self.start_offset, log_start_offset, self.batches, RecordState.AVAILABLE)
        self.start_offset = log_start_offset
        self.delivery_complete_count -= done
        self.end_offset = max(self.end_offset, self.start_offset)
        if self.gap_start_offset < log_start_offset:
            self.move_gap(log_start_offset)  # reading before it would find nothing, for ever

    def archive(self, first_offset: int, end_offset: int, batches: Sequence[InFlightBatch], only: RecordState) -> int:
        """Archive the records before `end_offset` that are in the state `only`. Returns how many there were."""
        count = 0
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            if batch.last_offset < first_offset:
                continue
            if not batch.is_within(first_offset, end_offset - 1):
                if batch.state is not None and batch.state.state is not only:
                    continue
                batch.split()
            for first, last, state in batch.pieces(first_offset, end_offset - 1):
                if state.state is only:
                    state.enter(RecordState.ARCHIVED)
                    count += last - first + 1
        if count:
            self._must_search = True
        return count

    # --- acquisition locks

    def lock(self, first_offset: int, last_offset: int) -> int:
        """Begin an acquisition lock on these offsets. Returns its end."""
        return self.locks.begin(first_offset, last_offset, self._persister.record_lock_duration_ms(self.group_id))

    def _locks_held(self) -> Iterator[Lock]:
        # A state whose lock is only being made has an end that has passed: it is looked at once more, and stays.
        for batch in self.batches:
            for first_offset, last_offset, state in batch.pieces(batch.first_offset, batch.last_offset):
                if state.state is RecordState.ACQUIRED:
                    yield state.lock_until_ms, first_offset, last_offset

    def _locks_ended(self, due: list[tuple[int, int]], now_ms: int) -> None:
        if self.state is PartitionState.ACTIVE:
            self._release_expired(self, due, now_ms)

    def _locks_lost(self) -> None:
        self.state = PartitionState.FENCED  # what is stored counts; the next fetch reads it

    # --- the share coordinator

    def persist(self, batches: Sequence[StateBatch], done_count: int) -> Flushes:
        """Store what becomes of these records; `done_count` of them become terminal. Returns the fsyncs that must
        finish before the response. Raises KafkaError with the code for the client: nothing was stored."""
        try:
            epochs = self.state_epoch, self.leader_epoch
            complete_count = self.delivery_complete_count + done_count
            return self._persister.write_state(*self.key, *epochs, self.start_offset, complete_count, batches)
        except KafkaError as error:
            text = "the state of share partition %s of group %s cannot be written: %s"
            self._persister.refusals.write(text, self.log.name, self.group_id, error)
            raise client_error(error, "write") from error


def _first_offset(batch: InFlightBatch) -> int:
    return batch.first_offset
