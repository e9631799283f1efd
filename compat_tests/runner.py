"""Runs scenarios on targets. Scenarios that only send requests share one broker of each kind and run concurrently;
others get their own broker.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from kafka_shim.compat.comparison import unequal
from kafka_shim.compat.scenarios.scenario_client import Disagreement, ScenarioClient, warm_up
from kafka_shim.targets import Power, Target, make
from kafka_shim.targets.kafka_container import KafkaContainer
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from kafka_shim.compat.scenarios import Scenario

# Concurrent scenarios on one broker. A scenario mostly waits for responses.
WORKERS = 4
# Concurrent brokers of their own. A JVM needs a core to start.
ALONE = 2

# For every broker that is started here: check for timed-out transactions often.
COMMON = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}

# For brokers that are restarted: few partitions of the coordinators' topics are quick to create and to load.
FEW = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"


@dataclass
class Outcome:
    """The result of one scenario on one target."""

    status: str
    reason: str = ""
    steps: list[tuple[str, Any, Any]] = field(default_factory=list)
    seconds: float = 0.0
    # Why this is the result of a second try; empty for a first one.
    second_try: str = ""


Results = dict[str, dict[str, Outcome]]


def run_one(scenario: Scenario, target: Target, nonce: str = "", patience_s: float = PATIENCE_S) -> Outcome:
    """Runs a scenario on a started target. `nonce` marks the names of this run. A response that does not come within
    `patience_s` seconds fails the scenario.
    """
    if scenario.needs & ~target.powers:
        missing = scenario.needs & ~target.powers
        reason = f"needs {missing.name or missing}, which {target.kind} has not"
        if Power.INSIDE in missing:
            reason = f"not observable: {scenario.unobservable}"
        return Outcome(NOT_APPLICABLE, reason)
    client = ScenarioClient(target, nonce, patience_s)
    began = time.monotonic()
    try:
        scenario.run(client)
        status, reason = PASSED, ""
    except Disagreement as error:
        status, reason = FAILED, str(error)
    except WireClientError as error:
        status, reason = FAILED, f"{error}; the broker's log ends:\n{target.log()[-1500:]}"
    except Exception:
        status, reason = FAILED, traceback.format_exc()
    finally:
        client.close()
    return Outcome(status, reason, client.steps, time.monotonic() - began)


class Shared:
    """The broker of one kind that most scenarios share. Started when the first scenario needs it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.target: Target | None = None
        self.lock = threading.Lock()

    def get(self) -> Target:
        with self.lock:
            if self.target is None:
                self.target = started(self.kind, COMMON)
            return self.target

    def close(self) -> None:
        if self.target is not None:
            self.target.close()


def run(
    scenarios: Iterable[Scenario], kinds: Iterable[str], progress: Callable[[str, str, Outcome], None] = lambda *_: None
) -> Results:
    """Runs every scenario on every kind of target. `progress` is called from worker threads."""
    this = Run(list(scenarios), kinds, progress)
    try:
        this.try_all()
        this.try_doubtful_again()
    finally:
        this.close()
    return this.results


