"""The scenarios bite: each deliberate bug is caught by the one that is named for it, and by no accident of the bench:
the healthy shim passes the same scenario."""

from __future__ import annotations

import pytest

from kafka_shim.compat import runner
from kafka_shim.compat.scenarios import Scenario, load
from kafka_shim.compat.tests.compat.planted import BUGS, PlantedShim
from kafka_shim.targets import make

SCENARIOS = load()
_healthy: dict[str, runner.Outcome] = {}


def healthy(scenario: Scenario) -> runner.Outcome:
    if scenario.name not in _healthy:
        with make("shim", settings=scenario.settings) as target:
            _healthy[scenario.name] = runner.run_one(scenario, target)
    return _healthy[scenario.name]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str) -> None:
    scenario = SCENARIOS[BUGS[bug][0]]
    right = healthy(scenario)
    assert right.status == runner.PASSED, right.reason
    with PlantedShim(bug, scenario.settings) as target:
        wrong = runner.run_one(scenario, target)
    assert wrong.status == runner.FAILED or runner.differences(right, wrong), f"{scenario.name} does not see it"
    assert "ModuleNotFoundError" not in wrong.reason
