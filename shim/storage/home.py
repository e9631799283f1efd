"""What all partitions of a broker share: clock, configuration, faults, open files, the flusher, hooks."""

from __future__ import annotations

from collections.abc import Callable

from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.open_files import OpenFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock, Timer
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.log import PartitionLog

MarkerHook = Callable[["PartitionLog", int, int, bool, int], None]


class Home:
    """Made by `Logs` (or a test) and handed to every `PartitionLog`. Event-loop thread only."""

    __slots__ = (
        "_removals",
        "clock",
        "config",
        "faults",
        "files",
        "flush_wanted",
        "flush_wished",
        "flusher",
        "offline",
        "on_marker",
        "reopen_wanted",
        "start_offset_raised",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        self.config = config
        self.clock = clock
        self.faults = faults
        self.files = OpenFiles()
        self.flusher = Flusher(faults, clock)
        # (log, producer_id, producer_epoch, commit, offset) after each transaction marker
        self.on_marker: list[MarkerHook] = []
        self.offline: set[PartitionLog] = set()
        # Called when a partition joins them: somebody has to try it again.
        self.reopen_wanted: Callable[[], None] = nothing
        # Partitions with `flush.ms` set and something unflushed.
        self.flush_wanted: set[PartitionLog] = set()
        # Called when a partition joins them: only then somebody has to look.
        self.flush_wished: Callable[[], None] = nothing
        # Removals of deleted files that wait for `file.delete.delay.ms`.
        self._removals: dict[Callable[[], None], Timer] = {}
        # Called when DeleteRecords raised a start offset, so that it is written down.
        self.start_offset_raised: Callable[[PartitionLog], None] = _nothing

    def later(self, delay_ms: int, removal: Callable[[], None]) -> None:
        """Run `removal` in the flusher's thread when `delay_ms` have passed."""

        def due() -> None:
            del self._removals[removal]
            self.flusher.run(removal)

        self._removals[removal] = self.clock.call_later(delay_ms, due)

    def cancel_removals(self) -> None:
        """A stop: files that still wait are left, the next start removes them."""
        for timer in self._removals.values():
            timer.cancel()
        self._removals.clear()

    def wish_flush(self, log: PartitionLog) -> None:
        """`log` has `flush.ms` set and something unflushed."""
        self.flush_wanted.add(log)
        self.flush_wished()

    def went_offline(self, log: PartitionLog) -> None:
        """`log` met an I/O error: its directory gets no clean-shutdown mark."""
        self.offline.add(log)
        self.flush_wanted.discard(log)
        self.reopen_wanted()


def _nothing(log: PartitionLog) -> None:
    pass


def nothing() -> None:
    """Nobody waits to be called."""
