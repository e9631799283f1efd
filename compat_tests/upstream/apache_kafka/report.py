"""Runs suites on targets, compares the outcomes with the committed lists, and prints a row for each suite."""

from __future__ import annotations

import fnmatch
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field

from kafka_shim.compat.upstream.apache_kafka import jvm_run, outcome_list
from kafka_shim.compat.upstream.apache_kafka.jvm_run import KAFKA, NOT_APPLICABLE, PASSED, SHIM
from kafka_shim.compat.upstream.apache_kafka.outcome_list import NOT_RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from kafka_shim.compat.upstream.apache_kafka.jvm_run import Outcome
    from kafka_shim.compat.upstream.apache_kafka.outcome_list import Row
    from kafka_shim.compat.upstream.apache_kafka.suites import Suite

# Test classes, and tests that are named one by one, for one JVM. A class leaves caches and threads behind.
CLASSES_AT_ONCE = 8
TESTS_AT_ONCE = 60
HEAD = (
    "| Suite | Counted | Pass on Kafka | Of these on the shim | Fail here | Not applicable | Not compared "
    "| Worse than listed | Run |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


@dataclass(frozen=True)
class Figures:
    """Counts over rows of lists."""

    counted: int
    """Tests that are known: invocations, and methods that were not run yet."""
    asked: int
    """Tests that were run on Kafka with one broker."""
    on_kafka: int
    """Tests that it passes. The next four are of these."""
    on_shim: int
    failing: int
    not_had: int
    """Those of the failing that are of something the shim does not have."""
    not_applicable: int
    not_run: int
    """Tests that one of the two was not asked."""
    classes_not_run: int
    only_passed: int
    """Tests that Kafka was not asked and the shim passes; the next two it fails (or skips), or are not applicable."""
    only_failed: int
    only_not_applicable: int
    on_neither: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Figures:
        tests = list(rows)
        passed = [row for row in tests if row.kafka == PASSED]
        here = Counter(row.shim for row in passed)
        alone = Counter(row.shim for row in tests if row.kafka == NOT_RUN)
        return cls(
            counted=len(tests),
            asked=sum(row.kafka != NOT_RUN for row in tests),
            on_kafka=len(passed),
            on_shim=here[PASSED],
            failing=len(passed) - here[PASSED] - here[NOT_APPLICABLE] - here[NOT_RUN],
            not_had=sum(
                row.shim not in (PASSED, NOT_APPLICABLE, NOT_RUN) and bool(outcome_list.subject(row.test))
                for row in passed
            ),
            not_applicable=here[NOT_APPLICABLE],
            not_run=sum(NOT_RUN in (row.kafka, row.shim) for row in tests),
            classes_not_run=outcome_list.classes_not_run(tests),
            only_passed=alone[PASSED],
            only_failed=alone.total() - alone[PASSED] - alone[NOT_APPLICABLE] - alone[NOT_RUN],
            only_not_applicable=alone[NOT_APPLICABLE],
            on_neither=alone[NOT_RUN],
        )

    def text(self) -> str:
        """Up to three sentences, which compat_tests/README.md has too: of tests that were not run only if there are
        any."""
        said = (
            f"{self.asked} of the {self.counted} listed tests were run on Apache Kafka, and it passes {self.on_kafka} "
            f"of them with one broker: of these {self.on_shim} pass on the shim, {self.not_applicable} are not "
            f"applicable, {self.failing} fail, {self.not_had} of them of tiered storage."
        )
        if self.asked < self.counted:
            said += (
                f" Kafka was not asked {self.only_passed} that pass on the shim, {self.only_failed} that do not pass "
                f"there and {self.only_not_applicable} that are not applicable; {self.on_neither} were run on neither."
            )
        if self.classes_not_run:
            said += f" Of {self.classes_not_run} classes no test was run."
        return said


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
        of = Figures.of(self.rows.values())
        counts = [of.counted, of.on_kafka, of.on_shim, of.failing, of.not_applicable, of.not_run, len(self.worse)]
        return f"| {' | '.join([self.suite.name, *map(str, counts), self.ran])} |"

    def causes(self) -> list[str]:
        """How many tests that pass on Kafka fail on the shim for each cause, the most frequent first."""
        found = Counter(
            f"{row.shim}: {row.cause.removeprefix('not applicable: ')}"
            for row in self.rows.values()
            if row.kafka == PASSED and row.shim not in (PASSED, NOT_RUN)
        )
        return [f"  {count} x {cause}" for cause, count in found.most_common()]


def not_asked(rows: Iterable[Row], target: str, pattern: str = "", at_other: str = PASSED) -> list[str]:
    """Return the listed tests that match `pattern` (with `*`; empty: all), that `target` was not asked, with an outcome
    of `at_other` at the other: without what passes there a suite is no comparison. Tests of what the shim does not
    have are left out."""
    other = SHIM if target == KAFKA else KAFKA
    return sorted(
        row.test
        for row in rows
        if getattr(row, target) == NOT_RUN
        and getattr(row, other) == at_other
        and not outcome_list.subject(row.test)
        and fnmatch.fnmatch(row.test, f"*{pattern}*")
    )


def portions(tests: Sequence[str], at_once: int) -> list[list[str]]:
    """Return `tests`, sorted, in lists of `at_once` or a few more: a method that has a result is not run again, so its
    invocations are in one list."""
    found: list[list[str]] = []
    for _, invocations in itertools.groupby(sorted(tests), key=lambda test: test.partition("[")[0]):
        if not found or len(found[-1]) >= at_once:
            found.append([])
        found[-1].extend(invocations)
    return found


def run(
    suite: Suite, targets: Sequence[str], pattern: str, logs: Path, limit_s: int, *, not_asked_but: str = ""
) -> Result:
    """Run the tests of a suite that match `pattern` (with `*`; empty: all) on the targets, one after the other; on the
    shim without a pattern not those that Kafka fails, most of which wait for a second broker until their time is up.
    With `not_asked_but` only the tests that are `not_asked` and have that outcome on the other target.

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
        at_once = CLASSES_AT_ONCE
        if not_asked_but:
            chosen, at_once = not_asked(listed.values(), target, pattern, not_asked_but), TESTS_AT_ONCE
        for some in portions(chosen, at_once):
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
    """Over all suites."""
    return Figures.of(row for result in results for row in result.rows.values()).text()
