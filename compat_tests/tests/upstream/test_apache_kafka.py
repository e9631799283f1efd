"""A sample of Apache Kafka's own integration tests passes on the shim: each line of lists/sample.txt says what for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_shim.compat.upstream.apache_kafka import jvm_run, suites


@pytest.mark.java
@pytest.mark.timeout(600)
def test_the_sample_of_kafkas_own_tests_passes(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no javac")
    chosen = suites.sample()
    outcomes = jvm_run.run(jvm_run.SHIM, chosen, tmp_path / "results", tmp_path / "scratch")
    bad = {test: outcome for test, outcome in outcomes.items() if outcome.status != jvm_run.PASSED}
    assert not bad, "\n".join(f"{outcome.status}: {test}\n{outcome.message}" for test, outcome in bad.items())
    assert sorted(outcomes) == sorted(chosen)
    assert len(outcomes) == 22
