"""java.util.PriorityQueue: which of several equal entries comes first follows from its heap, and Kafka's task
assignor depends on it.
"""

from __future__ import annotations

from kafka_shim.group.generics import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")
else:
    T = None


class JavaHeap(Generic[T]):
    """`weight` is compared when an entry moves; an entry's weight may change only while it is not in the heap."""

    __slots__ = ("_entries", "_weight")

    def __init__(self, weight: Callable[[T], float]) -> None:
        self._entries: list[T] = []
        self._weight = weight

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: T) -> None:
        """Put an entry in."""
        entries, weight = self._entries, self._weight
        entries.append(entry)
        at = len(entries) - 1
        own = weight(entry)
        while at > 0:
            parent = (at - 1) >> 1
            if own >= weight(entries[parent]):
                break
            entries[at] = entries[parent]
            at = parent
        entries[at] = entry

    def poll(self) -> T:
        """Take the lightest entry out. Raises IndexError for an empty heap."""
        entries, weight = self._entries, self._weight
        first = entries[0]
        last = entries.pop()
        size = len(entries)
        if not size:
            return first
        own = weight(last)
        at = 0
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and weight(entries[child]) > weight(entries[child + 1]):
                child += 1
            if own <= weight(entries[child]):
                break
            entries[at] = entries[child]
            at = child
        entries[at] = last
        return first
