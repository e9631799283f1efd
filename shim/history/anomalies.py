"""Checks for anomalies of a single key or a single process. Each check yields (class, details).

The class names are those of Jepsen's Kafka workload. `checker` decides which classes are errors.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from kafka_shim.history.operations import ASSIGN, FAIL, OK, POLL, SEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from kafka_shim.history.evidence import Evidence
    from kafka_shim.history.operations import Operation

    Found = tuple[str, str]

LOST_WRITE = "lost-write"
ABORTED_READ = "aborted-read"
PRECOMMITTED_READ = "precommitted-read"
INCONSISTENT_OFFSETS = "inconsistent-offsets"
DUPLICATE = "duplicate"
POLL_SKIP = "poll-skip"
INT_POLL_SKIP = "int-poll-skip"
NONMONOTONIC_POLL = "nonmonotonic-poll"
INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
NONMONOTONIC_SEND = "nonmonotonic-send"
INT_NONMONOTONIC_SEND = "int-nonmonotonic-send"
INT_SEND_SKIP = "int-send-skip"
UNSEEN = "unseen"


def lost_writes(evidence: Evidence) -> Iterator[Found]:
    """Finds committed values that no reader got although a reader got a later value of the same key."""
    for name, key in evidence.keys.items():
        for value, writer in key.writers.items():
            if writer.outcome != OK or value in key.read_committed:
                continue
            offsets = key.offsets.get(value)
            if offsets and min(offsets) < key.last_read_offset:
                yield (
                    LOST_WRITE,
                    f"{value!r} of line {writer.index} was acknowledged at {name}:{min(offsets)} and never read; "
                    f"{name}:{key.last_read_offset} was",
                )


def unseen(evidence: Evidence) -> Iterator[Found]:
    """Finds committed values that no reader got by the end, and behind which no value was read."""
    for name, key in evidence.keys.items():
        for value, writer in key.writers.items():
            if writer.outcome != OK or value in key.read_committed:
                continue
            offsets = key.offsets.get(value)
            if not offsets or min(offsets) >= key.last_read_offset:
                yield UNSEEN, f"{value!r} of line {writer.index} was never read from {name}"


def aborted_reads(history: Sequence[Operation], evidence: Evidence) -> Iterator[Found]:
    """Finds values of failed operations that a read_committed reader got (G1a)."""
    for operation, name, offset, value in _committed_reads(history):
        writer = evidence.keys[name].writers.get(value)
        if writer is not None and writer.outcome == FAIL:
            yield (
                ABORTED_READ,
                f"line {operation.index} read {value!r} at {name}:{offset}, aborted by line {writer.index}",
            )


def precommitted_reads(history: Sequence[Operation], evidence: Evidence) -> Iterator[Found]:
    """Finds read_committed operations that read their own writes. At that time the writes cannot be committed yet."""
    for operation, name, offset, value in _committed_reads(history):
        if evidence.keys[name].writers.get(value) is operation:
            yield PRECOMMITTED_READ, f"line {operation.index} read its own {value!r} at {name}:{offset}"


def _committed_reads(history: Sequence[Operation]) -> Iterator[tuple[Operation, str, int, Any]]:
    """Yields (operation, key, offset, value) of all that read_committed readers got."""
    for operation in history:
        if operation.committed_reads:
            for op in operation.ops:
                if op[0] == POLL:
                    for name, records in op[1].items():
                        for offset, value in records:
                            yield operation, name, offset, value


def inconsistent_offsets(evidence: Evidence) -> Iterator[Found]:
    """Finds offsets at which more than one value was seen."""
    for name, key in evidence.keys.items():
        for offset, values in key.values.items():
            if len(values) > 1:
                yield INCONSISTENT_OFFSETS, f"{name}:{offset} is {sorted(values, key=str)!r}"


def duplicates(evidence: Evidence) -> Iterator[Found]:
    """Finds values that were seen at more than one offset."""
    for name, key in evidence.keys.items():
        for value, offsets in key.offsets.items():
            if len(offsets) > 1:
                yield DUPLICATE, f"{value!r} is at {name} {sorted(offsets)!r}"


class _Positions:
    """The position of each process in each key."""

    __slots__ = ("_evidence", "_known", "_last")

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._last: dict[tuple[int, str], int] = {}
        # (key, read_committed) -> sorted offsets that hold values
        self._known: dict[tuple[str, bool], list[int]] = {}

    def reset(self, process: int, keys: Sequence[str]) -> None:
        for name in keys:
            self._last.pop((process, name), None)

    def move(self, process: int, name: str, offset: int) -> int | None:
        """Sets the position and returns the previous one, or None if there was none."""
        before = self._last.get((process, name))
        self._last[process, name] = offset
        return before

    def skipped(self, name: str, is_committed: bool, after: int, before: int) -> list[int]:
        """Returns the offsets strictly between `after` and `before` that a reader of this isolation level must see."""
        known = self._known.get((name, is_committed))
        if known is None:
            key = self._evidence.keys[name]
            known = key.committed_offsets() if is_committed else key.all_offsets()
            self._known[name, is_committed] = known
        return known[bisect_right(known, after) : bisect_left(known, before)]


def _moves(history: Sequence[Operation], positions: _Positions) -> Iterator[tuple[Operation, str, int, int, bool]]:
    """Yields each record polled by a process that has a position in the key: (operation, key, former offset, offset,
    whether the operation had polled the key before).
    """
    for operation in history:
        polled: set[str] = set()
        for op in operation.ops:
            if op[0] == ASSIGN:
                positions.reset(operation.process, op[1])
            elif op[0] == POLL:
                for name, offset in ((name, offset) for name, records in op[1].items() for offset, _ in records):
                    before = positions.move(operation.process, name, offset)
                    if before is not None:
                        yield operation, name, before, offset, name in polled
                    polled.add(name)


def poll_order(history: Sequence[Operation], evidence: Evidence) -> Iterator[tuple[str, str, bool]]:
    """Finds polls of a process that go backwards in a key, repeat an offset, or skip existing values. Yields (class,
    details, subscribed).
    """
    positions = _Positions(evidence)
    for operation, name, before, offset, inner in _moves(history, positions):
        if offset <= before:
            anomaly = INT_NONMONOTONIC_POLL if inner else NONMONOTONIC_POLL
            yield anomaly, _place(operation, name, before, offset), operation.subscribed
        elif offset > before + 1:
            skipped = positions.skipped(name, operation.committed_reads, before, offset)
            if skipped:
                anomaly = INT_POLL_SKIP if inner else POLL_SKIP
                details = f"{_place(operation, name, before, offset)}, without {skipped[:5]!r}"
                yield anomaly, details, operation.subscribed


def _place(operation: Operation, name: str, before: int, offset: int) -> str:
    return f"line {operation.index}, process {operation.process}: {name}:{offset} after {before}"


def send_order(history: Sequence[Operation], evidence: Evidence) -> Iterator[Found]:
    """Finds sends of a process to a key whose offsets go backwards, or whose offsets within one operation have other
    values between them.
    """
    last: dict[tuple[int, str], int] = {}
    known: dict[str, list[int]] = {}
    for operation in history:
        if operation.outcome == FAIL:
            continue
        sent_here: set[str] = set()
        for op in operation.ops:
            if op[0] != SEND or op[2] is None:
                continue
            _, name, offset, _value = op
            before = last.get((operation.process, name))
            last[operation.process, name] = offset
            inner = name in sent_here
            sent_here.add(name)
            if before is None:
                continue
            if offset <= before:
                anomaly = INT_NONMONOTONIC_SEND if inner else NONMONOTONIC_SEND
                yield anomaly, f"line {operation.index}, process {operation.process}: {name}:{offset} after {before}"
            elif inner and offset > before + 1:
                if name not in known:
                    known[name] = evidence.keys[name].all_offsets()
                offsets = known[name]
                if bisect_right(offsets, before) < bisect_left(offsets, offset):
                    yield INT_SEND_SKIP, f"line {operation.index}: {name}:{offset} after {before}, others' are between"
