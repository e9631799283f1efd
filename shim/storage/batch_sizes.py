"""How records that need not be stored together are divided into batches that a topic takes (Kafka: the writes of a
CoordinatorRuntime that are not atomic)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# DefaultRecordBatch.RECORD_BATCH_OVERHEAD, DefaultRecord.MAX_RECORD_OVERHEAD
BATCH_OVERHEAD_BYTES, RECORD_OVERHEAD_BYTES = 61, 21


def divided(pairs: Sequence[tuple[bytes, bytes | None]], max_records: int, max_bytes: int) -> Iterator[slice]:
    """Yield the parts of (key, value) pairs, each with at most so many records, whose batch has at most `max_bytes`; a
    record that is larger than that is a part of its own."""
    start, size_bytes = 0, BATCH_OVERHEAD_BYTES
    for at, (key, value) in enumerate(pairs):
        own_bytes = RECORD_OVERHEAD_BYTES + len(key) + len(value or b"")
        if at > start and (at - start >= max_records or size_bytes + own_bytes > max_bytes):
            yield slice(start, at)
            start, size_bytes = at, BATCH_OVERHEAD_BYTES
        size_bytes += own_bytes
    if start < len(pairs):
        yield slice(start, len(pairs))
