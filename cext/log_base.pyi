"""The end of a partition's log: nearly every batch, and nearly every commit marker, is appended in one pass.

The classes are the bases of `storage.local_log.LocalLog`, `storage.producers.Producers` and
`storage.producers.ProducerEntry`, which have all rules. A method here appends an ordinary batch as those do. If a rule
may have to decide, it returns without a change. `shim/tests/storage/test_plain_batches.py` compares answers, states and
files of both.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from typing_extensions import Buffer

class Appended:
    """The result of one append.

    ``duplicate`` is True if the batch repeats one of the producer's five cached batches. Then nothing was written, and
    the other fields are those of the original append. ``append_time_ms`` is -1 on a CreateTime topic, except for a
    duplicate (A4). ``flushed`` is None, or the future of an fsync that must complete before the response is sent
    (`flush.messages`)."""

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        append_time_ms: int,
        log_start_offset: int,
        duplicate: bool = False,
        size_bytes: int = 0,
        flushed: Future[None] | None = None,
    ) -> None: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def append_time_ms(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def duplicate(self) -> bool: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def flushed(self) -> Future[None] | None: ...

class Verification:
    """A pending verification for (partition, producer id) (KIP-890; B9; Kafka: VerificationGuard). It is compared by
    identity: if a marker arrives during the verification, the guard is removed and no longer matches. Made by
    `ProducersBase.verify`."""

    @property
    def producer_id(self) -> int: ...
    @property
    def lowest_sequence(self) -> int:
        """The lowest of the batches of the newest epoch that wait for the verification."""

    @property
    def producer_epoch(self) -> int: ...
    @property
    def supports_epoch_bump(self) -> bool: ...
    @property
    def created_ms(self) -> int: ...

class ProducerBase:
    """The fields of one producer id that an append reads and changes. `ProducerEntry` documents them."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int
    txn_first_offset: int
    batches: list[tuple[int, int, int, int, int]]

def encode_producers(entries: list[ProducerBase], header_bytes: int) -> bytearray:
    """Return room for a header, and then the entries of a producer snapshot (`storage.producer_snapshot`), 46 bytes
    each. Two hundred thousand take milliseconds."""

class ProducersBase:
    """The fields of a partition's producers that an append reads and changes. `Producers` documents them."""

    entries: dict[int, Any]
    next_offset: int
    _open: dict[int, int]
    _verifications: dict[int, Verification]

    def verify(
        self, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> Verification | None:
        """Return the verification guard of the producer, or None if its transaction is open at this epoch. An existing
        guard is shared and keeps the lowest sequence (B9). Raises INVALID_PRODUCER_EPOCH if the epoch is below the last
        one seen."""

    def _stale_epoch(self, epoch: int, entry: Any) -> Exception: ...

class EpochsBase:
    """The base of `storage.epochs.LeaderEpochs`."""

    latest: int
    """The newest epoch; -1: there is none."""

class LogBase:
    """The fields and methods of a partition that an append uses. `LocalLog` documents the fields.

    `append_data`, for C callers (`many_logs`, `plain_produce`), appends a client's batch. It returns None, and has
    changed nothing, unless all of this holds:

    - the partition is online; its limits are those of its configuration, which is a plain one (`_is_plain`) and lets no
      append wait (`_waits_for_disk`); the newest leader epoch has begun;
    - the batch is plain (`cext.records.scan_plain`), in writable memory, and its segment takes it
      (`SegmentBase.append_plain`);
    - the batch has no producer id; or a known one with this or an older epoch, and the next sequence number. If it
      opens a transaction, `verification` is the guard of that producer. If it belongs to no transaction, none is open.

    `put` writes, as in `SegmentBase.append_plain`. Its errors are raised; the state in memory is unchanged then.
    `cached_batches` is the number of batches that are kept of a producer."""

    key: tuple[str, int]
    """(topic, partition)"""
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    unflushed_since_ms: int
    appended_bytes: int
    appended_records: int
    fetched_bytes: int
    leader_epoch: int
    is_offline: bool
    is_closed: bool
    sync_error: OSError | None
    config: Any
    segments: list[Any]
    epochs: Any
    """An `EpochsBase`."""
    producers: Any
    _readers: Any
    _plain_of: object
    _is_plain: bool
    """Of `_plain_of`: clients' batches are stored as they come, with the producer's times."""
    _is_log_append_time: bool
    """Of `_plain_of`: batches have the time of their append, and say so, markers too."""
    _waits_for_disk: bool
    """Of `_plain_of`: an append may wait for an fsync."""
    _needs_keys: bool
    _most_message_bytes: int
    _before_max_ms: int
    _after_max_ms: int

    def put_own(
        self,
        put: Callable[[int, Sequence[Buffer]], int],
        batch: bytearray,
        now_ms: int,
        is_limited: bool,
        cached_batches: int,
    ) -> Appended | None:
        """Append a batch that the broker built if there is nothing else to do, else None as in `append_data`. Nothing
        else is to do if, beside what `append_data` asks of the partition and the segment (but for `_is_plain`: the
        broker's batches are stored as they are in any case), the bytes are one batch with
        the times of its records, within `max.message.bytes` if `is_limited`; and it has no producer, or is a part of a
        transaction of a known one of this or an older epoch. Errors are those of `put`, as in `append_data`."""

    def commit_plain(
        self,
        put: Callable[[int, Sequence[Buffer]], int],
        marker: bytearray,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> Appended | None:
        """Append a commit marker (of `build_marker`, with these fields) if there is nothing else to do, else None as in
        `append_data`. Nothing else is to do if, beside what `put_own` asks of the partition and the segment, the
        producer has a transaction open, no guard, and no newer epoch or coordinator epoch; under
        transaction version 2 its epoch is older. Errors are those of `put`, as in `append_data`."""

    def not_appended(self, base_offset: int, error: OSError | MemoryError) -> Exception: ...
    def _wake(self) -> None:
        """Call each of `_readers`. One that finds no memory hears of a later change, or of none: what has happened to
        the log has happened."""

    def want_flush(self) -> None: ...
