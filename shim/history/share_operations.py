"""A history of one share group: one line of JSON per finished request, in any order.

    {"kind": "send", "outcome": "ok", "at": [0, 1.5], "key": "t-0", "records": [[17, "a41"]]}
    {"kind": "fetch", "outcome": "ok", "at": [2, 3], "member": "m1", "life": 0, "acquired": {"t-0": [[17, 1, "a41"]]}}
    {"kind": "acknowledge", "outcome": "ok", "at": [4, 5], "member": "m1", "life": 0, "key": "t-0", "types": [[17, 1]]}
    {"kind": "close", "outcome": "ok", "at": [6, 6], "member": "m1", "life": 0}

- `at`: when the request began and when its answer was there, in milliseconds of one clock.
- `outcome`: `ok`; `fail` (surely without effect); `info` (nobody knows: there was no answer). A `fetch` without an
  answer has the keys that it asked for in `acquired`, without records.
- `life`: of the broker; a crash or restart begins a new one. It is that of the connection.
- `member`: one session; a member that connects again gets a new name.
- `acquired`: (offset, delivery count, value) of each record; `types`: (offset, acknowledge type of KIP-932).

A key is one partition.
"""

from __future__ import annotations

import json

from kafka_shim.history.operations import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TextIO

    Acquired = tuple[int, int, str | None]

SEND, FETCH, ACKNOWLEDGE, CLOSE = "send", "fetch", "acknowledge", "close"
KINDS = (SEND, FETCH, ACKNOWLEDGE, CLOSE)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class ShareOperation:
    """One line of a history. Which of the fields count follows from `kind`."""

    __slots__ = ("acquired", "begin_ms", "end_ms", "key", "kind", "life", "member", "outcome", "records", "types")

    def __init__(
        self,
        kind: str,
        outcome: str,
        at: tuple[float, float],
        *,
        member: str = "",
        life: int = 0,
        key: str = "",
        records: Iterable[tuple[int | None, str]] = (),
        acquired: dict[str, list[Acquired]] | None = None,
        types: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Raises ValueError for an unknown kind or outcome."""
        if kind not in KINDS or outcome not in OUTCOMES:
            raise ValueError(f"unknown operation {kind!r} with outcome {outcome!r}")
        self.kind = kind
        self.outcome = outcome
        self.begin_ms, self.end_ms = at
        self.member = member
        self.life = life
        self.key = key
        self.records = list(records)
        self.acquired = acquired or {}
        self.types = list(types)

    def to_json(self) -> dict[str, Any]:
        """Returns the operation as a JSON object without empty fields."""
        line: dict[str, Any] = {"kind": self.kind, "outcome": self.outcome, "at": [self.begin_ms, self.end_ms]}
        for name in ("member", "life", "key", "records", "acquired", "types"):
            if getattr(self, name):
                line[name] = getattr(self, name)
        return line


def read(lines: Iterable[str]) -> Iterator[ShareOperation]:
    """Yields the operations of JSON lines. Skips empty lines. Raises ValueError, TypeError."""
    for line in lines:
        if line.strip():
            fields = json.loads(line)
            yield ShareOperation(fields.pop("kind"), fields.pop("outcome"), fields.pop("at"), **fields)


def write(operations: Iterable[ShareOperation], file: TextIO) -> None:
    """Writes operations as JSON lines."""
    for operation in operations:
        json.dump(operation.to_json(), file, separators=(",", ":"))
        file.write("\n")