class Run:
    """All scenarios on all kinds of targets, with the brokers that scenarios share."""

    def __init__(
        self, scenarios: list[Scenario], kinds: Iterable[str], progress: Callable[[str, str, Outcome], None]
    ) -> None:
        self.results: Results = {scenario.name: {} for scenario in scenarios}
        self._scenarios = scenarios
        self._progress = progress
        self._shared = {kind: Shared(kind) for kind in kinds}
        self._nonces = {scenario.name: os.urandom(3).hex() for scenario in scenarios}

    def try_all(self) -> None:
        with ThreadPoolExecutor(WORKERS * len(self._shared)) as pool, ThreadPoolExecutor(ALONE) as apart:
            waiting: list[Future[None]] = []
            for kind in reversed(list(self._shared)):  # the slow starters first
                able = [each for each in self._scenarios if not each.needs & ~_powers(kind)]
                beside = [each for each in self._scenarios if each not in able or not each.is_alone]
                waiting += [pool.submit(self._together, scenario, kind) for scenario in beside]
                waiting += [apart.submit(self._in_turn, mine, kind) for mine in _by_settings(able)]
            for future in waiting:
                future.result()

    def try_doubtful_again(self) -> None:
        """A scenario that failed on another broker than the shim, or has another transcript there, is run there again,
        alone on a new one, because concurrent ones and a slow machine can affect it: for example, Kafka verifies
        partitions of several requests together and responds by the version of one of them. The report names it. The
        shim gets no second try."""
        first = next(iter(self._shared))
        for kind in [kind for kind in self._shared if not kind.startswith("shim")]:
            doubts = [
                (scenario, why)
                for scenario in self._scenarios
                for results in [self.results[scenario.name]]
                if (why := _doubt(scenario, results[first], results[kind]))
            ]
            if any(not scenario.is_alone for scenario, _ in doubts):
                self._shared[kind].close()
                self._shared[kind] = Shared(kind)
            for scenario, why in doubts:
                if scenario.is_alone:
                    self._in_turn([scenario], kind)
                else:
                    self._together(scenario, kind)
                self.results[scenario.name][kind].second_try = why

    def close(self) -> None:
        if java := sys.modules.get("kafka_shim.compat.apps.java"):
            java.close()
        for each in self._shared.values():
            each.close()

    def _note(self, scenario: Scenario, kind: str, outcome: Outcome) -> None:
        self.results[scenario.name][kind] = outcome
        self._progress(scenario.name, kind, outcome)

    def _together(self, scenario: Scenario, kind: str) -> None:
        try:
            outcome = run_one(scenario, self._shared[kind].get(), self._nonces[scenario.name])
        except Exception as error:
            outcome = Outcome(FAILED, f"{type(error).__name__}: {error}")
        self._note(scenario, kind, outcome)

    def _in_turn(self, mine: list[Scenario], kind: str) -> None:
        """Scenarios that need the same broker for themselves, one after the other; after a failure, or one that
        spoils it, on a new one."""
        target: Target | None = None
        for scenario in sorted(mine, key=lambda each: each.spoils):
            try:
                if target is None:
                    target = started(kind, {**COMMON, **FEW, **scenario.settings})
                outcome = run_one(scenario, target, self._nonces[scenario.name])
            except Exception as error:
                outcome = Outcome(FAILED, f"{type(error).__name__}: {error}")
            if (outcome.status == FAILED or scenario.spoils) and target is not None:
                target.close()
                target = None
            self._note(scenario, kind, outcome)
        if target is not None:
            target.close()


def _by_settings(scenarios: Iterable[Scenario]) -> list[list[Scenario]]:
    """Returns those that need a broker for themselves, in groups with the same settings."""
    groups: dict[tuple[tuple[str, str], ...], list[Scenario]] = {}
    for scenario in scenarios:
        if scenario.is_alone:
            groups.setdefault(tuple(sorted(scenario.settings.items())), []).append(scenario)
    return list(groups.values())


def _doubt(scenario: Scenario, first: Outcome, mine: Outcome) -> str:
    """Returns why a result deserves a second try: it failed, or differs from the first target's without being allowed
    to. Otherwise an empty string."""
    from kafka_shim.compat.differences import reason_for

    if mine.status == FAILED:
        return f"failed: {mine.reason.strip().splitlines()[-1] if mine.reason.strip() else 'without a reason'}"
    if mine.status == first.status == PASSED:
        for each in differences(first, mine):
            if reason_for(scenario.name, each) is None:
                return f"differed: {each}"
    return ""


def started(kind: str, settings: Mapping[str, str]) -> Target:
    """Returns a started broker whose coordinators are loaded."""
    target = make(kind, settings=settings)
    if isinstance(target, (KafkaNative, KafkaContainer)):
        target.start_timeout_s = 180.0
    try:
        target.start()
        warm_up(target)
    except BaseException:
        target.close()
        raise
    return target


def _powers(kind: str) -> Any:
    return type(make(kind)).powers


@dataclass(frozen=True)
class Difference:
    """A difference between two transcripts. `path` is its place inside the step."""

    step: int
    what: str
    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"step {self.step}, {self.what}{self.path}: {self.ours!r} where the other has {self.theirs!r}"


def differences(ours: Outcome, theirs: Outcome) -> list[Difference]:
    """Returns every difference between two transcripts. A missing step is a difference too."""
    found: list[Difference] = []
    for number, (mine, other) in enumerate(zip(ours.steps, theirs.steps, strict=False)):
        if mine[0] != other[0]:
            return [*found, Difference(number, "order of steps", "", mine[0], other[0])]
        for part, one, two in (("request", mine[1], other[1]), ("answer", mine[2], other[2])):
            found += [Difference(number, mine[0], f" {part}{path}", a, b) for path, a, b in unequal(one, two)]
    if len(ours.steps) != len(theirs.steps):
        found.append(
            Difference(min(len(ours.steps), len(theirs.steps)), "steps", "", len(ours.steps), len(theirs.steps))
        )
    return found
