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
    # Nobody acknowledges these. Without this step a window full of aborted records would never move.
    share.advance()
    return without(acquired, [(batch.base_offset, batch.last_offset) for batch in aborted])


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


def without(acquired: Sequence[AcquiredRecords], gone: Sequence[tuple[int, int]]) -> list[AcquiredRecords]:
    """Returns the ranges without these, which are (first offset, last offset). Both are in the order of offsets."""
    kept: list[AcquiredRecords] = []
    at = 0
    for one in acquired:
        first_offset = one.first_offset
        while at < len(gone) and gone[at][1] < first_offset:
            at += 1
        number = at
        while number < len(gone) and gone[number][0] <= one.last_offset:
            gone_first, gone_last = gone[number]
            if first_offset < gone_first:
                kept.append(acquired_records(first_offset, gone_first - 1, one.delivery_count))
            first_offset = gone_last + 1
            number += 1
        if first_offset <= one.last_offset:
            kept.append(acquired_records(first_offset, one.last_offset, one.delivery_count))
    return kept


def _is_abort(batch: Buffer) -> bool:
    record = next(iter(iterate(batch)), None)
    return record is not None and not parse_marker(record.key or b"", record.value or b"")[0]


def _first_offset(transaction: tuple[int, int]) -> int:
    return transaction[1]
