"""Every system call of storage may fail under the coordinators and the metadata store too: see `fault_coordinators`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_coordinators import run
from kafka_shim.tests.storage.fault_runs import try_every, try_sample

SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sample_of_faults_leaves_what_was_acknowledged_and_nothing_else(tmp_path: Path, seed: int) -> None:
    total, fired, kills = run(tmp_path / "whole", seed, 0, "EIO")
    assert (total > 100, fired, kills >= 2) == (True, "", True)
    try_sample(run, tmp_path, seed, total, 5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_leaves_what_was_acknowledged_and_nothing_else(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = try_every(run, tmp_path, seed)
    with capsys.disabled():
        print(f"\nseed {seed}: {done}")
