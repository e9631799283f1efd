"""Compares two plain values: responses of transcripts, single requests and random sequences.

Plain values are dicts, lists and scalars. `kafka_shim.wiretap.compare` is the product's own comparison: it also pairs
ids that a broker generates, and is used for recordings and the sweep.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def unequal(ours: Any, theirs: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Returns (path, ours, theirs) for each difference. A key that only one side has counts as one difference; so do
    lists of different length.
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        keys = [*ours, *(key for key in theirs if key not in ours)]
        return [row for key in keys for row in unequal(ours.get(key), theirs.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [row for at, (one, other) in pairs for row in unequal(one, other, f"{path}[{_name(one) or at}]")]
    return [] if ours == theirs else [(path, ours, theirs)]


def lines(ours: Any, theirs: Any) -> list[str]:
    """Returns the differences as one line each."""
    return [f"{path}: ours {one!r}, theirs {other!r}" for path, one, other in unequal(ours, theirs)]


def _name(value: Any) -> str:
    return str(value.get("name", "")) if isinstance(value, Mapping) else ""
