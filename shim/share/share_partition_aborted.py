"""Records of aborted transactions, which no member of a read_committed share group gets (Kafka:
SharePartition.filterAbortedTransactionalAcquiredRecords)."""

from __future__ import annotations

from kafka_shim.cext.records import iterate, parse_marker
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.share_partition_acquire import acquired_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from kafka_shim.cext.batch import Batch
    from kafka_shim.protocol.messages.share_fetch_response import AcquiredRecords
    from kafka_shim.share.share_partition import SharePartition


def archive_aborted(
    share: SharePartition, acquired: list[AcquiredRecords], aborted: Sequence[Batch]
) -> list[AcquiredRecords]:
    """Archive the acquired records of these stored batches of aborted transactions. Returns what is left for the
    member."""
    for batch in aborted:
        at = max(share.floor(batch.base_offset), 0)
        known = share.batches[at : share.floor(batch.last_offset) + 1]
        count = share.archive(batch.base_offset, batch.last_offset + 1, known, RecordState.ACQUIRED)
        share.delivery_complete_count += count
        acquired = without(acquired, batch.base_offset, batch.last_offset)
    # Nobody acknowledges these. Without this step a window full of aborted records would never move.
    share.advance()
    return acquired


def aborted_batches(
    batches: Sequence[Batch], aborted: Sequence[tuple[int, int]], bytes_of: Callable[[Batch], Buffer]
) -> list[Batch]:
    """Returns the stored batches of aborted transactions, which are given as (producer id, first offset). Raises what
    `bytes_of` raises, and BatchError for an invalid transaction marker."""
    left = sorted(aborted, key=_first_offset, reverse=True)
    open_producers: set[int] = set()
    found: list[Batch] = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while left and left[-1][1] <= batch.last_offset:
            open_producers.add(left.pop()[0])
        if batch.is_control:
            if _is_abort(bytes_of(batch)):
                open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            found.append(batch)
    return found


def without(acquired: list[AcquiredRecords], first_offset: int, last_offset: int) -> list[AcquiredRecords]:
    """Returns the ranges without these offsets."""
    kept: list[AcquiredRecords] = []
    for one in acquired:
        if one.last_offset < first_offset or one.first_offset > last_offset:
            kept.append(one)
            continue
        if one.first_offset < first_offset:
            kept.append(acquired_records(one.first_offset, first_offset - 1, one.delivery_count))
        if one.last_offset > last_offset:
            kept.append(acquired_records(last_offset + 1, one.last_offset, one.delivery_count))
    return kept


def _is_abort(batch: Buffer) -> bool:
    record = next(iter(iterate(batch)), None)
    return record is not None and not parse_marker(record.key or b"", record.value or b"")[0]


def _first_offset(transaction: tuple[int, int]) -> int:
    return transaction[1]
