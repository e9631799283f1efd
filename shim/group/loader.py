"""Loads the groups of each partition of `__consumer_offsets` on demand (Kafka's CoordinatorLoader).

Partitions without a request are loaded soon after start-up, so that start-up does not pay for them and the sessions of
members that do not return still expire. A small partition is loaded at once. A large one is loaded in steps, one per
turn of the loop, and requests meanwhile get COORDINATOR_LOAD_IN_PROGRESS, as from Kafka. Source: ADR 0030.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.scheduler import take_one
from kafka_shim.storage.coordinator_logs import find_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from kafka_shim.clock import Clock, Timer
    from kafka_shim.group.groups import Groups
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.group")

# Background loading begins this long after start-up, one step of a partition at a time.
LOAD_DELAY_MS = 100
# No request waits: leave time for other work between the steps.
STEP_DELAY_MS = 1
# A request waits: use the next turn of the loop, whatever the clock.
AT_ONCE_MS = 0
# The number of bytes that one request may load before its response: some 5,000 offsets, 10 ms.
READ_AT_ONCE_BYTES = 1 << 19


class CoordinatorLoader:
    """Owned by the coordinator, whose `resume` runs in steps after a partition was loaded."""

    def __init__(
        self, clock: Clock, logs: Logs, topic: str, resume: Callable[[int, Groups], Generator[None, None, None]]
    ) -> None:
        # Constant for the life of the broker.
        self._clock = clock
        self._logs = logs
        self._topic = topic
        self._resume = resume
        self._timer: Timer | None = None
        # Called after each background step, because most objects of that step stay alive.
        self.after_step: Callable[[], object] | None = None
        # Called with a partition whose groups are dropped, because they are no longer what the log says.
        self.on_dropped: Callable[[int], object] | None = None
        # Each runs in steps with what was read, before anybody is served from it.
        self.on_read: list[Callable[[int, Groups], Generator[None, None, None]]] = []
        # The loaded partitions.
        self.by_partition: dict[int, Groups] = {}
        # The partitions that are being loaded, and the changes that wait for them: markers, deleted topics.
        self.reading: dict[int, Generator[None, None, None]] = {}
        self._afterwards: dict[int, list[Callable[[Groups], object]]] = {}
        # Partitions that are left for the background.
        self._unread: list[int] = []

    # --- questions

    def groups(self, partition: int) -> Groups:
        """Returns the groups of a partition. Raises COORDINATOR_LOAD_IN_PROGRESS while a large one is being loaded, and
        NOT_COORDINATOR if it does not exist, is offline or cannot be loaded now: the response "no offset" would send
        consumers back to the beginning."""
        found = self.by_partition.get(partition)
        if found is not None:
            if found.is_current:
                return found
            self._drop(partition)
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
        """Returns the groups of all these partitions, except offline ones. Raises COORDINATOR_LOAD_IN_PROGRESS while
        more than READ_AT_ONCE_BYTES are left to load."""
        unread = [one for one in partitions if self.current(one) is None and not self._is_offline(one)]
        logs = [self._log(partition) for partition in unread]
        if sum(0 if log is None else log.size_bytes for log in logs) > READ_AT_ONCE_BYTES:
            self._unread = unread
            self._wake(AT_ONCE_MS)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic} is being read")
        return [self.groups(one) for one in partitions if one in self.by_partition or one in unread]

    def when_read(self, partition: int, change: Callable[[Groups], object]) -> None:
        """Run `change` on a partition's groups: now if they are loaded, or if there are none, else after the load."""
        found = self.current(partition)
        if found is not None:
            change(found)
        elif self._is_empty(partition):
            from kafka_shim.group.groups import Groups

            change(Groups())  # nobody may ever ask for its groups: kept for then, changes would be kept for ever
        else:
            self._afterwards.setdefault(partition, []).append(change)

    def current(self, partition: int) -> Groups | None:
        """Returns the groups of a partition if they are loaded and what the log says."""
        found = self.by_partition.get(partition)
        if found is None or found.is_current:
            return found
        self._drop(partition)
        return None

    def _drop(self, partition: int) -> None:
        logger.warning("%s-%d: its records were applied in part, reading it again", self._topic, partition)
        if self.on_dropped is not None:
            self.on_dropped(partition)
        del self.by_partition[partition]

    # --- life

    def start(self, count: int) -> None:
        """Load all `count` partitions in the background."""
        self._unread = list(range(count))
        self._wake(LOAD_DELAY_MS)

    def stop(self) -> None:
        """Stop background loading."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def recover(self) -> None:
        """Go on with what the background has left, if memory ended when its next step was set. Called periodically."""
        if self._timer is None and (self.reading or self._unread):
            self._wake(STEP_DELAY_MS)

    def forget(self) -> None:
        """Discard all groups: the topic was deleted."""
        self.stop()
        self.by_partition.clear()
        self.reading.clear()
        self._afterwards.clear()
        self._unread.clear()

    # --- reading

    def _is_offline(self, partition: int) -> bool:
        return self._logs.find(self._topic, partition) is None and self._logs.is_offline(self._topic, partition)

    def _is_empty(self, partition: int) -> bool:
        """Returns whether it is known without a look at the disk that nothing was ever written."""
        key, partitions = (self._topic, partition), self._logs.partitions
        log = partitions.loaded.get(key)
        if log is None:
            return key in partitions.to_create
        return not log.is_offline and log.log_end_offset == log.log_start_offset

    def _log(self, partition: int) -> PartitionLog | None:
        return find_records(self._logs, self._topic, partition)

    def _begin(self, partition: int, log: PartitionLog | None) -> None:
        self.reading[partition] = self._read(partition, log)

    def _read(self, partition: int, log: PartitionLog | None) -> Generator[None, None, None]:
        from kafka_shim.group.groups import Groups

        groups = Groups()
        if log is not None:
            from kafka_shim.group.replay import replay

            groups = yield from replay(log)
            for look in self.on_read:
                yield from look(partition, groups)
        self.by_partition[partition] = groups
        try:
            for change in self._afterwards.get(partition, ()):
                change(groups)
            self._afterwards.pop(partition, None)
            yield from self._resume(partition, groups)
        except MemoryError:
            groups.is_current = False
            raise

    def _read_whole(self, partition: int, log: PartitionLog | None) -> Groups:
        for _ in self._read(partition, log):
            pass
        return self.by_partition[partition]

    def _wake(self, delay_ms: int) -> None:
        """Schedule the next background step after this time, or earlier."""
        if self._timer is not None:
            if delay_ms != AT_ONCE_MS:
                return
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_ms, self._step, delay_ms)

    def _step(self, delay_ms: int) -> None:
        """Take one step: of a partition that is being loaded, else of one without a request."""
        self._timer = None
        if not self.reading and not self._begin_next():
            return
        # The partition requested last is loaded first.
        partition = next(reversed(self.reading))
        try:
            is_over = not take_one(self.reading[partition])
        except (OSError, KafkaError):
            logger.exception("cannot read %s-%d; the next question tries again", self._topic, partition)
            is_over = True
        except MemoryError:
            del self.reading[partition]
            self._unread.append(partition)
            logger.exception("cannot read %s-%d; it is tried again", self._topic, partition)
            return  # `recover` or the next question goes on
        if is_over:
            self.reading.pop(partition, None)
        if self.after_step is not None:
            self.after_step()
        self._wake(min(delay_ms, STEP_DELAY_MS))

    def _begin_next(self) -> bool:
        """Begin the next partition without a request. Returns False if all are loaded."""
        while self._unread:
            partition = self._unread[0]
            if self.current(partition) is None and not self._is_offline(partition):
                try:
                    self._begin(partition, self._log(partition))
                except KafkaError as error:
                    logger.warning(
                        "cannot read %s-%d; the next question tries again: %s", self._topic, partition, error
                    )
            del self._unread[0]  # last, as memory may end before
            if partition in self.reading:
                return True
        return False
