"""Runs suites on targets and compares the results with their allow lists."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafka_shim.compat.upstream.base import FAILED, PASSED, Outcome, Suite
from kafka_shim.targets import Target, make
from kafka_shim.targets.base import free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_RUN = Outcome(FAILED, 0.0, "it has no result: the run ended before it")


@dataclass
class Result:
    """One suite on one target."""

    suite: str
    target: str
    version: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    again: dict[str, Outcome] = field(default_factory=dict)
    """Those that failed at first and passed when they ran once more, alone: their first outcome."""
    excluded: dict[str, str] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> dict[str, Outcome]:
        """The listed tests that did not pass. A listed test may not be skipped either."""
        return {test: outcome for test, outcome in self.outcomes.items() if outcome.status != PASSED}

    @property
    def is_good(self) -> bool:
        return not self.failed and not self.disagreements

    def text(self) -> str:
        passed = len(self.outcomes) - len(self.failed)
        rows = [
            f"{self.suite} {self.version} on {self.target}: {passed} of {len(self.outcomes)} passed "
            f"in {self.seconds:.0f} s, {len(self.excluded)} excluded"
        ]
        rows += [f"  passed at the second try: {test}" for test in self.again]
        rows += [f"  {row}" for row in self.disagreements]
        for test, outcome in self.failed.items():
            rows.append(f"  {outcome.status}: {test}")
            rows += [f"    {row}" for row in outcome.text.strip().splitlines()[-40:]]
        return "\n".join(rows)


@contextmanager
def broker(suite: Suite, kind: str) -> Iterator[Target]:
    """Starts a broker of `kind` that listens on the suite's host, advertises it, and has the suite's options."""
    target = make(kind, settings=suite.settings)
    if "=" not in kind:
        target.bootstrap = f"{suite.host}:{free_ports(1)[0]}"
        if kind == "shim":
            target.settings["advertised.listeners"] = f"PLAINTEXT://{target.bootstrap}"
    with target as started:
        yield started


def run(suite: Suite, kind: str, scratch: Path, *, long: bool, excluded: bool = False) -> Result:
    """Runs the short or the long form of a prepared suite, or the tests excluded from both, on its own broker.

    Failed tests run once more, alone, because many third-party tests wait for a fixed time. A second failure counts,
    and so does a skip. Raises the target's error if it does not start.
    """
    began = time.monotonic()
    listed = suite.allow_list
    known = suite.tests()
    result = Result(suite.name, kind, suite.version)
    result.disagreements = listed.disagreements(known)
    result.excluded = listed.excluded(known)
    chosen = list(result.excluded) if excluded else listed.chosen(known, long=long)
    retries = scratch / "again"
    retries.mkdir(parents=True, exist_ok=True)
    with broker(suite, kind) as target:
        found = suite.run(target.bootstrap, chosen, scratch, long=long)
        result.outcomes = {test: found.get(test, NOT_RUN) for test in chosen}
        if found and not excluded:
            for test, first in [each for each in result.failed.items() if each[1].status == FAILED]:
                second = suite.run(target.bootstrap, [test], retries, long=long).get(test, NOT_RUN)
                if second.status == PASSED:
                    result.again[test] = first
                    result.outcomes[test] = second
        (scratch / f"{suite.name}-{kind}-broker.log").write_text(target.log())
    result.seconds = time.monotonic() - began
    return result
