"""Runs suites on targets, compares the outcomes with the committed lists, and prints a row for each suite."""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from dataclasses import dataclass, field

from kafka_shim.compat.upstream.apache_kafka import jvm_run, outcome_list
from kafka_shim.compat.upstream.apache_kafka.jvm_run import NOT_APPLICABLE, PASSED, SHIM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kafka_shim.compat.upstream.apache_kafka.jvm_run import Outcome
    from kafka_shim.compat.upstream.apache_kafka.outcome_list import Row
    from kafka_shim.compat.upstream.apache_kafka.suites import Suite

# Test classes for one JVM. A class leaves caches and threads behind.
CLASSES_AT_ONCE = 8
HEAD = (
    "| Suite | Known | Pass on Kafka | Of them not applicable | Pass on the shim | Differ | Worse than listed | Run |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


@dataclass
class Result:
    """One suite: the list with this run's outcomes put in."""

    suite: Suite
    rows: dict[str, Row]
    worse: list[str] = field(default_factory=list)
    """Tests that the list says pass on the shim, and did not."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    seconds: float = 0.0
    ran: str = ""

    def text(self) -> str:
        """The row of the table."""
        on_kafka = [row for row in self.rows.values() if row.kafka == PASSED]
        applicable = [row for row in on_kafka if row.shim != NOT_APPLICABLE]
        passed = sum(row.shim == PASSED for row in applicable)
        known = sum(not row.is_class for row in self.rows.values())
        counts = [known, len(on_kafka), len(on_kafka) - len(applicable), passed, len(applicable) - passed]
        columns = [self.suite.name, *map(str, counts), str(len(self.worse)), self.ran]
        return f"| {' | '.join(columns)} |"

    def causes(self) -> list[str]:
        """How many tests that pass on Kafka fail on the shim for each cause, the most frequent first."""
        found = Counter(
            "not applicable" if row.shim == NOT_APPLICABLE else row.cause
            for row in self.rows.values()
            if row.kafka == PASSED and row.shim != PASSED
        )
        return [f"  {count} x {cause}" for cause, count in found.most_common()]


def run(suite: Suite, targets: Sequence[str], pattern: str, logs: Path, limit_s: int) -> Result:
    """Run the tests of a suite that match `pattern` (with `*`; empty: all) on the targets, one after the other; on the
    shim without a pattern not those that Kafka fails, most of which wait for a second broker until their time is up.

    Results of an earlier, interrupted run in `logs` are kept, so that it goes on from there.
    """
    began = time.monotonic()
    listed = outcome_list.read(suite.list_path)
    result = Result(suite, listed)
    passed = {row.test for row in listed.values() if row.shim == PASSED}
    chosen = suite.classes()
    if pattern:
        chosen = sorted({row for row in listed if fnmatch.fnmatch(row, f"*{pattern}*")}) or [
            name for name in chosen if fnmatch.fnmatch(name, f"*{pattern}*")
        ]
    hopeless = outcome_list.without_hope(listed.values()) if not pattern else ()
    for target in targets:
        results = logs / f"{target}-{suite.name}.jsonl"
        for at in range(0, len(chosen), CLASSES_AT_ONCE):
            some = chosen[at : at + CLASSES_AT_ONCE]
            scratch = logs / f"scratch-{target}-{suite.name}"
            jvm_run.run(target, some, results, scratch, limit_s, hopeless if target == SHIM else ())
        outcomes = jvm_run.read(results)
        outcome_list.merge(listed, target, outcomes)
        if target == SHIM:
            result.outcomes = outcomes
            result.worse = [test for test in passed if test in outcomes and outcomes[test].status != PASSED]
    result.seconds = time.monotonic() - began
    result.ran = " and ".join(targets) or "nothing"
    return result


def total(results: Sequence[Result]) -> str:
    """One line over all suites, for the applicable tests."""
    rows = [row for result in results for row in result.rows.values() if row.counts]
    passed = sum(row.shim == PASSED for row in rows)
    unknown = sum(
        row.kafka == outcome_list.NOT_RUN and not row.is_class for result in results for row in result.rows.values()
    )
    return (
        f"{passed} of {len(rows)} applicable tests that pass on Apache Kafka pass on the shim; "
        f"{unknown} tests have not been run on Kafka yet"
    )
