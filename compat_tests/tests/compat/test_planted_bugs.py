"""The scenarios bite: each deliberate bug is caught by the one that is named for it, and by no accident of the bench:
the healthy shim passes the same scenario."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kafka_shim.compat import runner
from kafka_shim.compat.scenarios import Scenario, load
from kafka_shim.compat.tests.compat.planted import Bug, PlantedShim
from kafka_shim.compat.tests.compat.planted import load as load_bugs
from kafka_shim.targets import make
from kafka_shim.targets.waiting import PATIENCE_S

# Most bugs show as an answer that never comes: it is waited for this much longer than the whole healthy scenario took.
TIMES_HEALTHY = 3
LEAST_PATIENCE_S = 3.0
# A broker that waits costs nothing.
AT_ONCE = 4
# The same names in both runs, or they differ by their names.
NONCE = "planted"

BUGS: dict[str, Bug] = load_bugs()
Pair = tuple[runner.Outcome, runner.Outcome]


def healthy(scenario: Scenario) -> runner.Outcome:
    with make("shim", settings=scenario.settings) as target:
        return runner.run_one(scenario, target, NONCE)


def planted(bug: str, scenario: Scenario, right: Future[runner.Outcome]) -> Pair:
    outcome = right.result()
    for patience_s in (max(LEAST_PATIENCE_S, TIMES_HEALTHY * outcome.seconds), PATIENCE_S):
        with PlantedShim(bug, scenario.settings) as target:
            wrong = runner.run_one(scenario, target, NONCE, patience_s)
        if BUGS[bug].says in what_it_says(outcome, wrong):
            break  # else an answer may only have been late, on a busy machine
    return outcome, wrong


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Pair]]]:
    """(healthy, planted) of each bug that was asked for, on brokers that run beside each other."""
    here = [item for item in request.session.items if item.path == request.path]
    bugs = [
        item.callspec.params["bug"] for item in here if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    scenarios = {name: each for name, each in load().items() if name in {BUGS[bug].scenario for bug in bugs}}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Tasks begin in their order: a planted run finds its healthy one begun.
        right = {name: pool.submit(healthy, each) for name, each in scenarios.items()}
        yield {
            bug: pool.submit(planted, bug, scenarios[BUGS[bug].scenario], right[BUGS[bug].scenario])
            for bug in dict.fromkeys(bugs)
        }


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, outcomes: dict[str, Future[Pair]]) -> None:
    right, wrong = outcomes[bug].result()
    assert right.status == runner.PASSED, right.reason
    said = what_it_says(right, wrong)
    assert said, f"{BUGS[bug].scenario} does not see it"
    print(f"{bug}: {BUGS[bug].scenario} says: {said}")
    assert BUGS[bug].says in said


def what_it_says(right: runner.Outcome, wrong: runner.Outcome) -> str:
    """The text of the check that failed, or the first difference from the healthy transcript."""
    if wrong.status == runner.FAILED:
        # Behind a request without an answer stands the end of the broker's log.
        return wrong.reason.partition("; the broker's log ends:")[0]
    return next((str(each) for each in runner.differences(right, wrong)), "")


def test_every_kind_of_behaviour_has_a_planted_bug() -> None:
    rows = {load()[bug.scenario].rows[0][0] for bug in BUGS.values()}
    assert rows == set("ABCFGH")
