"""Crash at every step: the pipeline, with the broker killed (SIGKILL) at the n-th time it reaches a point.

The points are those of `shim.faults`: the steps of the transaction machine, and each write to any log, before it, after
it, and when memory knows it. One run kills once, restarts, lets the application finish, and verifies.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from compat_tests.targets.base import TargetError
from compat_tests.targets.shim_process import ShimProcess
from compat_tests.transactions import pipeline

COUNT = 12
SEED = 5
POINTS = (
    "txn.before_begin",
    "txn.after_begin",
    "txn.before_prepare",
    "txn.after_prepare",
    "txn.after_marker",
    "txn.before_complete",
    "txn.after_complete",
    "log.before_write",
    "log.after_write",
    "log.after_append",
    "metadata.before_commit",
    "metadata.after_append",
    "group.before_append",
    "group.after_append",
)
# Few partitions of the internal topics: less to make and to recover, the same paths.
SETTINGS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


class CrashHarness:
    """Holds a data directory with the input, from which each run starts. A context manager."""

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="crash-steps-", dir=_fast_directory()))
        self.template = self.directory / "template"
        with ShimProcess(SETTINGS, self.template) as target:
            pipeline.fill(target.bootstrap, COUNT)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def counts(self) -> dict[str, int]:
        """How often an undisturbed run reaches each point, from the start of the process on."""
        from shim import Broker

        data_dir = self.directory / "counted"
        shutil.copytree(self.template, data_dir)
        armed = ",".join(f"{point}=error@1000000000" for point in POINTS)
        options = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        with Broker(data_dir=data_dir, faults=armed, **options) as broker:
            app = pipeline.Pipeline(broker.bootstrap_servers, COUNT, SEED, _cannot_die)
            app.run()
            app.close()
            reached = {point: broker.faults.reached(point) for point in POINTS}
            pipeline.verify(broker.bootstrap_servers, COUNT)
        shutil.rmtree(data_dir)
        return reached

    def run(self, point: str, nth: int) -> bool:
        """Kill at the `nth` time at `point`; False when the run ended before. Fails by assertion."""
        data_dir = self.directory / f"{point}-{nth}"
        shutil.copytree(self.template, data_dir)
        target = ShimProcess(SETTINGS, data_dir)
        target.environment["KAFKA_SHIM_FAULTS"] = f"{point}=kill@{nth}"
        killed = False

        def start() -> None:
            nonlocal killed
            try:
                target.start()
            except TargetError:
                # It died before it was ready: at a write of the start itself.
                assert "KAFKA_SHIM_FAULTS" in target.environment, target.log()
                killed = True
                target.environment.pop("KAFKA_SHIM_FAULTS")
                target.start()

        def revive() -> None:
            nonlocal killed
            assert target.process is not None
            status = target.process.wait(20)
            assert status == -9, f"the broker ended with status {status}:\n{target.log()[-3000:]}"
            target.kill()
            assert not killed, "it died twice"
            killed = True
            target.environment.pop("KAFKA_SHIM_FAULTS", None)
            target.start()

        try:
            start()
            app = pipeline.Pipeline(target.bootstrap, COUNT, SEED, revive)
            try:
                app.run()
            finally:
                app.close()
            pipeline.verify(target.bootstrap, COUNT)
            # What the files say is what memory said.
            target.environment.pop("KAFKA_SHIM_FAULTS", None)
            target.restart(kill=True)
            pipeline.verify(target.bootstrap, COUNT)
        except AssertionError as failed:
            raise AssertionError(f"killed at {point}, time {nth}: {failed}\n{target.log()[-3000:]}") from failed
        finally:
            target.close()
            target.log_path.unlink(missing_ok=True)
            shutil.rmtree(data_dir, ignore_errors=True)
        return killed


def every(counts: dict[str, int]) -> Iterator[tuple[str, int]]:
    """All (point, n)."""
    for point, count in counts.items():
        for nth in range(1, count + 1):
            yield point, nth


def sample(counts: dict[str, int], size: int, seed: int) -> list[tuple[str, int]]:
    """`size` of them, and at least one of each point that is reached."""
    chance = random.Random(seed)
    one_each = [(point, chance.randint(1, count)) for point, count in counts.items() if count]
    rest = [each for each in every(counts) if each not in one_each]
    return one_each + chance.sample(rest, min(len(rest), max(0, size - len(one_each))))


def _cannot_die() -> None:
    raise AssertionError("nothing was to kill this broker")


def _fast_directory() -> str | None:
    """A RAM-backed directory where there is one: SIGKILL does not ask for a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
