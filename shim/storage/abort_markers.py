"""The write of a marker that aborts a transaction (Kafka: LocalLog.append and LogSegment.updateTxnIndex, which index
after the write)."""

from __future__ import annotations

import errno

from kafka_shim.storage import validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.local_log import LocalLog
    from kafka_shim.storage.segments import Segment
    from kafka_shim.storage.txn_index import Aborted


def add_aborted(log: LocalLog, aborted: Aborted, size_bytes: int, now_ms: int) -> Segment:
    """Add an aborted transaction to the index of the active segment, in which the caller then writes its marker of
    `size_bytes`; if that fails, it has the entry taken back. Raises KAFKA_STORAGE_ERROR, and RECORD_LIST_TOO_LARGE for
    a marker above `segment.bytes`.

    In this order a full disk refuses the marker and changes nothing, and no reader finds a marker without its entry.
    An entry whose marker a crash prevented is gone with the next start, which rebuilds the active segment."""
    if size_bytes > log.config.segment_bytes:  # no segment is new enough for it
        raise validation.above_segment(log.name, size_bytes, log.config)
    try:
        return _add(log, aborted, size_bytes, now_ms)
    except OSError as err:
        raise log.fail(err) from err
    except ValueError as err:
        raise log.fail(OSError(errno.EIO, f"the aborted transaction cannot be indexed: {err}")) from err


def _add(log: LocalLog, aborted: Aborted, size_bytes: int, now_ms: int) -> Segment:
    segment = log.active
    if segment.is_full(size_bytes, now_ms, log.log_end_offset, log.config, now_ms):
        segment = log.roll(now_ms)
    segment.txn_index.append(*aborted)
    return segment


def take_back_aborted(log: LocalLog, segment: Segment) -> None:
    """Take back the entry of a marker that could not be written."""
    if not log.is_offline:  # else the reopening rebuilds the index
        try:
            segment.txn_index.take_back()
        except OSError as err:
            log.fail(err, torn=True)
