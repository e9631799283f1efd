"""A suite's committed list: one line per test, ``SHIM KAFKA TEST``, and after `` # `` the cause where the shim does
not pass. A method that was not run yet has one line, however many invocations it has.

The columns are outcomes with a hyphen for a blank (``not-applicable``); ``not-run`` is one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafka_shim.compat.upstream.apache_kafka.inside_a_jvm import subject_of
from kafka_shim.compat.upstream.apache_kafka.jvm_run import ABORTED, FAILED, NOT_APPLICABLE, PASSED, SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kafka_shim.compat.upstream.apache_kafka.jvm_run import Outcome

NOT_RUN = "not run"
STATUSES = (PASSED, FAILED, NOT_APPLICABLE, SKIPPED, ABORTED, NOT_RUN)
# What the shim does not have -> what the name of a class or method has when the test is about it.
SUBJECTS = (("tiered storage", re.compile(r"Remote|Tiered|tiered")),)


class ListError(ValueError):
    """A line that is not of the list's form."""


@dataclass
class Row:
    test: str
    shim: str = NOT_RUN
    kafka: str = NOT_RUN
    cause: str = ""

    @property
    def class_name(self) -> str:
        return self.test.partition("[")[0].rpartition(".")[0]

    @property
    def was_run(self) -> bool:
        """On one of the targets at least."""
        return {self.shim, self.kafka} != {NOT_RUN}

    def text(self) -> str:
        columns = f"{_joined(self.shim)} {_joined(self.kafka)} {self.test}"
        return f"{columns} # {self.cause}" if self.cause else columns


def _joined(status: str) -> str:
    return status.replace(" ", "-")


def parse(text: str) -> dict[str, Row]:
    """Raises ListError for an invalid line, a test listed twice, or a test that the shim does not pass for no cause."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        columns, _, cause = line.partition(" # ")
        parts = columns.split()
        if len(parts) != 3:
            raise ListError(f"not SHIM KAFKA TEST: {line!r}")
        shim, kafka = (part.replace("-", " ") for part in parts[:2])
        if shim not in STATUSES or kafka not in STATUSES:
            raise ListError(f"no such outcome: {line!r}")
        if parts[2] in rows:
            raise ListError(f"listed twice: {line!r}")
        if shim not in (PASSED, NOT_RUN) and not cause:
            raise ListError(f"no cause: {line!r}")
        rows[parts[2]] = Row(parts[2], shim, kafka, cause)
    return rows


def read(path: Path) -> dict[str, Row]:
    return parse(path.read_text()) if path.exists() else {}


def write(path: Path, title: str, rows: Iterable[Row]) -> None:
    ordered = sorted(rows, key=lambda row: _natural(row.test))
    of_shim, of_kafka = (sum(getattr(row, column) != NOT_RUN for row in ordered) for column in ("shim", "kafka"))
    head = [
        f"# {title}: {len(ordered)} tests known, {of_shim} run on the shim, {of_kafka} on Kafka with one broker; "
        f"{classes_not_run(ordered)} classes not run.",
        "# The columns: the outcome on the shim, the outcome on Kafka, the test; after the hash the cause.",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in [*head, *(row.text() for row in ordered)]))


def _natural(test: str) -> tuple[str, int]:
    name, _, number = test.partition("[")
    return name, int(number.rstrip("]") or 0)


def without_hope(rows: Iterable[Row]) -> list[str]:
    """Return the methods of which Kafka with one broker passes no invocation, and was asked about all of them."""
    of_method: dict[str, list[str]] = {}
    for row in rows:
        of_method.setdefault(row.test.partition("[")[0], []).append(row.kafka)
    return sorted(
        method
        for method, outcomes in of_method.items()
        if all(outcome in (FAILED, SKIPPED, ABORTED) for outcome in outcomes)
    )


def subject(test: str) -> str:
    """Return what a test is about that the shim does not have, or an empty string."""
    return next((subject for subject, pattern in SUBJECTS if pattern.search(test)), "")


def add_methods(rows: dict[str, Row], methods: Iterable[str]) -> None:
    """Add a row for each test method of which none is there."""
    known = {row.test.partition("[")[0] for row in rows.values()}
    for name in methods:
        if name not in known:
            rows[name] = Row(name, cause=": ".join(filter(None, [subject(name), "not run yet"])))


def classes_not_run(rows: Iterable[Row]) -> int:
    """Return of how many classes no test was run on either target."""
    was_run: dict[str, bool] = {}
    for row in rows:
        was_run[row.class_name] = was_run.get(row.class_name, False) or row.was_run
    return sum(not any_run for any_run in was_run.values())


def merge(rows: dict[str, Row], target: str, outcomes: dict[str, Outcome]) -> None:
    """Put the outcomes of a run into the rows. A cause that was written by hand stays while the outcome does."""
    for test, outcome in outcomes.items():
        if "[" in test:
            rows.pop(test.partition("[")[0], None)
        row = rows.setdefault(test, Row(test))
        if target == "kafka":
            row.kafka = outcome.status
            continue
        inside = subject_of(test)
        if inside and outcome.status == FAILED:
            row.shim, row.cause = NOT_APPLICABLE, f"not applicable: {inside}"
            continue
        if row.shim != outcome.status or not row.cause or outcome.status == NOT_APPLICABLE:
            row.cause = "" if outcome.status == PASSED else cause(test, outcome)
        row.shim = outcome.status


def cause(test: str, outcome: Outcome) -> str:
    """Return why a test does not pass on the shim, as far as its name, its calls and its message tell."""
    if outcome.calls:
        call = outcome.calls[0]
        return "several brokers" if call == "several brokers" else f"not applicable: {call}"
    if about := subject(test):
        return about
    lines = outcome.message.strip().splitlines() or ["no message"]
    told = next((line for line in lines if "the shim did not get ready" in line), lines[0])
    return re.sub(r"\s+", " ", told).replace(" # ", " ")[:200]
