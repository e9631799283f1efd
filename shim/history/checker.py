"""Checks a history for all classes of anomalies and decides which are errors under the policy of part E of
SEMANTICS.md.
"""

from __future__ import annotations

from kafka_shim.history import anomalies, cycles
from kafka_shim.history.evidence import gather
from kafka_shim.history.operations import FAIL, OK, POLL, SEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_shim.history.operations import Operation

# Kafka does not isolate the writes of a transaction from those of other producers, so these classes are legal.
ALWAYS_TOLERATED = frozenset({cycles.G0, anomalies.INT_SEND_SKIP})
# If a group assigns the partitions, a rebalance changes positions.
TOLERATED_WHEN_SUBSCRIBED = frozenset({anomalies.POLL_SKIP, anomalies.NONMONOTONIC_POLL})
SHOWN_PER_CLASS = 10


class Report:
    """The result of a check. `errors` and `tolerated` map a class to its details, in the order of the history."""

    __slots__ = ("committed", "errors", "operations", "polled", "sent", "tolerated")

    def __init__(self) -> None:
        self.errors: dict[str, list[str]] = {}
        self.tolerated: dict[str, list[str]] = {}
        self.operations = 0
        self.committed = 0
        self.sent = 0
        self.polled = 0

    @property
    def is_clean(self) -> bool:
        return not self.errors

    def lines(self) -> Iterator[str]:
        """Yields the report as text lines."""
        yield (
            f"{self.operations} operations, {self.committed} committed, {self.sent} records sent, {self.polled} polled"
        )
        for title, found in (("error", self.errors), ("tolerated", self.tolerated)):
            for name, details in sorted(found.items()):
                yield f"{title}: {name} x {len(details)}"
                if title == "error":
                    yield from (f"  {text}" for text in details[:SHOWN_PER_CLASS])


def check(operations: Iterable[Operation], write_edges: bool = False, final_reads: bool = True) -> Report:
    """Runs all checks on a whole history.

    `final_reads`: readers continued to the end of every key after the last write, so a committed value that nobody read
    is `unseen`. `write_edges`: see `cycles.find`; with it G1c is tolerated.
    """
    history = list(operations)
    evidence = gather(history)
    report = _counted(history)
    tolerated = ALWAYS_TOLERATED | {cycles.G1C} if write_edges else ALWAYS_TOLERATED

    def note(anomaly: str, details: str, is_tolerated: bool = False) -> None:
        into = report.tolerated if is_tolerated or anomaly in tolerated else report.errors
        into.setdefault(anomaly, []).append(details)

    found = [
        anomalies.lost_writes(evidence),
        anomalies.aborted_reads(history, evidence),
        anomalies.precommitted_reads(history, evidence),
        anomalies.inconsistent_offsets(evidence),
        anomalies.duplicates(evidence),
        anomalies.send_order(history, evidence),
        cycles.find(history, evidence, write_edges),
    ]
    if final_reads:
        found.append(anomalies.unseen(evidence))
    for generator in found:
        for anomaly, details in generator:
            note(anomaly, details)
    for anomaly, details, subscribed in anomalies.poll_order(history, evidence):
        note(anomaly, details, subscribed and anomaly in TOLERATED_WHEN_SUBSCRIBED)
    return report


def _counted(history: list[Operation]) -> Report:
    report = Report()
    report.operations = len(history)
    for operation in history:
        report.committed += operation.outcome == OK
        for op in operation.ops:
            if op[0] == SEND:
                report.sent += operation.outcome != FAIL
            elif op[0] == POLL:
                report.polled += sum(map(len, op[1].values()))
    return report
