"""What all partitions of a broker share: clock, configuration, faults, open files, the flusher, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.open_files import OpenFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future

    from kafka_shim.clock import Clock, Timer
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.log import PartitionLog

MOST_OWED_FLUSHES = 64
T = TypeVar("T")
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
        "owed_flushes",
        "start_offset_raised",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        self.config = config
        self.clock = clock
        self.faults = faults
        self.files = OpenFiles()
        self.flusher = Flusher(faults)
        # (log, producer_id, producer_epoch, commit, offset) after each transaction marker
        self.on_marker: list[MarkerHook] = []
        self.offline: set[PartitionLog] = set()
        # Partitions with `flush.ms` set and something unflushed.
        self.flush_wanted: set[PartitionLog] = set()
        # Called when a partition joins them: only then somebody has to look.
        self.flush_wished: Callable[[], None] = nothing
        # What `flush.messages` demands for batches that the broker built itself: the request under way takes and awaits
        # it. A request that did not take its own in the turn of the loop that made it finds it taken by another.
        self.owed_flushes: list[Future[None]] = []
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

    def owe_flush(self, flushed: Future[None] | None) -> None:
        """The next answer must wait for it; None is nothing."""
        if flushed is None:
            return
        if len(self.owed_flushes) >= MOST_OWED_FLUSHES:  # by timers, while no request came
            self.owed_flushes = [flush for flush in self.owed_flushes if not flush.done()]
        self.owed_flushes.append(flushed)

    def take_owed(self) -> list[Future[None]]:
        """What is owed so far, for the caller alone."""
        owed, self.owed_flushes = self.owed_flushes, []
        return owed

    def owed_by(self, step: Callable[[], T]) -> tuple[T, list[Future[None]]]:
        """What `step` answers, and what is owed for it alone; what was owed before stays. What it raises it owes to
        whoever comes next."""
        before, self.owed_flushes = self.owed_flushes, []
        try:
            outcome = step()
        except BaseException:
            self.owed_flushes = before + self.owed_flushes
            raise
        owed, self.owed_flushes = self.owed_flushes, before
        return outcome, owed

    @staticmethod
    async def flushed(owed: list[Future[None]]) -> None:
        """Returns when what was owed is on the disk. Raises NOT_COORDINATOR when that fails: what was to be told is not
        certain, and the partition is offline."""
        from asyncio import wrap_future

        try:
            for flush in owed:
                await wrap_future(flush)
        except OSError as err:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"cannot be flushed: {err}") from err

    def went_offline(self, log: PartitionLog) -> None:
        """`log` met an I/O error: its directory gets no clean-shutdown mark."""
        self.offline.add(log)
        self.flush_wanted.discard(log)


def _nothing(log: PartitionLog) -> None:
    pass


def nothing() -> None:
    """Nobody waits to be called."""
