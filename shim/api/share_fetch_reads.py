"""Reads the partitions of one ShareFetch, and acquires records for its member (Kafka: DelayedShareFetch,
ShareFetchUtils)."""

from __future__ import annotations

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.segment import Walk
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.share_fetch_response import PartitionData
from kafka_shim.share.share_partition import PartitionState
from kafka_shim.share.share_partition_acquire import AcquireLimits, acquire
from kafka_shim.storage.file_records import FileRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.share_fetch_request import ShareFetchRequest
    from kafka_shim.share.share_partition import SharePartition
    from kafka_shim.share.share_partitions import SharePartitions
    from kafka_shim.share.share_sessions import CachedSharePartition, TopicIdPartition
    from kafka_shim.storage.segments import Segment
    from kafka_shim.turns import Steps

# The number of stored bytes that a response holds in memory. Further bytes are read from the files as the response is
# sent.
COPY_BYTES = 64 * 1024
RECORD_LIMIT = 1  # share acquire mode
# Partitions that are found, read and acquired in one turn without looking at the time.
MANY = 256
PARTITIONS_PER_STEP = 16


class PartitionRead:
    """What the log has for one share partition. `range` is where the stored batches are; None: there is nothing."""

    __slots__ = (
        "aborted",
        "at_least_one",
        "error",
        "is_on_older_segment",
        "max_bytes",
        "offset",
        "range",
        "size_bytes",
    )

    def __init__(self, offset: int, max_bytes: int, *, at_least_one: bool) -> None:
        self.offset = offset
        self.max_bytes = max_bytes
        self.at_least_one = at_least_one
        self.error: KafkaError | None = None
        self.range: FileRecords | None = None
        self.size_bytes = 0
        self.is_on_older_segment = False
        self.aborted: Sequence[tuple[int, int]] = ()


