"""A member acquires records of a share partition (Kafka: SharePartition.acquire).

The records were read from `next_fetch_offset` on. What is available in the window is acquired first, in the order of
offsets, and then what lies behind the window. A record that failed often is delivered with few others, and the last
time alone, so that a bad record does not take good ones with it to its delivery limit.
"""

from __future__ import annotations

from kafka_shim.protocol.messages.share_fetch_response import AcquiredRecords
from kafka_shim.share.in_flight_batch import InFlightBatch, InFlightState
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.share_partition import PartitionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.cext.batch import Batch
    from kafka_shim.share.share_partition import SharePartition

# From this delivery count on a record is delivered with fewer others each time.
MIN_THROTTLED_DELIVERY_COUNT = 2


class AcquireLimits:
    """What one request may acquire: `max_records` in all (exceeded up to the end of a stored batch unless `is_strict`),
    in pieces of about `batch_size`."""

    __slots__ = ("batch_size", "is_strict", "max_records")

    def __init__(self, max_records: int, batch_size: int, is_strict: bool) -> None:
        self.max_records = max_records
        self.batch_size = batch_size
        self.is_strict = is_strict


def acquire(
    share: SharePartition, member_id: str, batches: Sequence[Batch], fetch_offset: int, limits: AcquireLimits
) -> list[AcquiredRecords]:
    """Acquire records out of the stored batches that were read at `fetch_offset`."""
    if share.state is not PartitionState.ACTIVE or limits.max_records <= 0 or not batches:
        return []
    last_offset = batches[-1].last_offset
    if last_offset < share.start_offset:
        return []
    wanted = min(limits.max_records, share.max_record_locks - share.in_flight_count())
    if wanted <= 0:
        # The window is full, but a record in it may be available.
        if fetch_offset > share.end_offset:
            return []
        wanted = min(limits.max_records, share.end_offset - fetch_offset + 1)
        last_offset = min(last_offset, share.end_offset)
    try:
        return _Acquisition(share, member_id, batches, limits, last_offset, wanted).run(fetch_offset)
    except MemoryError:
        share.state = PartitionState.FENCED  # a record may have an owner, and no lock that ends
        raise


