"""Every system call of storage may fail under share groups and a streams group too: see `fault_shares`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_shim.tests.storage.fault_injection import KINDS
from kafka_shim.tests.storage.fault_shares import run

SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sample_of_faults_delivers_nothing_again_and_loses_nothing(tmp_path: Path, seed: int) -> None:
    total, fired, kills = run(tmp_path / "whole", seed, 0, "EIO")
    assert (total > 150, fired, kills >= 2) == (True, "", True)
    chance = random.Random(seed)
    for number in range(5):
        nth, kind = chance.randrange(1, total + 1), chance.choice(KINDS)
        print(f"seed {seed}, call {nth}, {kind}")
        run(tmp_path / str(number), seed, nth, kind, kill_at_once=number % 2 == 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_delivers_nothing_again_and_loses_nothing(
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
