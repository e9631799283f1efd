"""Every system call of storage may fail under share groups and a streams group too: see `fault_shares`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_runs import try_every, try_sample
from kafka_shim.tests.storage.fault_shares import run

SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sample_of_faults_delivers_nothing_again_and_loses_nothing(tmp_path: Path, seed: int) -> None:
    total, fired, kills = run(tmp_path / "whole", seed, 0, "EIO")
    assert (total > 150, fired, kills >= 2) == (True, "", True)
    try_sample(run, tmp_path, seed, total, 5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_delivers_nothing_again_and_loses_nothing(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = try_every(run, tmp_path, seed)
    with capsys.disabled():
        print(f"\nseed {seed}: {done}")
