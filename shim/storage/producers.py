"""The producer state of a partition: idempotence and transactions (Kafka: ProducerStateManager, ProducerAppendInfo).

`check_*` validates a batch or marker before the write, raises on an error and changes nothing. `apply_*` updates the
state after the write. `cext.log_base` does the same in one pass for nearly all batches and markers. Recovery calls
`replay`, which applies without checks because the batch was accepted before."""

from __future__ import annotations

from kafka_shim.cext.log_base import ProducerBase, ProducersBase, Verification
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.results import ProducerStatus
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kafka_shim.cext.batch import Batch
    from kafka_shim.storage.txn_index import Aborted

NO_EPOCH = -1
NO_OFFSET = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 0x7FFFFFFF
MAX_EPOCH = 0x7FFF
CACHED_BATCHES = 5
# Producers whose age is looked at between two looks at the time.
EXPIRY_SLICE = 100
TV2 = 2
# That of a marker at a follower, where it was checked before (Kafka: TV_UNKNOWN). A leader refuses it.
UNKNOWN_VERSION = -1

# first sequence, last sequence, first offset, last offset, max timestamp
CachedBatch = tuple[int, int, int, int, int]


class ProducerEntry(ProducerBase):
    """The state of one producer id on one partition (A2). `batches` are the last five of this epoch; the list is empty
    after a marker with a new epoch."""

    __slots__ = ()

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp_ms: int = -1,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = last_timestamp_ms
        self.txn_first_offset = txn_first_offset
        self.batches: list[CachedBatch] = []

    @property
    def last_sequence(self) -> int:
        """The last sequence number of the last batch of this epoch, -1 if there is none."""
        return self.batches[-1][1] if self.batches else NO_SEQUENCE

    def duplicate_of(self, batch: Batch) -> CachedBatch | None:
        """Return the cached batch with the same epoch and sequence numbers as `batch` (A4), or None."""
        batches = self.batches
        if batches and batch.producer_epoch == self.epoch:
            first = batch.base_sequence
            if first == batches[-1][1] + 1:
                return None  # the next one, as nearly always; five batches never hold all sequence numbers
            last = batch.last_sequence
            for cached in batches:
                if cached[0] == first and cached[1] == last:
                    return cached
        return None


