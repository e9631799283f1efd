"""A history: one line of JSON per finished operation, in the order in which they finished.

    {"process": 3, "outcome": "ok", "ops": [["send", "orders-0", 17, "a41"], ["poll", {"orders-1": [[4, "b9"]]}]]}

- `process`: a number; one producer or consumer of one session. One that restarts gets a new number.
- `outcome`: `ok` (committed, or acknowledged), `fail` (surely aborted or never written), `info` (nobody knows).
- `ops`, in order: `["send", key, offset or null, value]`; `["poll", {key: [[offset, value], ...]}]`;
  `["assign", [key, ...]]`, which says that the process starts to poll these keys again, from anywhere.
- `isolation`: `read_committed` (default) or `read_uncommitted`, of the polls.
- `subscribed`: true when the process's partitions are given to it by a group.

A key is one partition; a value is written at most once per key (a retry inside the client is still one send).
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TextIO

    Value = str | int

OK, FAIL, INFO = "ok", "fail", "info"
OUTCOMES = (OK, FAIL, INFO)
SEND, POLL, ASSIGN = "send", "poll", "assign"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class Operation:
    """One line of a history. `index` is its position in the history."""

    __slots__ = ("committed_reads", "index", "ops", "outcome", "process", "subscribed")

    def __init__(
        self,
        index: int,
        process: int,
        outcome: str,
        ops: list[Any],
        committed_reads: bool = True,
        subscribed: bool = False,
    ) -> None:
        self.index = index
        self.process = process
        self.outcome = outcome
        self.ops = ops
        self.committed_reads = committed_reads
        self.subscribed = subscribed

    @classmethod
    def from_json(cls, index: int, line: dict[str, Any]) -> Operation:
        """Builds an operation from parsed JSON. Raises ValueError for an unknown outcome, isolation level or kind of
        operation.
        """
        outcome = line["outcome"]
        if outcome not in OUTCOMES:
            raise ValueError(f"line {index}: outcome {outcome!r} is none of {OUTCOMES}")
        isolation = line.get("isolation", READ_COMMITTED)
        if isolation not in (READ_COMMITTED, READ_UNCOMMITTED):
            raise ValueError(f"line {index}: unknown isolation {isolation!r}")
        for op in line["ops"]:
            if op[0] not in (SEND, POLL, ASSIGN):
                raise ValueError(f"line {index}: unknown operation {op[0]!r}")
        return cls(
            index, line["process"], outcome, line["ops"], isolation == READ_COMMITTED, line.get("subscribed", False)
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the operation as a JSON object; the inverse of `from_json`."""
        line: dict[str, Any] = {"process": self.process, "outcome": self.outcome, "ops": self.ops}
        if not self.committed_reads:
            line["isolation"] = READ_UNCOMMITTED
        if self.subscribed:
            line["subscribed"] = True
        return line


def read(lines: Iterable[str]) -> Iterator[Operation]:
    """Yields the operations of JSON lines. Skips empty lines."""
    for index, line in enumerate(line for line in lines if line.strip()):
        yield Operation.from_json(index, json.loads(line))


def write(operations: Iterable[Operation], file: TextIO) -> None:
    """Writes operations as JSON lines."""
    for operation in operations:
        json.dump(operation.to_json(), file, separators=(",", ":"))
        file.write("\n")
