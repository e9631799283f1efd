"""One partition's log: append, read, look up, truncate. The recipe of an append is `append_as_leader`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shim.storage.results import Appended, Buffer, Fetched, FoundOffset, ProducerStatus

if TYPE_CHECKING:
    from shim.config import TopicConfig
    from shim.storage.verification import Verification


class PartitionLog:
    """One partition: segments, indexes, producer state. Owned by `Logs`; event-loop thread only; closed by `Logs`.

    Offsets are exclusive where named ``end`` or ``next``. There are no followers, so high_watermark == log_end_offset.
    """

    topic: str
    topic_id: bytes
    partition: int
    path: Path
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    config: TopicConfig
    size_bytes: int

    # --- append

    def append_as_leader(
        self, records: Buffer, *, now_ms: int, version: int, verification: Verification | None = None
    ) -> Appended:
        """Append one batch of a client, whole or not at all; `records` is a Produce request's field, which is not
        changed (it is stamped in place only when it is writable and valid). `version` is the Produce version.

        Raises KafkaError with the code of A3-A10, B9; a `RecordsError` names the bad records."""
        raise NotImplementedError

    def append_batch(
        self, batch: bytearray, *, now_ms: int, verification: Verification | None = None
    ) -> Appended:
        """Append one batch that the broker built itself (offsets, members, transactions, metadata); stamps in place."""
        raise NotImplementedError

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
        now_ms: int,
    ) -> int:
        """Append a transaction marker and answer its offset. Raises INVALID_PRODUCER_EPOCH or
        TRANSACTION_COORDINATOR_FENCED by the rules of B11."""
        raise NotImplementedError

    # --- transactions

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether this producer's transaction at this epoch has data or markers pending here: no verification needed."""
        raise NotImplementedError

    def start_verification(
        self, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> Verification | None:
        """The guard of B9 to hand to `append_as_leader`, or None when the transaction is open here already."""
        raise NotImplementedError

    def producer_statuses(self) -> list[ProducerStatus]:
        """All producers with state, for DescribeProducers."""
        raise NotImplementedError

    # --- read

    def read(
        self, fetch_offset: int, max_bytes: int, *, isolation_level: int = 0, at_least_one: bool = True
    ) -> Fetched:
        """Stored batches from the one that holds `fetch_offset`. Raises OFFSET_OUT_OF_RANGE outside
        [log_start_offset, log_end_offset]. With `at_least_one` the first batch comes whole even if over `max_bytes`."""
        raise NotImplementedError

    def offset_for_timestamp(self, timestamp_ms: int, isolation_level: int = 0) -> FoundOffset:
        """First record at or after `timestamp_ms`; nothing found below the bound of the isolation level: all -1."""
        raise NotImplementedError

    def earliest(self) -> FoundOffset:
        """The log start offset (ListOffsets -2; also -4, earliest local)."""
        raise NotImplementedError

    def latest(self, isolation_level: int = 0) -> FoundOffset:
        """High watermark or last stable offset (ListOffsets -1)."""
        raise NotImplementedError

    def max_timestamp(self, isolation_level: int = 0) -> FoundOffset:
        """The record with the highest timestamp (ListOffsets -3)."""
        raise NotImplementedError

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(leader_epoch, end_offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        raise NotImplementedError

    def batches(self, start_offset: int | None = None) -> Any:
        """Iterate (buffer, Batch) of all stored batches from `start_offset` (default: log start); for replay."""
        raise NotImplementedError

    # --- change

    def delete_records_before(self, offset: int) -> int:
        """DeleteRecords: raise the log start offset (-1: to the high watermark); answers the new one. Raises
        OFFSET_OUT_OF_RANGE, POLICY_VIOLATION as Kafka does."""
        raise NotImplementedError

    def flush(self) -> None:
        """fsync everything up to the end, here and now (clean stop, the metadata log). Blocks."""
        raise NotImplementedError

    # --- waiting readers

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback()` after every append, marker, raised start offset and deletion until unsubscribed."""
        raise NotImplementedError

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """The opposite of `subscribe`; not subscribed is no error."""
        raise NotImplementedError