class _Acquisition:
    """One call of `acquire`."""

    __slots__ = (
        "count",
        "first_read_offset",
        "last_offset",
        "limits",
        "member_id",
        "read",
        "result",
        "share",
        "wanted",
    )

    def __init__(
        self,
        share: SharePartition,
        member_id: str,
        read: Sequence[Batch],
        limits: AcquireLimits,
        last_offset: int,
        wanted: int,
    ) -> None:
        self.share = share
        self.member_id = member_id
        self.read = read
        self.limits = limits
        self.first_read_offset = read[0].base_offset
        self.last_offset = last_offset
        self.wanted = wanted
        self.result: list[AcquiredRecords] = []
        self.count = 0

    def run(self, fetch_offset: int) -> list[AcquiredRecords]:
        share = self.share
        base_offset = self.first_read_offset
        self._archive_absent(fetch_offset, base_offset)
        at = share.floor(base_offset)
        if at < 0:
            # A stored batch may begin before the window. Behind other batches Kafka delivers the whole of it.
            base_offset = max(base_offset, share.start_offset)
        elif share.batches[at].last_offset >= base_offset:
            base_offset = share.batches[at].first_offset
        known = share.between(min(self.first_read_offset, base_offset), self.last_offset)
        if not known:
            self._acquire_new(base_offset, self.last_offset)
            return self.result
        gap_offset = base_offset
        for batch in known:
            if self.count >= self.wanted:
                break
            if share.has_gap():
                if gap_offset < batch.first_offset:
                    self._acquire_new(gap_offset, batch.first_offset - 1)
                gap_offset = batch.last_offset + 1
                if self.count >= self.wanted:
                    break
            if self._acquire_known(batch):
                break
        if self.count < self.wanted and known[-1].last_offset < self.last_offset:
            self._acquire_new(known[-1].last_offset + 1, self.last_offset)
        if self.result:
            share.move_gap(self.result[-1].last_offset + 1)
        return self.result

    def _archive_absent(self, fetch_offset: int, base_offset: int) -> None:
        """Archive what is available before the first batch that the log still has: compaction removed it."""
        share = self.share
        if not share.batches or fetch_offset >= base_offset:
            return
        at = share.floor(fetch_offset)
        first_offset = fetch_offset
        if at >= 0 and share.batches[at].last_offset >= fetch_offset:
            first_offset = share.batches[at].first_offset
        batches = share.between(first_offset, base_offset - 1)
        share.delivery_complete_count += share.archive(fetch_offset, base_offset, batches, RecordState.AVAILABLE)

    # --- records in the window

    def _acquire_known(self, batch: InFlightBatch) -> bool:
        """Acquire what is available of a batch in the window. Returns whether nothing more may be acquired with it."""
        share = self.share
        state = batch.state
        if state is not None and state.state is not RecordState.AVAILABLE:
            return False
        is_throttled = self._is_throttled(batch)
        if is_throttled and self.count > 0:
            self.wanted = 0
            return True
        is_cut = self.limits.is_strict and len(batch) > self.wanted - self.count
        is_whole = batch.is_within(self.first_read_offset, self.last_offset)
        if state is None or not is_whole or is_cut or is_throttled:
            batch.split()
            got = self._acquire_offsets(batch)
            self.count += got
            if is_throttled and got:
                self.wanted = 0
                return True
            return False
        state.acquire(self.member_id, share.lock(batch.first_offset, batch.last_offset))
        self.result.append(acquired_records(batch.first_offset, batch.last_offset, state.delivery_count))
        self.count += len(batch)
        return False

    def _acquire_offsets(self, batch: InFlightBatch) -> int:
        """Acquire single offsets. Returns how many."""
        share = self.share
        limit = share.delivery_limit
        throttled_from = _throttled_from(limit)
        most = self.wanted - self.count if self.limits.is_strict else len(batch)
        throttled_most = -1
        count = 0
        until_ms = 0
        runs: list[list[int]] = []
        for offset, _, state in batch.pieces(max(self.first_read_offset, share.available_from), self.last_offset):
            if state.state is not RecordState.AVAILABLE:
                continue
            if limit > 2 and state.delivery_count == limit - 1 and count > 0:
                break  # its last delivery is alone
            if state.delivery_count >= throttled_from and throttled_most < 0:
                throttled_most = max(1, len(batch) >> (state.delivery_count - throttled_from + 1))
            state.acquire(self.member_id, 0)
            count += 1
            if runs and runs[-1][1] == offset - 1 and runs[-1][2] == state.delivery_count:
                runs[-1][1] = offset
            else:
                runs.append([offset, offset, state.delivery_count])
            if (limit > 2 and state.delivery_count == limit) or count in (most, throttled_most):
                break
        for first_offset, last_offset, delivery_count in runs:
            batch.most_delivered = max(batch.most_delivered, delivery_count)
            until_ms = share.lock(first_offset, last_offset)
            for _, _, state in batch.pieces(first_offset, last_offset):
                state.lock_until_ms = until_ms
            self.result.append(acquired_records(first_offset, last_offset, delivery_count))
        return count

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        throttled_from = _throttled_from(self.share.delivery_limit)
        if batch.state is None and batch.most_delivered < throttled_from:
            return False
        return any(
            state.state is RecordState.AVAILABLE and state.delivery_count >= throttled_from
            for _, _, state in batch.pieces(max(self.first_read_offset, self.share.available_from), self.last_offset)
        )

    # --- records that were never acquired

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        share = self.share
        most = self.wanted - self.count
        if not share.batches and share.end_offset > first_offset:
            first_offset = share.end_offset
        if first_offset > last_offset:
            return
        end_offset = last_offset
        if most < end_offset - first_offset + 1:
            end_offset = self._end_of_batch(first_offset + most - 1)
            if share.has_gap():
                end_offset = min(end_offset, last_offset)
        got_offset = end_offset
        if self.limits.is_strict and end_offset - first_offset + 1 > most:
            got_offset = first_offset + most - 1
            self._add_cut(first_offset, got_offset, end_offset)
        else:
            for first, last in self._pieces(first_offset, end_offset):
                self._add(first, last)
        if share.batches[0].first_offset == first_offset:
            share.start_offset = first_offset
        share.end_offset = max(share.end_offset, end_offset)
        share.move_gap(got_offset + 1)
        self.count += got_offset - first_offset + 1

    def _add(self, first_offset: int, last_offset: int) -> None:
        state = InFlightState(RecordState.ACQUIRED, 1, self.member_id, self.share.lock(first_offset, last_offset))
        self.share.add(InFlightBatch(first_offset, last_offset, state))
        self.result.append(acquired_records(first_offset, last_offset, 1))

    def _add_cut(self, first_offset: int, got_offset: int, last_offset: int) -> None:
        """Acquire the beginning of a stored batch; the rest of it is in the window, and available."""
        share = self.share
        batch = InFlightBatch(first_offset, last_offset, InFlightState(RecordState.AVAILABLE, 0))
        batch.split()
        until_ms = share.lock(first_offset, got_offset)
        for _, _, state in batch.pieces(first_offset, got_offset):
            state.acquire(self.member_id, until_ms)
        batch.most_delivered = 1
        # What the log does not have any more would be looked for again and again, and nothing behind it.
        for _, _, state in batch.pieces(got_offset + 1, share.start_offset - 1):
            state.enter(RecordState.ARCHIVED)
        share.add(batch)
        share.found_available(got_offset + 1)
        self.result.append(acquired_records(first_offset, got_offset, 1))

    def _pieces(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Returns the offsets in pieces of at least `batch_size`, cut where stored batches begin."""
        batch_size = self.limits.batch_size
        pieces: list[tuple[int, int]] = []
        if not self.limits.is_strict and last_offset - first_offset + 1 > batch_size:
            for batch in self.read:
                if batch.base_offset > last_offset:
                    break
                if batch.base_offset - first_offset >= batch_size and batch.base_offset > first_offset:
                    pieces.append((first_offset, batch.base_offset - 1))
                    first_offset = batch.base_offset
        pieces.append((first_offset, last_offset))
        return pieces

    def _end_of_batch(self, offset: int) -> int:
        """Returns the last offset of the stored batch that contains the offset, or the offset if none does."""
        for batch in self.read:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset


def acquired_records(first_offset: int, last_offset: int, delivery_count: int) -> AcquiredRecords:
    """Returns what a response says of offsets that a member got, all with the same delivery count."""
    return AcquiredRecords(first_offset=first_offset, last_offset=last_offset, delivery_count=delivery_count)


def _throttled_from(delivery_limit: int) -> int:
    return max(MIN_THROTTLED_DELIVERY_COUNT, -(-delivery_limit // 2))
