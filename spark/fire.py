"""Runs the streaming job in a process of its own and kills things while it works: ``python -m spark.fire --help``.

Kills come in turn: the driver with its JVM (SIGKILL), the worker of a task at a moment inside its transaction
(SIGKILL), the broker (SIGKILL, restarted on its data). A driver that ended is started again on the same checkpoint
until it has read everything. What read_committed readers then find must be each order once.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spark import generator, plain_clients
from spark.sink import faults

if TYPE_CHECKING:
    from compat_tests.targets import Target

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("driver", "task", "broker")
PARTITIONS = 2
RUNS_AT_MOST = 100


@dataclass
class Outcome:
    """``missing`` and ``doubled``: numbers of orders; both empty when the sink kept its word."""

    kills: Counter[str] = field(default_factory=Counter)
    driver_runs: int = 0
    batches: int = 0
    found: int = 0
    missing: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_exact(self) -> bool:
        return not self.missing and not self.doubled

    def line(self) -> str:
        kills = ", ".join(f"{name} {self.kills[name]}" for name in KINDS)
        verdict = "exact" if self.is_exact else f"{len(self.missing)} missing, {len(self.doubled)} doubled"
        return (
            f"{self.found:,} records, kills: {kills}; {self.driver_runs} runs of the driver, {self.batches} batches, "
            f"{self.seconds:.0f} s: {verdict}"
        )


class Driver:
    """One run of the job. Its batches are counted as it reports them."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        # A session of its own: the JVM is a child of the driver and must die with it.
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.batches = 0
        self.tail: list[str] = []
        self._moved = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            line = raw.decode(errors="replace")
            with self._moved:
                self.tail = [*self.tail[-40:], line]
                self.batches += line.startswith("batch ")
                self._moved.notify_all()
        with self._moved:
            self._is_over = True
            self._moved.notify_all()

    def wait_for_batches(self, count: int) -> bool:
        """Whether it reported so many; False when it ended before."""
        with self._moved:
            self._moved.wait_for(lambda: self.batches >= count or self._is_over, timeout=600)
            return self.batches >= count

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> int:
        status = self.process.wait()
        self._reader.join(30)
        for stream in (self.process.stderr, self.process.stdout):
            if stream is not None:
                stream.close()
        return status


def run(target: Target, orders: int, kills: int, per_batch: int, checkpoint: Path, *, seed: int = 1) -> Outcome:
    """Writes ``orders`` orders, runs the job over them with so many kills, and counts. ``target`` is running."""
    chance = random.Random(seed)
    outcome = Outcome()
    began = time.monotonic()
    prefix = "fire-"
    for topic in (generator.ORDERS, "out"):
        plain_clients.create(target.bootstrap, prefix + topic, PARTITIONS)
    generator.write(target.bootstrap, orders, prefix=prefix, repeats=False)
    command = [
        *(sys.executable, "-m", "spark.stream", "--pipeline", "map", "--bootstrap-servers", target.bootstrap),
        *("--prefix", prefix, "--out", f"{prefix}out", "--checkpoint", str(checkpoint)),
        *("--max-offsets-per-trigger", str(per_batch)),
    ]
    turns = itertools.cycle(KINDS)
    for _ in range(RUNS_AT_MOST):
        turn = next(turns) if sum(outcome.kills.values()) < kills else None
        environment = dict(os.environ)
        if turn == "task":
            # A moment of its own for each: before, inside and after the commit.
            moment = faults.MOMENTS[outcome.kills["task"] % len(faults.MOMENTS)]
            environment[faults.VARIABLE] = f"{moment}:kill:*:1"
            environment[faults.COUNTER] = str(checkpoint.parent / f"fault-{outcome.driver_runs}")
            outcome.kills["task"] += 1
            turn = next(turns) if sum(outcome.kills.values()) < kills else None
        driver = Driver(command, environment)
        outcome.driver_runs += 1
        if turn is not None and driver.wait_for_batches(1):
            time.sleep(chance.random())
            outcome.kills[turn] += 1
            if turn == "driver":
                driver.kill()
            else:
                target.kill()
                target.start()
                # As many as there are: the next kill of the broker comes with the next run.
        status = driver.end()
        outcome.batches += driver.batches
        if status == 0 and sum(outcome.kills.values()) >= kills:
            break
        if status not in (0, -signal.SIGKILL) and turn != "broker":
            raise RuntimeError(f"the job ended with {status}:\n{''.join(driver.tail)}")
        if status == 0:
            raise RuntimeError(
                f"everything was read after {sum(outcome.kills.values())} of {kills} kills: more batches"
            )
    count(target.bootstrap, f"{prefix}out", orders, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def count(bootstrap: str, topic: str, orders: int, outcome: Outcome) -> None:
    """Compares the committed records of the topic with the orders 0 ... orders - 1."""
    times = Counter(row["order_id"] for row in plain_clients.values(bootstrap, topic))
    outcome.found = sum(times.values())
    outcome.missing = [number for number in range(orders) if number not in times]
    outcome.doubled = [number for number, seen in times.items() if seen > 1 or not 0 <= number < orders]


@click.command(help=__doc__.splitlines()[0])
@click.option("--kind", default="shim", show_default=True, help="Broker: shim or kafka-native.")
@click.option("--orders", type=int, default=1_000_000, show_default=True)
@click.option("--kills", type=int, default=20, show_default=True)
@click.option("--per-batch", type=int, default=20_000, show_default=True, help="Offsets of a micro-batch.")
def main(kind: str, orders: int, kills: int, per_batch: int) -> None:
    from compat_tests.targets import make

    with tempfile.TemporaryDirectory(prefix="fire-") as scratch, make(kind) as target:
        outcome = run(target, orders, kills, per_batch, Path(scratch) / "checkpoint")
    click.echo(outcome.line())
    sys.exit(not outcome.is_exact)


if __name__ == "__main__":
    main()
