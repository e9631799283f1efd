"""Which calls fail in the runs of a workload of faults, in a sample and in the long form."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
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
    """Run the workload once for each call, kind of failure and way of dying. Returns how much that was, in words.

    KAFKA_SHIM_FAULT_MINUTES bounds the time of one such test: the runs are then taken in a random order, and what is
    returned says how many of them there were. A run that finds something fails the test and says which it was.
    """
    total, _, _ = run(path / "whole", seed, 0, "EIO")
    every = list(itertools.product(range(1, total + 1), KINDS, (False, True)))
    minutes = os.environ.get("KAFKA_SHIM_FAULT_MINUTES")
    if minutes is not None:
        random.Random(seed).shuffle(every)
    end_s = time.monotonic() + 60 * float(minutes or "inf")
    runs = kills = 0
    points = set()
    for nth, kind, kill_at_once in every:
        if time.monotonic() > end_s:
            break
        try:
            kills += run(path / str(runs), seed, nth, kind, kill_at_once=kill_at_once)[2]
        except BaseException as error:
            error.add_note(f"seed {seed}, call {nth} of {total}, {kind}, {kill_at_once=}, after {runs} runs")
            raise
        shutil.rmtree(path / str(runs), ignore_errors=True)
        runs += 1
        points.add(nth)
    return f"{len(points)} of {total} points, {runs} of {len(every)} runs, {kills} kills, no finding"
