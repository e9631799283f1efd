"""Result and error types of a partition log. They are plain values without behaviour."""

from __future__ import annotations

import errno
import os

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Buffer = bytes | bytearray | memoryview

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

# What a coordinator answers where its log refused the records (Kafka: TransactionStateManager.appendTransactionToLog,
# and the same of groups): most have the client look up the coordinator again.
COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Fetched:
    """The result of one read.

    ``records`` is a list of buffers, which together are batches, of which the last may be cut. The first batch
    contains the fetch offset and is whole. The list is empty if there is nothing to read. The buffers stay valid after
    a roll, a deletion or a compaction.
    ``aborted`` is None for read_uncommitted, and where the first batch does not fit, else the list of (producer_id,
    first_offset) of aborted transactions in the order of their markers (B14).
    ``withheld_bytes`` is what the segment has to read if the first batch does not fit, else 0.
    """

    __slots__ = (
        "aborted",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "records",
        "size_bytes",
        "withheld_bytes",
    )

    def __init__(
        self,
        records: list[Any],
        size_bytes: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        aborted: list[tuple[int, int]] | None,
    ) -> None:
        self.records = records
        self.size_bytes = size_bytes
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted
        self.withheld_bytes = 0


class FoundOffset:
    """The result of an offset lookup. Offset, timestamp and leader epoch are -1 if nothing was found."""

    __slots__ = ("leader_epoch", "offset", "timestamp_ms")

    def __init__(self, timestamp_ms: int, offset: int, leader_epoch: int) -> None:
        self.timestamp_ms = timestamp_ms
        self.offset = offset
        self.leader_epoch = leader_epoch


class ProducerStatus:
    """One active producer of a partition, as DescribeProducers returns it. A field without a value is -1."""

    __slots__ = (
        "coordinator_epoch",
        "current_txn_start_offset",
        "last_sequence",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        last_sequence: int,
        last_timestamp_ms: int,
        coordinator_epoch: int,
        current_txn_start_offset: int,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp_ms = last_timestamp_ms
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class RecordsError(KafkaError):
    """A batch rejected because of some of its records. `record_errors` are (batch index, message), sent in Produce v8
    and above."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class NotOneBatchError(KafkaError):
    """The bytes are not exactly one batch of magic 2. Kafka rejects them before it accesses the log."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


def what_to_do(error: OSError) -> str:
    """Return what an operator can do about a data directory that raised this error: "; ..." or nothing."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"; let user {os.geteuid()} write there, or name another with --data-dir or log.dirs"
    if error.errno == errno.EROFS:
        return "; its file system is mounted read-only: name another with --data-dir or log.dirs"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "; free some space there, or name another with --data-dir or log.dirs"
    if error.errno in (errno.ENOTDIR, errno.ENOENT):
        return "; name a folder with --data-dir or log.dirs"
    return ""


class StorageError(Exception):
    """A data directory cannot be used. The message is a sentence for the operator."""
