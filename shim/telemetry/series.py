"""The latest values that clients pushed, as the broker's Prometheus endpoint shows them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

Labels = tuple[tuple[str, str], ...]


class Series:
    """One value: `name`, `labels`, and whether it only grows."""

    __slots__ = ("is_counter", "labels", "name", "value")

    def __init__(self, name: str, labels: Labels, is_counter: bool) -> None:
        self.name = name
        self.labels = labels
        self.is_counter = is_counter
        self.value = 0.0


@runtime_checkable
class KeepsSeries(Protocol):
    """A receiver whose values the endpoint shows. `dropped` counts those above its bounds."""

    dropped: int

    def series(self) -> list[Series]:
        """Return the values of all clients."""
