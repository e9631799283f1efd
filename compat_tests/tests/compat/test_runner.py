"""The runner judges as it says: what passed, failed, cannot be shown, differs, and may differ."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kafka_shim.compat import runner
from kafka_shim.compat.differences import DIFFERENCES, reason_for
from kafka_shim.compat.report import Report
from kafka_shim.compat.runner import FAILED, NOT_APPLICABLE, PASSED, Difference, Outcome, differences
from kafka_shim.compat.scenarios import Scenario, load
from kafka_shim.compat.scenarios.scenario_client import Disagreement, ScenarioClient
from kafka_shim.targets import Power, Target, make
from kafka_shim.targets.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with make("shim-embedded") as started:
        yield started


def _asks(client: ScenarioClient) -> None:
    """Asks."""
    client.topic()
    client.error(client.ask("FindCoordinator", 3, key=client.name("g"), key_type=9), "INVALID_REQUEST")


def _is_wrong(client: ScenarioClient) -> None:
    client.note("before", "", "")
    client.same(1, 2, "one")


def _is_broken(client: ScenarioClient) -> None:
    raise RuntimeError("a bug of the scenario")


def test_a_scenario_that_holds_passes_with_its_transcript(target: Target) -> None:
    outcome = runner.run_one(Scenario("x", ("A1",), _asks), target)
    assert (outcome.status, outcome.reason) == (PASSED, "")
    assert [what for what, _, _ in outcome.steps] == ["FindCoordinator v3"]
    assert "INVALID_REQUEST" in str(outcome.steps)


def test_what_does_not_hold_fails_with_what_was_said_before(target: Target) -> None:
    outcome = runner.run_one(Scenario("x", ("A1",), _is_wrong), target)
    assert (outcome.status, outcome.reason) == (FAILED, "one: 1 where 2 is right")
    assert len(outcome.steps) == 1
    broken = runner.run_one(Scenario("x", ("A1",), _is_broken), target)
    assert broken.status == FAILED
    assert "a bug of the scenario" in broken.reason


def test_a_power_that_the_target_lacks_is_named(target: Target) -> None:
    outcome = runner.run_one(Scenario("x", ("A1",), _asks, Power.KILL), target)
    assert (outcome.status, outcome.reason) == (NOT_APPLICABLE, "needs KILL, which shim-embedded has not")


def test_two_runs_with_one_name_leave_equal_transcripts(target: Target) -> None:
    one, two = (runner.run_one(load()["b8-offsets-join-by-version"], target, nonce) for nonce in ("aaaaaa", "bbbbbb"))
    assert one.status == two.status == PASSED, one.reason + two.reason
    assert [what for what, _, _ in one.steps] == [what for what, _, _ in two.steps]
    assert "aaaaaa" not in str(one.steps)


def test_differences_name_the_step_and_the_path() -> None:
    ours = Outcome(PASSED, "", [("Fetch v12", {}, {"rows": [{"a": 1}]}), ("Fetch v12", {}, {})])
    theirs = Outcome(PASSED, "", [("Fetch v12", {}, {"rows": [{"a": 2}]})])
    found = [str(each) for each in differences(ours, theirs)]
    assert found == [
        "step 0, Fetch v12 answer.rows[0].a: 1 where the other has 2",
        "step 1, steps: 2 where the other has 1",
    ]


def test_an_allowed_difference_is_allowed_in_its_scenario_alone() -> None:
    (row,) = [each for each in DIFFERENCES if each.scenario]
    difference = Difference(0, "Produce v12", " answer.error_code", "NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert reason_for(row.scenario, difference) == row.why
    assert reason_for("a4-five-batches-are-remembered", difference) is None
    assert all(any(each == known for known in load()) for each in {row.scenario})


def _fails_once(seen: list[str], *, spoils: bool = False) -> Scenario:
    def run(client: ScenarioClient) -> None:
        """Fails the first time on each target."""
        first = client.target.kind not in seen
        seen.append(client.target.kind)
        if first:
            raise Disagreement("not at first")
        client.topic()

    return Scenario("once", ("A1",), run, spoils=spoils)


def test_the_shim_gets_no_second_try(target: Target) -> None:
    seen: list[str] = []
    found = runner.run([_fails_once(seen)], ["shim-embedded"])["once"]["shim-embedded"]
    assert (found.status, found.second_try, seen) == (FAILED, "", ["shim-embedded"])


@pytest.mark.parametrize("spoils", [False, True], ids=["on the shared broker", "on a broker of its own"])
def test_a_second_try_of_another_broker_is_reported(target: Target, spoils: bool) -> None:
    """The other broker is a shim that runs elsewhere, taken for a foreign one."""
    seen: list[str] = ["shim-embedded"]
    kinds = ["shim-embedded", f"external={target.bootstrap}"]
    scenario = _fails_once(seen, spoils=spoils)
    results = runner.run([scenario], kinds)
    found = results["once"][kinds[1]]
    assert (found.status, found.second_try) == (PASSED, "failed: not at first")
    told = Report([scenario], kinds, results, 0.0)
    assert told.second_tries == [("once", kinds[1], "failed: not at first")]
    assert f"second try: once on {kinds[1]}, which at first failed: not at first" in told.text()


def test_another_broker_that_ends_first_is_compared_with_the_first_target(target: Target) -> None:
    """The order in which the brokers end a scenario does not decide which of them is compared with which."""
    kinds = ["shim-embedded", f"external={target.bootstrap}"]
    has_ended, seen = threading.Event(), []

    def run(client: ScenarioClient) -> None:
        """Differs on the other broker, which ends first, at its first try."""
        is_first = client.target.kind == kinds[0]
        if is_first:
            assert has_ended.wait(PATIENCE_S)
        seen.append(client.target.kind)
        client.note("try", "", "right" if is_first or len(seen) > 2 else "other")

    def progress(_name: str, kind: str, _outcome: Outcome) -> None:
        if kind == kinds[1]:
            has_ended.set()

    scenario = Scenario("late", ("A1",), run)
    results = runner.run([scenario], kinds, progress)
    told = Report([scenario], kinds, results, 0.0)
    assert told.second_tries == [
        ("late", kinds[1], "differed: step 0, try answer: 'right' where the other has 'other'")
    ]
    assert told.is_good


def test_every_scenario_says_what_it_shows() -> None:
    for scenario in load().values():
        assert scenario.title.endswith("."), scenario.name
        assert bool(scenario.needs & Power.INSIDE) == bool(scenario.unobservable), scenario.name
