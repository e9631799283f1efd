"""Families of the broker's own metrics, written as their values come: a scrape makes no object for each value.

How many series a family has is bounded here too.
"""

from __future__ import annotations

from kafka_shim.monitoring.exposition import labels_of, number

# Series of one family at most: what has more topics or groups is summed up for the rest, with this label.
MOST_SERIES = 500
REST = "(others)"
# Partitions that have series of their own: `shown_partitions` chooses them.
MOST_PARTITIONS = 50
# The labels of such a series.
OF_PARTITION = ("partition", "topic")


class Family:
    """The series of one name. `lines` are those that were written."""

    __slots__ = ("_head", "_labels", "_name", "lines")

    def __init__(self, kind: str, name: str, help_text: str, labels: tuple[str, ...] = ()) -> None:
        """`kind`: counter, gauge, histogram or summary. The names of `labels` are in the order of the alphabet."""
        self._name = f"{name}_total" if kind == "counter" else name
        self._head = f"# HELP {self._name} {help_text}\n# TYPE {self._name} {kind}\n"
        self._labels = labels
        self.lines: list[str] = []

    def add(self, value: float, *labels: str) -> None:
        """Write the value of a series."""
        self.put(labels_of(self._labels, labels) if labels else "", value)

    def put(self, where: str, value: float) -> None:
        """As `add`, with the labels as `labels_of` writes them: several families may have the same."""
        self.lines.append(f"{self._name}{where} {number(value)}\n")

    def text(self) -> str:
        """Returns the family as it is scraped."""
        return self._head + "".join(self.lines)


def gauge(name: str, help_text: str, value: float) -> Family:
    family = Family("gauge", name, help_text)
    family.put("", value)
    return family


def counter(name: str, help_text: str, value: float) -> Family:
    family = Family("counter", name, help_text)
    family.put("", value)
    return family
