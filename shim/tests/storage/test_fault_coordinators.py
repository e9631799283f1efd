"""Every system call of storage may fail under the coordinators and the metadata store too: see `fault_coordinators`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_coordinators import run
from kafka_shim.tests.storage.fault_injection import KINDS

SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sample_of_faults_leaves_what_was_acknowledged_and_nothing_else(tmp_path: Path, seed: int) -> None:
    total, fired, kills = run(tmp_path / "whole", seed, 0, "EIO")
    assert (total > 100, fired, kills >= 2) == (True, "", True)
    chance = random.Random(seed)
    for number in range(5):
        nth, kind = chance.randrange(1, total + 1), chance.choice(KINDS)
        print(f"seed {seed}, call {nth}, {kind}")
        run(tmp_path / str(number), seed, nth, kind, kill_at_once=number % 2 == 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_leaves_what_was_acknowledged_and_nothing_else(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    total, _, _ = run(tmp_path / "whole", seed, 0, "EIO")
    runs = kills = 0
    for nth in range(1, total + 1):
        for kind in KINDS:
            for kill_at_once in (False, True):
                runs += 1
                kills += run(tmp_path / str(runs), seed, nth, kind, kill_at_once=kill_at_once)[2]
    with capsys.disabled():
        print(f"\nseed {seed}: {total} points, {runs} runs, {kills} kills")
