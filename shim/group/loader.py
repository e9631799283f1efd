"""Kafka's CoordinatorLoader: reads the groups of each partition of `__consumer_offsets` when they are asked for.

Partitions without a request are read soon after the start, so that start-up does not pay for them and members that
never come back still end on time. A small partition is read at once; a large one in steps, one a turn of the loop, and
requests get COORDINATOR_LOAD_IN_PROGRESS meanwhile, as from Kafka. Source: ADR 0030.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from kafka_shim.clock import Clock, Timer
    from kafka_shim.group.groups import Groups
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.group")

# Reading in the background begins this long after the start, a step of a partition at a time.
LOAD_DELAY_MS = 100
# Nobody waits: leave the loop to others in between.
STEP_DELAY_MS = 1
# Somebody waits: the next turn of the loop, whatever the clock.
AT_ONCE_MS = 0
# What one question may read before its answer: some 5,000 offsets, 10 ms.
READ_AT_ONCE_BYTES = 1 << 19


class CoordinatorLoader:
    """Owned by the coordinator, whose `resume` runs in steps once a partition has been read."""

    def __init__(
        self, clock: Clock, logs: Logs, topic: str, resume: Callable[[int, Groups], Generator[None, None, None]]
    ) -> None:
        # For the life of the broker.
        self._clock = clock
        self._logs = logs
        self._topic = topic
        self._resume = resume
        self._timer: Timer | None = None
        # Called after each step in the background, whose objects mostly stay.
        self.after_step: Callable[[], object] | None = None
        # What has been read.
        self.by_partition: dict[int, Groups] = {}
        # What is being read, and what waits for it: markers, deleted topics.
        self.reading: dict[int, Generator[None, None, None]] = {}
        self._afterwards: dict[int, list[Callable[[Groups], object]]] = {}
        # Left for the background.
        self._unread: list[int] = []

    # --- questions

    def groups(self, partition: int) -> Groups:
        """The groups of a partition. Raises COORDINATOR_LOAD_IN_PROGRESS while a large one is being read, and
        NOT_COORDINATOR when it is offline or cannot be read now: "no offset" would send its readers back to the
        beginning."""
        found = self.by_partition.get(partition)
        if found is not None:
            return found
        if partition not in self.reading:
            try:
                log = self._log(partition)
                if log is None or log.size_bytes <= READ_AT_ONCE_BYTES:
                    return self._read_whole(partition, log)
            except OSError as error:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self._topic}-{partition}: {error}") from error
            self._begin(partition, log)
        self._wake(AT_ONCE_MS)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic}-{partition} is being read")

    def all_groups(self, partitions: Iterable[int]) -> list[Groups]:
        """Those of all these partitions that are not offline. Raises COORDINATOR_LOAD_IN_PROGRESS while much is left to
        read."""
        unread = [one for one in partitions if one not in self.by_partition and not self._is_offline(one)]
        logs = [self._log(partition) for partition in unread]
        if sum(0 if log is None else log.size_bytes for log in logs) > READ_AT_ONCE_BYTES:
            self._unread = unread
            self._wake(AT_ONCE_MS)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic} is being read")
        return [self.groups(one) for one in partitions if one in self.by_partition or one in unread]

    def when_read(self, partition: int, change: Callable[[Groups], object]) -> None:
        """Run `change` on a partition's groups: now if they are read, else as soon as they are."""
        found = self.by_partition.get(partition)
        if found is not None:
            change(found)
        else:
            self._afterwards.setdefault(partition, []).append(change)

    # --- life

    def start(self, count: int) -> None:
        """Read everything, `count` partitions, in the background."""
        self._unread = list(range(count))
        self._wake(LOAD_DELAY_MS)

    def stop(self) -> None:
        """No more reading in the background."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget(self) -> None:
        """The topic is gone."""
        self.stop()
        self.by_partition.clear()
        self.reading.clear()
        self._afterwards.clear()
        self._unread.clear()

    # --- reading

    def _is_offline(self, partition: int) -> bool:
        return self._logs.find(self._topic, partition) is None and self._logs.is_offline(self._topic, partition)

    def _log(self, partition: int) -> PartitionLog | None:
        """None when it holds nothing. Raises NOT_COORDINATOR when it is offline or cannot be loaded now."""
        try:
            log = self._logs.get(self._topic, partition)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error
        return None if log.log_end_offset == log.log_start_offset else log

    def _begin(self, partition: int, log: PartitionLog | None) -> None:
        self.reading[partition] = self._read(partition, log)

    def _read(self, partition: int, log: PartitionLog | None) -> Generator[None, None, None]:
        from kafka_shim.group.groups import Groups

        groups = Groups()
        if log is not None:
            from kafka_shim.group.replay import replay

            groups = yield from replay(log)
        self.by_partition[partition] = groups
        for change in self._afterwards.pop(partition, ()):
            change(groups)
        yield from self._resume(partition, groups)

    def _read_whole(self, partition: int, log: PartitionLog | None) -> Groups:
        for _ in self._read(partition, log):
            pass
        return self.by_partition[partition]

    def _wake(self, delay_ms: int) -> None:
        """Have the background take its next step after this time, or before."""
        if self._timer is not None:
            if delay_ms != AT_ONCE_MS:
                return
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_ms, self._step, delay_ms)

    def _step(self, delay_ms: int) -> None:
        """One step of what is being read; then of partitions without a request."""
        self._timer = None
        if not self.reading and not self._begin_next():
            return
        # What was asked for last is read first.
        partition = next(reversed(self.reading))
        try:
            is_over = next(self.reading[partition], self) is self
        except (OSError, KafkaError):
            logger.exception("cannot read %s-%d; the next question tries again", self._topic, partition)
            is_over = True
        if is_over:
            self.reading.pop(partition, None)
        if self.after_step is not None:
            self.after_step()
        self._wake(min(delay_ms, STEP_DELAY_MS))

    def _begin_next(self) -> bool:
        """Begin the next partition without a request; False if all are read."""
        while self._unread:
            partition = self._unread.pop(0)
            if partition not in self.by_partition and not self._is_offline(partition):
                try:
                    self._begin(partition, self._log(partition))
                except KafkaError as error:
                    logger.warning(
                        "cannot read %s-%d; the next question tries again: %s", self._topic, partition, error
                    )
                    continue
                return True
        return False
