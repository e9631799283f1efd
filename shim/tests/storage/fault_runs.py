"""Which calls fail in the runs of a workload of faults, in a sample and in the long form."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from kafka_shim.tests.storage.fault_injection import KINDS

# A workload: (directory, seed, number of the call that fails or 0, kind of failure, `kill_at_once`) -> (calls, what
# failed, kills).
Run = Callable[..., tuple[int, str, int]]


def try_sample(run: Run, path: Path, seed: int, total: int, count: int) -> None:
    """Run the workload `count` times, each time with another failure of one of its `total` calls."""
    chance = random.Random(seed)
    for number in range(count):
        nth, kind = chance.randrange(1, total + 1), chance.choice(KINDS)
        print(f"seed {seed}, call {nth}, {kind}")
        run(path / str(number), seed, nth, kind, kill_at_once=number % 2 == 0)


def try_every(run: Run, path: Path, seed: int) -> str:
    """Run the workload once for each call, kind of failure and way of dying. Returns how much that was, in words."""
    total, _, _ = run(path / "whole", seed, 0, "EIO")
    runs = kills = 0
    for nth in range(1, total + 1):
        for kind in KINDS:
            for kill_at_once in (False, True):
                runs += 1
                kills += run(path / str(runs), seed, nth, kind, kill_at_once=kill_at_once)[2]
    return f"{total} points, {runs} runs, {kills} kills"
