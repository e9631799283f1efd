"""Every system call of storage may fail: see `fault_injection` for what must hold afterwards."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_injection import KINDS, run, run_in_child
from kafka_shim.tests.storage.fault_runs import try_every, try_sample

SEEDS = range(1, 4)


def test_workload_without_a_fault_reaches_every_kind_of_call(tmp_path: Path) -> None:
    count, fired, kills = run(tmp_path / "data", 1, 0, "EIO")
    assert (count > 300, fired) == (True, "")
    assert kills >= 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", [1, 4])
def test_a_sample_of_faults_loses_nothing_and_keeps_nothing_refused(tmp_path: Path, seed: int, length: int) -> None:
    total, _, _ = run(tmp_path / "whole", seed, 0, "EIO")
    print(f"{length} calls fail in a row")
    try_sample(partial(run, length=length), tmp_path, seed, total, 10)


def test_killed_process_after_a_fault_is_recovered(tmp_path: Path) -> None:
    for number, nth in enumerate((40, 140, 240)):
        run_in_child(tmp_path / str(number), 1, nth, KINDS[number])


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", [1, 4])
def test_every_fault_loses_nothing_and_keeps_nothing_refused(
    tmp_path: Path, seed: int, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = try_every(partial(run, length=length), tmp_path, seed)
    with capsys.disabled():
        print(f"\nseed {seed}, {length} calls failing in a row: {done}")
