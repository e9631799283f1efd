"""The services that all partitions of a broker share: clock, configuration, faults, open files, flusher, hooks.

Kafka passes them to each UnifiedLog one by one (Scheduler, Time, LogDirFailureChannel).
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable
from functools import lru_cache

from kafka_shim.cext.records import build_marker
from kafka_shim.line_limit import LineLimit
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.open_files import OpenFiles
from kafka_shim.storage.producers import Marker
from kafka_shim.storage.removals import Removals
from kafka_shim.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.local_log import LocalLog
    from kafka_shim.storage.log import PartitionLog

logger = logging.getLogger(__name__)

MarkerHook = Callable[["PartitionLog", int, int, bool, int], None]
# A log start offset and the leader epochs from there on.
LogStart = tuple[int, list[tuple[int, int]]]

# Threads that wait for a disk at a time.
MOST_WORKERS = 8


class LogServices:
    """The shared services. `Logs` (or a test) creates one and passes it to every `PartitionLog`. Event-loop thread
    only."""

    __slots__ = (
        "clock",
        "config",
        "faults",
        "files",
        "flush_wanted",
        "flush_wished",
        "flusher",
        "has_lost_wishes",
        "is_given_up",
        "marker_of",
        "offline",
        "on_marker",
        "refusals",
        "removals",
        "reopen_wanted",
        "start_offset_raised",
        "workers",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        self.config = config
        self.clock = clock
        self.faults = faults
        self.files = OpenFiles()
        self.flusher = Flusher(faults, clock)
        # For what waits for a disk, or for HTTP.
        self.workers = Workers(clock, "kafka-shim-worker", MOST_WORKERS)
        # Whether the start was given up. A signal handler or another thread sets it: the loop waits for the recovery.
        self.is_given_up = False
        # Called with (log, producer_id, producer_epoch, commit, offset) after each transaction marker in a partition of
        # the topic; None: of any.
        self.on_marker: list[tuple[str | None, MarkerHook]] = []
        # Makes a marker and its batch. The markers of one transaction differ only in what `stamp` writes, so they share
        # one: each is written before the next is stamped.
        self.marker_of = lru_cache(maxsize=1)(_marker)
        self.offline: set[LocalLog] = set()
        # Log lines about what the system refuses, mostly appends: a full disk refuses those of every request.
        self.refusals = LineLimit(logger, clock)
        # Called when a partition is added to `offline` or could not be loaded, to schedule the next attempt.
        self.reopen_wanted: Callable[[], None] = nothing
        # Partitions that have `flush.ms` set and unflushed data.
        self.flush_wanted: set[LocalLog] = set()
        # Called when a partition is added to `flush_wanted`, to start the periodic check.
        self.flush_wished: Callable[[], None] = nothing
        # Whether memory ended as a partition was to be added: a periodic look finds it.
        self.has_lost_wishes = False
        self.removals = Removals(clock, self.flusher)
        # Called with (log, its start before) when DeleteRecords raised a log start offset, to write the checkpoint.
        self.start_offset_raised: Callable[[PartitionLog, LogStart], None] = _nothing

    def go_on(self) -> None:
        """Raises CancelledError if the start was given up, in the middle of a long recovery."""
        if self.is_given_up:
            raise CancelledError

    def wish_flush(self, log: LocalLog) -> None:
        """Register a log that has `flush.ms` set and unflushed data."""
        self.flush_wanted.add(log)
        self.flush_wished()

    def went_offline(self, log: LocalLog) -> None:
        """Register a log that went offline after an I/O error. Its directory gets no clean-shutdown file."""
        self.offline.add(log)
        self.flush_wanted.discard(log)
        self.reopen_wanted()


def _marker(
    producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, now_ms: int
) -> tuple[Marker, bytearray]:
    marker = Marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
    return marker, build_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)


def _nothing(log: PartitionLog, before: LogStart) -> None:
    pass


def nothing() -> None:
    """The default callback, which does nothing."""
