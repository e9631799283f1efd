"""Topics with offset gaps. Each is made in two steps, ``begin`` and ``finish``, so that a reader can continue in
between.
"""

from __future__ import annotations

import time

from kafka_shim.spark import plain_clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import ClassVar

    from confluent_kafka import Producer

    from kafka_shim.targets import Target

COUNT = 20
COMPACTION_TIMEOUT_S = 60.0
SEGMENT_MS = 100


class Shape:
    """One topic. ``committed`` is what a read_committed reader must find now, in any order, each value once;
    ``written`` is the same for a read_uncommitted reader.
    """

    partitions = 1
    config: ClassVar[dict[str, str] | None] = None

    def __init__(self, target: Target, prefix: str) -> None:
        self.target = target
        self.topic = f"{prefix}{self.name}"
        self.committed: list[str] = []
        self.written: list[str] = []
        self._number = 0

    @property
    def name(self) -> str:
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in type(self).__name__).strip("-")

    def begin(self) -> None:
        plain_clients.create(self.target.bootstrap, self.topic, self.partitions, self.config)
        self.first()

    def first(self) -> None:
        """Writes what is there before the first read."""
        raise NotImplementedError

    def finish(self) -> None:
        """Makes the changes between the first and the second read."""

    def values(self, count: int = COUNT) -> list[str]:
        made = [f"{self.name}:{number}" for number in range(self._number, self._number + count)]
        self._number += count
        return made

    def plain(self, count: int = COUNT, partition: int = 0) -> None:
        made = self.values(count)
        rows = ({"value": value.encode(), "partition": partition} for value in made)
        plain_clients.fill(self.target.bootstrap, self.topic, rows)
        self.committed += made
        self.written += made

    def producer(self, name: str = "") -> Producer:
        return plain_clients.producer(self.target.bootstrap, f"{self.topic}{name}")

    def send(self, producer: Producer, values: Iterable[str]) -> None:
        for value in values:
            producer.produce(self.topic, value.encode(), partition=0)
        producer.flush(30)

    def transaction(self, *, commit: bool, count: int = COUNT) -> None:
        producer, made = self.producer(), self.values(count)
        producer.begin_transaction()
        self.send(producer, made)
        self.written += made
        if commit:
            producer.commit_transaction(60)
            self.committed += made
        else:
            producer.abort_transaction(60)


class MarkerEnd(Shape):
    """The last offset is a commit marker, which clients do not return."""

    def first(self) -> None:
        self.transaction(commit=True)

    def finish(self) -> None:
        self.transaction(commit=True, count=1)


class AbortedTail(Shape):
    """The topic ends in aborted records and their markers, longer than a micro-batch."""

    def first(self) -> None:
        self.plain()
        for _ in range(3):
            self.transaction(commit=False)

    def finish(self) -> None:
        self.transaction(commit=False)


class AllAborted(Shape):
    """All records are aborted."""

    def first(self) -> None:
        self.transaction(commit=False)
        self.transaction(commit=False)


class OpenHead(Shape):
    """An open transaction holds back the last stable offset; committed records of other producers follow it."""

    def first(self) -> None:
        self.plain(5)
        self._open = self.producer("-open")
        self._held = self.values(3)
        self._open.begin_transaction()
        self.send(self._open, self._held)
        self.written += self._held
        made = self.values()
        plain_clients.fill(self.target.bootstrap, self.topic, ({"value": v.encode()} for v in made))
        self.written += made
        self._held += made

    def finish(self) -> None:
        self._open.commit_transaction(60)
        self.committed += self._held


class CompactionHoles(Shape):
    """Compaction left the last value of each key, which are far apart, and took whole batches away."""

    config: ClassVar[dict[str, str] | None] = {
        "cleanup.policy": "compact",
        "segment.ms": str(SEGMENT_MS),
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }

    def first(self) -> None:
        self._round("a", keys=range(10), times=5)
        self._round("b", keys=range(5), times=5)

    def finish(self) -> None:
        self._round("c", keys=range(3), times=5)

    def _round(self, label: str, keys: range, times: int) -> None:
        last: dict[object, str] = getattr(self, "_last", {})
        self._last = last
        rows = [(key, f"{self.name}:{label}{key}.{turn}") for turn in range(times) for key in keys]
        for chunk in range(0, len(rows), 10):
            self._fill(rows[chunk : chunk + 10])
        last.update(rows)
        # A record in the segment after rolls the one before, which alone is compacted.
        time.sleep(SEGMENT_MS * 2 / 1000)
        # Its key is its own: it is not compacted yet, so it could not replace the one before.
        last[label] = f"{self.name}:tick-{label}"
        self._fill([(label, last[label])])
        self._wait(set(last.values()))
        self.committed = self.written = sorted(last.values())

    def _fill(self, rows: Sequence[tuple[object, str]]) -> None:
        given = ({"key": str(key).encode(), "value": value.encode()} for key, value in rows)
        plain_clients.fill(self.target.bootstrap, self.topic, given)

    def _wait(self, wanted: set[str]) -> None:
        give_up = time.monotonic() + COMPACTION_TIMEOUT_S
        while True:
            messages = plain_clients.read(self.target.bootstrap, self.topic)
            found = {plain_clients.value_of(message).decode() for message in messages}
            if found == wanted:
                return
            if time.monotonic() > give_up:
                raise RuntimeError(f"{self.topic} was not compacted: {sorted(found ^ wanted)} are too many or missing")
            time.sleep(0.1)


class PartitionGrowth(Shape):
    """Partitions are added while a reader runs."""

    def first(self) -> None:
        self.plain()

    def finish(self) -> None:
        from confluent_kafka.admin import AdminClient, NewPartitions

        admin = AdminClient({"bootstrap.servers": self.target.bootstrap, "log_level": 0})
        admin.create_partitions([NewPartitions(self.topic, 3)])[self.topic].result(30)
        for partition in range(3):
            self.plain(10, partition)


class EpochJump(Shape):
    """The leader epoch goes up between records: the broker was killed and started, once for all shapes. (After a clean
    stop the shim keeps leaders and their epochs.)"""

    def first(self) -> None:
        self.plain()

    def finish(self) -> None:
        self.plain()


class DeletedHead(Shape):
    """The first records were deleted before they were read."""

    def first(self) -> None:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        self.plain()
        admin = AdminClient({"bootstrap.servers": self.target.bootstrap, "log_level": 0})
        (future,) = admin.delete_records([TopicPartition(self.topic, 0, 7)]).values()
        future.result(30)
        self.committed = self.committed[7:]
        self.written = self.written[7:]

    def finish(self) -> None:
        self.plain()


SHAPES: tuple[Callable[[Target, str], Shape], ...] = (
    MarkerEnd,
    AbortedTail,
    AllAborted,
    OpenHead,
    CompactionHoles,
    PartitionGrowth,
    EpochJump,
    DeletedHead,
)


def make_all(target: Target, prefix: str = "gaps-") -> list[Shape]:
    """Every shape on a broker, in its first state."""
    made = [shape(target, prefix) for shape in SHAPES]
    for shape in made:
        shape.begin()
    return made


def finish_all(shapes: list[Shape], *, restart: bool) -> None:
    """Brings every shape to its second state; ``restart`` kills the broker and starts it on its data, for a new leader
    epoch."""
    if restart:
        shapes[0].target.restart(kill=True)
    for shape in shapes:
        shape.finish()
