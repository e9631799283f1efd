"""The groups of each partition of `__consumer_offsets`, read from its log on the first question or after the start.

So start-up does not pay for them, and members that never come back still end on time. Source: ADR 0030.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from shim.clock import Clock, Timer
    from shim.group.groups import Groups
    from shim.storage.logs import Logs

# Reading what is stored begins this long after the start, a step of a partition at a time.
LOAD_DELAY_MS = 100


class Stored:
    """Owned by the coordinator, whose `resume` is called once for each partition that had something to read."""

    def __init__(self, clock: Clock, logs: Logs, topic: str, resume: Callable[[int, Groups], None]) -> None:
        # For the life of the broker.
        self._clock = clock
        self._logs = logs
        self._topic = topic
        self._resume = resume
        self._timer: Timer | None = None
        # What has been read, and what is being read in the background.
        self.by_partition: dict[int, Groups] = {}
        self.reading: dict[int, Generator[None, None, Groups]] = {}

    def groups(self, partition: int) -> Groups:
        """The groups of a partition; what is not read yet is read now."""
        found = self.by_partition.get(partition)
        while found is None:
            self._read_on(partition)
            found = self.by_partition.get(partition)
        return found

    def is_begun(self, partition: int) -> bool:
        """Whether a partition has been read, at least in part."""
        return partition in self.by_partition or partition in self.reading

    def start(self, count: Callable[[], int]) -> None:
        """Read everything, `count` partitions, in the background."""
        self._timer = self._clock.call_later(LOAD_DELAY_MS, self._read_next, count)

    def stop(self) -> None:
        """No more reading in the background."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget(self) -> None:
        """The topic is gone."""
        self.by_partition.clear()
        self.reading.clear()

    def _read_next(self, count: Callable[[], int]) -> None:
        self._timer = None
        for partition in range(count()):
            if partition not in self.by_partition:
                self._read_on(partition)
                self._timer = self._clock.call_later(1, self._read_next, count)
                return

    def _read_on(self, partition: int) -> None:
        """One step."""
        from shim.group.groups import Groups

        log = self._logs.find(self._topic, partition)
        if log is None or log.log_end_offset == log.log_start_offset:
            self.by_partition[partition] = Groups()
            return
        reading = self.reading.pop(partition, None)
        if reading is None:
            from shim.group.replay import replay

            reading = replay(log)
        try:
            next(reading)
        except StopIteration as done:
            self.by_partition[partition] = done.value
            self._resume(partition, done.value)
        else:
            self.reading[partition] = reading