class ShareFetchReads:
    """The partitions of one ShareFetch, in the order in which they are served."""

    __slots__ = (
        "_context",
        "_copied_bytes",
        "_is_committed",
        "_partitions",
        "_request",
        "failed",
        "group_id",
        "is_large",
        "member_id",
        "shares",
        "sizes",
    )

    def __init__(
        self, context: Context, request: ShareFetchRequest, partitions: SharePartitions, group_id: str, member_id: str
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._request = request
        self.group_id = group_id
        self.member_id = member_id
        self._is_committed = context.broker.share_state.is_read_committed(group_id)
        self.shares: dict[TopicIdPartition, SharePartition] = {}
        # Partitions that cannot be read, and why.
        self.failed: dict[TopicIdPartition, KafkaError] = {}
        # The size of the records in each partition of the response.
        self.sizes: dict[TopicIdPartition, int] = {}
        self._copied_bytes = 0
        # Whether the partitions are served in steps, on several turns of the loop.
        self.is_large = False

    def find(self, key: TopicIdPartition, topic: str) -> None:
        """Add a partition: to `shares`, or with its error to `failed`."""
        try:
            self.shares[key] = self._partitions.get((self.group_id, *key), topic)
        except KafkaError as error:
            self.failed[key] = error.without_frames()

    def find_all(self, wanted: Iterable[CachedSharePartition]) -> Steps[None]:
        """Add partitions, in steps."""
        for number, one in enumerate(wanted, 1):
            assert one.topic is not None
            self.find(one.key, one.topic)
            if number % PARTITIONS_PER_STEP == 0:
                yield

    def refresh(self) -> Steps[bool]:
        """Look again for share partitions whose state was not read yet. Returns whether some still wait for the share
        coordinator. As in Kafka one that was fenced meanwhile, for example with its topic, stays: the response comes
        in its time and says nothing of it."""
        waits = False
        for number, (key, share) in enumerate(list(self.shares.items()), 1):
            if number % PARTITIONS_PER_STEP == 0:
                yield
            if share.state is PartitionState.EMPTY:
                del self.shares[key]
                self.find(key, share.log.topic)
                found = self.shares.get(key)
                waits = waits or (found is not None and found.state is PartitionState.EMPTY)
        return waits

    def try_answer(self, *, is_last: bool) -> Steps[dict[TopicIdPartition, PartitionData] | None]:
        """Returns the response's partitions if there is enough for it, or if this is the last attempt; else None, and
        nothing was acquired. Of very many partitions each is read again in the step that acquires its records: other
        members, retention and deletions may have come in between."""
        ready = {key: share for key, share in self.shares.items() if share.can_acquire()}
        # Kafka reads those first whose place in the log it does not know yet, and serves them last.
        known = {key: share for key, share in ready.items() if share.position_offset == share.next_fetch_offset()}
        reads = yield from self._read_all(known, len(ready))
        found = yield from self._read_all({key: share for key, share in ready.items() if key not in known}, len(ready))
        for key, one in found.items():
            if one.error is None:
                ready[key].position_offset = one.offset
        reads |= found
        if not self._is_enough(reads):
            if not is_last:
                return None
            reads = yield from self._read_all(ready, len(ready))
        answers: dict[TopicIdPartition, PartitionData] = {}
        count = 0
        for number, key in enumerate(reads, 1):
            answer = PartitionData(partition_index=key[1], records=b"")
            if number % PARTITIONS_PER_STEP == 0:
                yield
            one = reads[key]
            try:
                if self.is_large:
                    if not ready[key].can_acquire():
                        answers[key] = answer
                        continue
                    one = self._read(ready[key], one.max_bytes, at_least_one=one.at_least_one)
                count += self._fill(answer, key, one, count)
            except KafkaError as raised:
                self.failed[key] = raised.without_frames()
                self._partitions.check((self.group_id, *key), raised)
                continue
            answers[key] = answer
        for key, error in self.failed.items():
            answers[key] = PartitionData(partition_index=key[1], error_code=error.code, records=b"")
        for key, share in ready.items():
            offset = share.acquirable_offset() if answers[key].acquired_records else None
            if offset is not None and offset < share.log.log_end_offset:
                share.wake()  # others may get the rest
        return answers

    def _limit_bytes(self) -> int:
        return max(min(self._request.max_bytes, self._context.broker.config.fetch_max_bytes), 0)

    def _is_enough(self, reads: dict[TopicIdPartition, PartitionRead]) -> bool:
        if not reads:
            return bool(self.failed) and not self.shares
        if any(one.error is not None or one.is_on_older_segment for one in reads.values()):
            return True
        min_bytes = min(self._request.min_bytes, self._limit_bytes())
        return sum(one.size_bytes for one in reads.values()) >= min_bytes

    # --- one partition

    def _read_all(
        self, shares: Mapping[TopicIdPartition, SharePartition], count: int
    ) -> Steps[dict[TopicIdPartition, PartitionRead]]:
        """Read these of `count` partitions, each up to its part of the bytes. The first batch is whole, and leaves less
        for the others (Kafka: ReplicaManager.readFromLog)."""
        reads: dict[TopicIdPartition, PartitionRead] = {}
        left_bytes = self._limit_bytes()
        max_bytes = left_bytes // (count or 1) or 1
        at_least_one = True
        for number, (key, share) in enumerate(shares.items(), 1):
            reads[key] = one = self._read(share, min(max_bytes, left_bytes), at_least_one=at_least_one)
            left_bytes = max(0, left_bytes - one.size_bytes)
            at_least_one = at_least_one and not one.size_bytes
            if number % PARTITIONS_PER_STEP == 0:
                yield
        return reads

    def _read(self, share: SharePartition, max_bytes: int, *, at_least_one: bool) -> PartitionRead:
        one = PartitionRead(share.next_fetch_offset(), max_bytes, at_least_one=at_least_one)
        try:
            fetched = share.log.read(
                one.offset,
                max_bytes,
                isolation_level=1 if self._is_committed else 0,
                at_least_one=at_least_one,
                copy_bytes=-1,
            )
        except KafkaError as error:
            one.error = error.without_frames()
            return one
        for found in fetched.records:
            assert isinstance(found, FileRecords)
            one.range = found
            one.is_on_older_segment = found.segment is not share.log.active
        one.size_bytes = fetched.size_bytes
        one.aborted = fetched.aborted or ()
        return one

    def _fill(self, answer: PartitionData, key: TopicIdPartition, one: PartitionRead, count: int) -> int:
        """Acquire records and put them into the response. Returns how many. Raises KafkaError."""
        share = self.shares[key]
        if one.error is not None:
            if one.error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise one.error
            share.raise_start_offset(share.log.earliest().offset)
            return 0
        found = one.range
        limits = AcquireLimits(
            self._request.max_records - count,
            self._request.batch_size,
            self._request.share_acquire_mode == RECORD_LIMIT,
        )
        if found is None or limits.max_records <= 0:
            return 0
        # What can fail comes before the first lock. As from Kafka, what is too large for memory is read as the response
        # is sent; if that fails, the connection closes, and with it the session that holds the locks.
        try:
            batches = _batches(share, found, limits.max_records)
            aborted = self._aborted(found.segment, batches, one.aborted)
            copy = self._copy(share, found.segment, batches)
        except OSError as err:
            raise share.log.fail(err) from err
        except BatchError as err:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{share.log.name}: {err}") from err
        acquired = acquire(share, self.member_id, batches, one.offset, limits)
        if aborted and acquired:
            from kafka_shim.share.share_partition_aborted import archive_aborted

            acquired = archive_aborted(share, acquired, aborted)
        if not acquired:
            return 0
        answer.acquired_records = acquired
        overlapping = [
            batch
            for batch in batches
            if batch.last_offset >= acquired[0].first_offset and batch.base_offset <= acquired[-1].last_offset
        ]
        if overlapping:
            position = overlapping[0].position
            size_bytes = overlapping[-1].position + overlapping[-1].size_bytes - position
            self.sizes[key] = size_bytes
            stored: list[Any]
            if copy is None:
                stored = [FileRecords(found.segment, position, size_bytes)]
            else:
                start = position - batches[0].position
                stored = [copy[start : start + size_bytes]]
                self._copied_bytes += size_bytes
            answer.records = stored
        return sum(part.last_offset - part.first_offset + 1 for part in acquired)

    @staticmethod
    def _aborted(segment: Segment, batches: list[Batch], aborted: Sequence[tuple[int, int]]) -> list[Batch]:
        """Returns the batches of aborted transactions. Raises OSError, BatchError."""
        if not aborted:
            return []
        from kafka_shim.share.share_partition_aborted import aborted_batches

        return aborted_batches(batches, aborted, lambda batch: segment.read(batch.position, batch.size_bytes))

    def _copy(self, share: SharePartition, segment: Segment, batches: list[Batch]) -> bytes | None:
        """Returns the stored batches, or None if they are too large to be copied into the response. Raises OSError."""
        faults = self._context.broker.faults
        if faults.armed:
            faults.reach("share.before_read", topic=share.log.topic, partition=share.log.partition)
        if not batches:
            return None
        position = batches[0].position
        size_bytes = batches[-1].position + batches[-1].size_bytes - position
        if self._copied_bytes + size_bytes > COPY_BYTES:
            return None
        return FileRecords(segment, position, size_bytes).read(0, size_bytes)


def _batches(share: SharePartition, found: FileRecords, max_records: int) -> list[Batch]:
    """Returns the stored batches of the range, without a last one that is cut, and without those behind what can be
    acquired."""
    batches: list[Batch] = []
    for batch in Walk(found.segment.fd, found.position, found.position + found.size_bytes, check_crc=False):
        batches.append(batch)
        if batch.last_offset >= max(share.end_offset + 1, batches[0].base_offset) + max_records:
            break
    return batches
