"""Every system call of storage may fail: see `fault_injection` for what must hold afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_injection import KINDS, run, run_in_child

SEEDS = range(1, 4)


def test_workload_without_a_fault_reaches_every_kind_of_call(tmp_path: Path) -> None:
    count, fired, kills = run(tmp_path / "data", 1, 0, "EIO")
    assert (count > 300, fired) == (True, "")
    assert kills >= 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", [1, 4])
def test_a_sample_of_faults_loses_nothing_and_keeps_nothing_refused(tmp_path: Path, seed: int, length: int) -> None:
    total, _, _ = run(tmp_path / "whole", seed, 0, "EIO")
    chance = random.Random(seed)
    for number in range(10):
        nth, kind = chance.randrange(1, total + 1), chance.choice(KINDS)
        where = f"seed {seed}, call {nth}, {kind}, {length} calls"
        print(where)
        run(tmp_path / str(number), seed, nth, kind, length=length, kill_at_once=number % 2 == 0)


def test_killed_process_after_a_fault_is_recovered(tmp_path: Path) -> None:
    for number, nth in enumerate((40, 140, 240)):
        run_in_child(tmp_path / str(number), 1, nth, KINDS[number])


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("length", [1, 4])
def test_every_fault_loses_nothing_and_keeps_nothing_refused(
    tmp_path: Path, seed: int, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    total, _, _ = run(tmp_path / "whole", seed, 0, "EIO")
    runs = kills = 0
    for nth in range(1, total + 1):
        for kind in KINDS:
            for kill_at_once in (False, True):
                runs += 1
                path = tmp_path / str(runs)
                kills += run(path, seed, nth, kind, length=length, kill_at_once=kill_at_once)[2]
    with capsys.disabled():
        print(f"\nseed {seed}: {total} points, {length} calls failing in a row, {runs} runs, {kills} kills")