class Marker:
    """The fields of one transaction marker."""

    __slots__ = ("commit", "coordinator_epoch", "producer_epoch", "producer_id", "timestamp_ms")

    def __init__(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, timestamp_ms: int
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.commit = commit
        self.timestamp_ms = timestamp_ms


class Producers(ProducersBase):
    """The state of all producers of one partition. Owned by its `PartitionLog`; event-loop thread only, after
    recovery."""

    __slots__ = ("name", "snapshot_offset")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[int, ProducerEntry] = {}
        # First offset of each open transaction -> producer id. Ascending, because a new transaction starts at the log
        # end offset.
        self._open: dict[int, int] = {}
        self._verifications: dict[int, Verification] = {}
        # `next_offset`: the state covers all batches below it. `snapshot_offset`: the offset of the newest snapshot.
        self.next_offset = 0
        self.snapshot_offset = 0

    # --- queries

    @property
    def first_open_offset(self) -> int:
        """The first offset of the oldest open transaction, -1 if none is open."""
        return next(iter(self._open), NO_OFFSET)

    @property
    def is_empty(self) -> bool:
        return not self.entries

    def statuses(self) -> Iterator[ProducerStatus]:
        """Yield the state of every producer that is known at the first step."""
        for entry in list(self.entries.values()):
            yield ProducerStatus(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )

    def aborted_by(self, producer_id: int, offset: int) -> Aborted | None:
        """Return the transaction that an abort marker of the producer at `offset` would end, or None if none is
        open."""
        entry = self.entries.get(producer_id)
        if entry is None or entry.txn_first_offset == NO_OFFSET:
            return None
        first_offset = entry.txn_first_offset
        stable_offset = next((each for each in self._open if each != first_offset), offset + 1)
        return producer_id, first_offset, offset, stable_offset

    def open_transactions(self) -> dict[int, int]:
        """Return a map from first offset to producer id of the open transactions, ascending."""
        return dict(self._open)

    def has_late_transaction(self, before_ms: int) -> bool:
        """Whether a transaction is open whose last record is older than `before_ms` (Kafka: hasLateTransaction)."""
        return any(0 <= self.entries[producer_id].last_timestamp_ms < before_ms for producer_id in self._open.values())

    # --- check

    def check_data(self, batch: Batch, verification: Verification | None, *, client: bool, must_verify: bool) -> None:
        """Check that a data batch, which is not a duplicate, may be appended next (A3, A5-A7, A10, B9). `client` is
        False for batches that the broker builds, which have no sequence numbers. Raises ProducerRefusal."""
        producer_id, epoch, is_transactional = batch.producer_id, batch.producer_epoch, batch.is_transactional
        entry = self.entries.get(producer_id)
        if is_transactional and (entry is None or entry.txn_first_offset == NO_OFFSET or entry.epoch != epoch):
            # Check the epoch first: a client can recover from INVALID_PRODUCER_EPOCH but not from INVALID_TXN_STATE.
            if entry is not None and epoch < entry.epoch:
                raise self._stale_epoch(epoch, entry)
            if must_verify and (verification is None or self._verifications.get(producer_id) is not verification):
                raise self._refuse(
                    ErrorCode.INVALID_TXN_STATE,
                    producer_id,
                    "the partition was not verified to be in the transaction, or the transaction ended meanwhile",
                )
        if entry is None:
            entry = ProducerEntry(producer_id)
        if epoch < entry.epoch:
            raise self._stale_epoch(epoch, entry)
        if client:
            self._check_sequence(batch, entry)
        if entry.txn_first_offset != NO_OFFSET and not is_transactional:
            raise self._refuse(
                ErrorCode.INVALID_TXN_STATE,
                producer_id,
                f"a batch without a transaction while its transaction from offset {entry.txn_first_offset} is open",
            )

    def _check_sequence(self, batch: Batch, entry: ProducerEntry) -> None:
        first = batch.base_sequence
        guard = self._verifications.get(entry.producer_id) if self._verifications else None
        if guard is not None:
            if guard.supports_epoch_bump and first != 0 and not entry.batches:
                raise self._out_of_order(batch, "expected 0, because this TV2 producer has no batches here")
            if first > guard.lowest_sequence:
                raise self._out_of_order(batch, f"expected at most {guard.lowest_sequence}, which is being verified")
        if entry.epoch == NO_EPOCH:
            return
        if batch.producer_epoch != entry.epoch:
            if first != 0:
                raise self._out_of_order(batch, f"expected 0, because the epoch is new (before it was {entry.epoch})")
            return
        last = entry.last_sequence
        expected = 0 if last == MAX_SEQUENCE else last + 1
        if first != expected:
            raise self._out_of_order(batch, f"expected {expected}")

    def check_marker(self, marker: Marker, transaction_version: int) -> None:
        """Check the producer epoch and the coordinator epoch of a marker (B11). Raises ProducerRefusal."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            entry = ProducerEntry(marker.producer_id)
        epoch = marker.producer_epoch
        if transaction_version >= TV2:
            retry = epoch == entry.epoch and (entry.txn_first_offset == NO_OFFSET or epoch == MAX_EPOCH)
            refused = epoch <= entry.epoch and not retry
        else:
            refused = epoch < entry.epoch
        if refused:
            raise self._refuse(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                marker.producer_id,
                f"the marker has epoch {epoch}, the newest is {entry.epoch} (version {transaction_version})",
            )
        if transaction_version == UNKNOWN_VERSION:
            raise self._refuse(
                ErrorCode.UNKNOWN_SERVER_ERROR, marker.producer_id, "the marker has no transaction version"
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise self._refuse(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                marker.producer_id,
                f"the marker has coordinator epoch {marker.coordinator_epoch}, the newest is {entry.coordinator_epoch}",
            )

    # --- apply

    def apply_data(self, batch: Batch, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Update the state after a data batch was appended at these offsets."""
        producer_id, epoch, is_transactional = batch.producer_id, batch.producer_epoch, batch.is_transactional
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches = []
        elif len(entry.batches) == CACHED_BATCHES:
            del entry.batches[0]
        entry.batches.append((batch.base_sequence, batch.last_sequence, base_offset, last_offset, max_timestamp))
        entry.last_timestamp_ms = max_timestamp
        if is_transactional:
            if entry.txn_first_offset == NO_OFFSET:
                entry.txn_first_offset = base_offset
                self._open[base_offset] = producer_id
            # A guard is valid for one append (B9).
            if self._verifications:
                self._verifications.pop(producer_id, None)

    def apply_marker(self, marker: Marker, offset: int) -> tuple[int, int] | None:
        """Update the state after a marker was appended at `offset`. Returns (first offset of the transaction that it
        ended, last stable offset), or None if no transaction was open."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            entry = self.entries[marker.producer_id] = ProducerEntry(marker.producer_id)
        if entry.epoch != marker.producer_epoch:
            entry.epoch = marker.producer_epoch
            entry.batches = []
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = marker.timestamp_ms
        # Under TV2 a guard of the marker's own epoch belongs to the next transaction, which begins at that epoch.
        guard = self._verifications.get(marker.producer_id)
        if guard is not None and not (guard.supports_epoch_bump and guard.producer_epoch == marker.producer_epoch):
            del self._verifications[marker.producer_id]
        first_offset, entry.txn_first_offset = entry.txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        self._open.pop(first_offset, None)
        return first_offset, next(iter(self._open), offset + 1)

    def replay(self, batch: Batch, marker: Marker | None) -> tuple[int, int] | None:
        """Apply a stored batch with a producer id, without checks. Returns the result of `apply_marker`, or None."""
        if marker is not None:
            return self.apply_marker(marker, batch.base_offset)
        if not batch.is_control:
            self.apply_data(batch, batch.base_offset, batch.last_offset, batch.max_timestamp)
            return None
        # Compaction emptied this marker and kept it for its epoch. The epoch still fences older producers (Kafka
        # forgets it here), and the marker ends a transaction that an older snapshot contains as open.
        entry = self.entries.get(batch.producer_id)
        if entry is not None:
            self._open.pop(entry.txn_first_offset, None)
            entry.txn_first_offset = NO_OFFSET
        if entry is None or entry.epoch < batch.producer_epoch:
            self.entries[batch.producer_id] = ProducerEntry(
                batch.producer_id, batch.producer_epoch, last_timestamp_ms=batch.max_timestamp
            )
        return None

    # --- life

    def load(self, entries: list[ProducerEntry], offset: int, now_ms: int, expiration_ms: int) -> None:
        """Load the entries of the snapshot at `offset`, except those that have expired (A9)."""
        self.entries = {entry.producer_id: entry for entry in entries if not is_expired(entry, now_ms, expiration_ms)}
        self._open = {
            entry.txn_first_offset: entry.producer_id
            for entry in sorted(self.entries.values(), key=_txn_first_offset)
            if entry.txn_first_offset != NO_OFFSET
        }
        self.next_offset = self.snapshot_offset = offset

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that were inactive for `producer.id.expiration.ms`. Returns how many (A9)."""
        return at_once(self.expire_in_slices(now_ms, expiration_ms))

    def expire_in_slices(self, now_ms: int, expiration_ms: int) -> Generator[None, None, int]:
        """As `expire`. Yields after every so many producers."""
        gone = 0
        if self.entries:
            for number, producer_id in enumerate(list(self.entries), 1):
                entry = self.entries.get(producer_id)  # None: what the partition knew was replaced meanwhile
                if entry is not None and is_expired(entry, now_ms, expiration_ms):
                    del self.entries[producer_id]
                    gone += 1
                if not number % EXPIRY_SLICE:
                    yield
        for guard in [guard for guard in self._verifications.values() if now_ms - guard.created_ms >= expiration_ms]:
            del self._verifications[guard.producer_id]
        return gone

    def take_verifications(self, other: Producers) -> None:
        """Take over the verification guards of `other`, which this object replaces, because pending requests hold
        them."""
        self._verifications = other._verifications

    def clear(self, offset: int) -> None:
        """Remove all state. The log starts again at `offset`."""
        self.entries = {}
        self._open = {}
        self._verifications = {}
        self.next_offset = offset
        self.snapshot_offset = 0

    # --- reasons

    def _refuse(self, code: ErrorCode, producer_id: int, reason: str) -> ProducerRefusal:
        return ProducerRefusal(code, f"{self.name}: producer {producer_id}: {reason}")

    def _stale_epoch(self, epoch: int, entry: ProducerEntry) -> ProducerRefusal:
        return self._refuse(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            entry.producer_id,
            f"epoch {epoch} is too old, the newest is {entry.epoch}",
        )

    def _out_of_order(self, batch: Batch, expected: str) -> ProducerRefusal:
        return self._refuse(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            batch.producer_id,
            f"epoch {batch.producer_epoch}, sequence {batch.base_sequence}, {expected}",
        )


class ProducerRefusal(KafkaError):
    """A rejected idempotent or transactional append. Kafka sends no error message with these codes, so `message` is
    None. `reason` goes to the broker's log and to `transactions explain`."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(code, None)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.code.name}: {self.reason}"


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """Whether the producer has no open transaction and its last record timestamp is `expiration_ms` or more ago."""
    return entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp_ms >= expiration_ms


def _txn_first_offset(entry: ProducerEntry) -> int:
    return entry.txn_first_offset
