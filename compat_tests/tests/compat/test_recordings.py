"""A recording of the Java clients' consume-transform-produce replays on each broker without a difference, and a broker
that is wrong does not pass. Spark's recordings: spark/tests/test_recording.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.compat.tests.compat.planted import PlantedShim
from kafka_shim.compat.transactions import java_pipeline
from kafka_shim.targets import make
from kafka_shim.targets.recording import recorder, replay

# Four JVMs start in the first test.
pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

KINDS = ("shim", "kafka-native")
ROUNDS, RECORDS = 3, 6
# What is in the source and in the sink: each value, the second round's once more as aborted in the sink, and markers.
FETCHED = 50


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By kind of the broker that it was recorded on."""
    folder = tmp_path_factory.mktemp("captures")
    made = {}
    for kind in KINDS:
        made[kind] = folder / kind
        with make(kind) as target, recorder(target.bootstrap, made[kind]) as address:
            found = java_pipeline.run(address, ROUNDS, RECORDS)
        assert found == [f"done-{turn}.{number}" for turn in range(ROUNDS) for number in range(RECORDS)]
    return made


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("recorded_on", KINDS)
def test_a_java_pipeline_replays_without_a_difference(captures: dict[str, Path], recorded_on: str, to: str) -> None:
    with make(to) as target:
        outcome = replay(captures[recorded_on], target.bootstrap)
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert outcome.requests > 80
    assert outcome.records >= FETCHED


@pytest.mark.parametrize("bug", ["pending_offsets_are_lost", "the_first_abort_is_forgotten"])
def test_a_broker_with_a_bug_does_not_pass(captures: dict[str, Path], bug: str) -> None:
    with PlantedShim(bug) as target:
        outcome = replay(captures["shim"], target.bootstrap, patience_s=5)
    assert outcome.findings
