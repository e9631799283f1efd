"""Crash tests for every step: the pipeline, with the broker killed (SIGKILL) the n-th time it reaches a point.

The points are those of `kafka_shim.faults`: the steps of the transaction state machine, and each write to any log
(before it, after it, and after memory is updated). One run kills once, restarts, lets the application finish, and
verifies.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

from kafka_shim.compat.transactions import pipeline
from kafka_shim.compat.transactions.client_pipeline import ClientPipeline
from kafka_shim.targets.base import TargetError
from kafka_shim.targets.shim_process import ShimProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

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
# With any of those armed EndTxn goes step by step and is answered at the end. This one is met where it is answered
# first, as it is without a test.
ANSWERED = "txn.answered"
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
        """Returns how often an undisturbed run reaches each point, counted from process start."""
        return self._count(POINTS) | self._count((ANSWERED,))

    def _count(self, points: tuple[str, ...]) -> dict[str, int]:
        from kafka_shim import Broker

        data_dir = self.directory / "counted"
        shutil.copytree(self.template, data_dir)
        armed = ",".join(f"{point}=error@1000000000" for point in points)
        options: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        with Broker(data_dir=data_dir, faults=armed, **options) as broker:
            app = pipeline.Pipeline(broker.bootstrap_servers, COUNT, SEED, _cannot_die)
            app.run()
            app.close()
            reached = {point: broker.faults.reached(point) for point in points}
            pipeline.verify(broker.bootstrap_servers, COUNT)
        shutil.rmtree(data_dir)
        return reached

    def run(self, *kills: tuple[str, int], stock_client: bool = False) -> int:
        """Runs the broker once for each (point, n) and kills it the n-th time it reaches the point, counted from its
        start; then runs it a last time without a kill. Returns how many of the processes were killed. Fails by
        assertion. With `stock_client` the application uses librdkafka instead of raw requests.
        """
        name = "+".join(f"{point}-{nth}" for point, nth in kills)
        target = ShimProcess(SETTINGS, self.directory / name)
        shutil.copytree(self.template, target.data_dir)
        waiting = [f"{point}=kill@{nth}" for point, nth in kills]
        deaths = 0

        def start() -> None:
            nonlocal deaths
            while True:
                target.environment["KAFKA_SHIM_FAULTS"] = armed = waiting.pop(0) if waiting else ""
                try:
                    target.start()
                except TargetError as failed:
                    # It died before it was ready: at a write of the start, or of a transaction that it resumed.
                    assert armed, str(failed)
                    deaths += 1
                else:
                    return

        def revive() -> None:
            nonlocal deaths
            assert target.process is not None
            status = target.process.wait(60)
            assert status == -9, f"the broker ended with status {status}"
            assert target.environment["KAFKA_SHIM_FAULTS"], "it died without a reason"
            target.kill()
            deaths += 1
            start()

        try:
            start()
            if stock_client:
                ClientPipeline(target.bootstrap, COUNT, SEED, revive, lambda: _is_dead(target)).run()
            else:
                app = pipeline.Pipeline(target.bootstrap, COUNT, SEED, revive)
                try:
                    app.run()
                finally:
                    app.close()
            if target.environment["KAFKA_SHIM_FAULTS"].startswith(ANSWERED):
                revive()  # the application had its last answer and was done before the broker died
            pipeline.verify(target.bootstrap, COUNT)
            # The files must agree with the state in memory.
            target.environment.clear()
            target.restart(kill=True)
            pipeline.verify(target.bootstrap, COUNT)
        except AssertionError as failed:
            raise AssertionError(f"killed at {name}: {failed}\n{target.log()[-3000:]}") from failed
        finally:
            target.close()
            target.log_path.unlink(missing_ok=True)
            shutil.rmtree(target.data_dir, ignore_errors=True)
        return deaths


# The points at which a second kill interrupts a transaction that the restarted broker resumes.
RESUMED_AT = (
    ("txn.after_marker", 1),
    ("txn.after_marker", 2),
    ("txn.before_complete", 1),
    ("log.before_write", 3),
    ("log.after_write", 4),
    ("log.after_append", 5),
)


def every_pair(counts: dict[str, int]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yields each kill between PREPARE and COMPLETE, with each kill while that transaction is resumed."""
    for point in ("txn.after_prepare", "txn.after_marker", "txn.before_complete", ANSWERED):
        for nth in range(1, counts[point] + 1):
            for second in RESUMED_AT:
                yield (point, nth), second


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


def _is_dead(target: ShimProcess) -> bool:
    return target.process is not None and target.process.poll() is not None


def _cannot_die() -> None:
    raise AssertionError("nothing was to kill this broker")


def _fast_directory() -> str | None:
    """Returns a RAM-backed directory if there is one. SIGKILL tests do not depend on a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
