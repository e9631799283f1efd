"""Collects, in one pass over a history, what it proves about each key: who wrote a value, at which
offset, who read it.
"""

from __future__ import annotations

from kafka_shim.history.operations import FAIL, OK, POLL, SEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.history.operations import Operation, Value


class KeyEvidence:
    """The evidence for one key (partition).

    `writers`: value -> the operation that sent it. `offsets`: value -> every offset at which it was seen, from the
    sender's acknowledgement or from readers. `values`: offset -> every value seen there. `read_committed`: values that
    a read_committed reader got; `read`: values that any reader got. `last_read_offset`: the highest offset that a
    read_committed reader got.
    """

    __slots__ = ("last_read_offset", "offsets", "read", "read_committed", "values", "writers")

    def __init__(self) -> None:
        self.writers: dict[Value, Operation] = {}
        self.offsets: dict[Value, set[int]] = {}
        self.values: dict[int, set[Value]] = {}
        self.read: set[Value] = set()
        self.read_committed: set[Value] = set()
        self.last_read_offset = -1

    def see(self, offset: int, value: Value) -> None:
        """Records that an operation reported `value` at `offset`."""
        self.offsets.setdefault(value, set()).add(offset)
        self.values.setdefault(offset, set()).add(value)

    def committed_offsets(self) -> list[int]:
        """The sorted offsets of committed values: those that a read_committed reader got, or that were acknowledged in
        a committed operation.
        """
        return sorted(
            {
                offset
                for value, offsets in self.offsets.items()
                if value in self.read_committed or self._is_committed(value)
                for offset in offsets
            }
        )

    def all_offsets(self) -> list[int]:
        """The sorted offsets of all values, including aborted ones."""
        return sorted(self.values)

    def _is_committed(self, value: Value) -> bool:
        writer = self.writers.get(value)
        return writer is not None and writer.outcome == OK


class Evidence:
    """The evidence for all keys of a history, and the sends whose value was already sent to the same key (an error of
    the history itself).
    """

    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: dict[str, KeyEvidence] = {}

    def key(self, name: str) -> KeyEvidence:
        """Returns the evidence for a key; creates it if it is new."""
        found = self.keys.get(name)
        if found is None:
            found = self.keys[name] = KeyEvidence()
        return found


def gather(history: Sequence[Operation]) -> Evidence:
    """Collects the evidence of a history. Raises ValueError if a value is sent twice to one key, because its writes
    could then not be told apart.
    """
    evidence = Evidence()
    for operation in history:
        for op in operation.ops:
            kind = op[0]
            if kind == SEND:
                _, name, offset, value = op
                key = evidence.key(name)
                if value in key.writers:
                    raise ValueError(f"line {operation.index}: {value!r} is sent to {name} twice")
                key.writers[value] = operation
                if offset is not None and operation.outcome != FAIL:
                    key.see(offset, value)
            elif kind == POLL:
                for name, records in op[1].items():
                    _gather_poll(evidence.key(name), records, operation.committed_reads)
    return evidence


def _gather_poll(key: KeyEvidence, records: list[tuple[int, Value]], is_committed: bool) -> None:
    for offset, value in records:
        key.see(offset, value)
        key.read.add(value)
        if is_committed:
            key.read_committed.add(value)
    if is_committed and records:
        key.last_read_offset = max(key.last_read_offset, *(offset for offset, _ in records))
