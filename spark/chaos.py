"""Runs the streaming job in a process of its own and kills things while it works.

Each run of the driver meets up to three: a task at a moment before, inside or after its commit (SIGKILL of its worker,
or an exception), the broker (SIGKILL, restarted on its data), and last the driver itself with its JVM (SIGKILL). It is
started again on the same checkpoint until it has read everything. What read_committed readers then find must be each
order once.
"""

from __future__ import annotations

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

import click

from kafka_shim.spark import generator, plain_clients, stream
from kafka_shim.spark.sink import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.targets import Target

KINDS = ("driver", "task", "broker")
PARTITIONS = 2
RUNS_AT_MOST = 100


@dataclass
class Outcome:
    """The result of a run. ``missing``, ``doubled`` and ``wrong`` are order numbers; all are empty if the sink was
    exactly-once.
    """

    kills: Counter[str] = field(default_factory=Counter)
    driver_runs: int = 0
    batches: int = 0
    found: int = 0
    missing: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_exact(self) -> bool:
        return not self.missing and not self.doubled and not self.wrong

    def line(self) -> str:
        kills = ", ".join(f"{name} {self.kills[name]}" for name in KINDS)
        verdict = f"{len(self.missing)} missing, {len(self.doubled)} doubled, {len(self.wrong)} wrong"
        return (
            f"{self.found:,} records, kills: {kills}; {self.driver_runs} runs of the driver, {self.batches} batches, "
            f"{self.seconds:.0f} s: {'exact' if self.is_exact else verdict}"
        )


class Driver:
    """One run of the job. Counts the batches that the job reports."""

    KEPT_LINES = 40
    """Of its output, for who has to know why it ended."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path) -> None:
        # A session of its own: the JVM is a child of the driver and must die with it.
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
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
                self.tail = [*self.tail[-self.KEPT_LINES :], line]
                self.batches += line.startswith("batch ")
                self._moved.notify_all()
        with self._moved:
            self._is_over = True
            self._moved.notify_all()

    def wait_for_batches(self, count: int) -> bool:
        """Returns True once the job has reported `count` batches, False if it ended before."""
        with self._moved:
            self._moved.wait_for(lambda: self.batches >= count or self._is_over, timeout=600)
            return self.batches >= count

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> int:
        status = self.process.wait()
        self._reader.join(30)
        for pipe in (self.process.stderr, self.process.stdout):
            if pipe is not None:
                pipe.close()
        return status


class TaskFault:
    """A failure for the first task of the sink that reaches a given moment, once per run of the driver. The moments and
    the actions (SIGKILL of the worker, an exception) alternate.
    """

    def __init__(self, number: int, counter: Path) -> None:
        self.counter = counter
        moment = faults.MOMENTS[number % len(faults.MOMENTS)]
        action = ("kill", "raise")[number // len(faults.MOMENTS) % 2]
        self.environment = {faults.VARIABLE: f"{moment}:{action}:*:1", faults.COUNTER: str(counter)}

    @property
    def happened(self) -> bool:
        return self.counter.with_name(f"{self.counter.name}.0").exists()


def plan(kills: Counter[str], left: int) -> set[str]:
    """Returns the kinds of kills for the next run of the driver: each once while kills are left, then the least
    frequent.
    """
    return set(sorted(KINDS, key=lambda kind: kills[kind])[: max(left, 0)])


def run(
    target: Target,
    orders: int,
    kills: int,
    per_batch: int,
    checkpoint: Path,
    *,
    sink: str = stream.FOREACH_BATCH,
    seed: int = 1,
    echo: Callable[[str], None] | None = None,
) -> Outcome:
    """Writes ``orders`` orders, runs the job over them with the given number of kills, and counts the output.
    ``target`` must be running. What a killed Spark leaves behind goes to the parent directory of ``checkpoint``.
    """
    chance = random.Random(seed)
    outcome = Outcome()
    began = time.monotonic()
    scratch = checkpoint.parent

    def say(line: str) -> None:
        if echo is not None:
            echo(f"{time.monotonic() - began:6.1f} s  {line}")

    prefix = "chaos-"
    for topic in (generator.ORDERS, "out"):
        plain_clients.create(target.bootstrap, prefix + topic, PARTITIONS)
    generator.write(target.bootstrap, orders, prefix=prefix, repeats=False)
    say(f"{orders:,} orders are written")
    job = ("--pipeline", "map", "--bootstrap-servers", target.bootstrap, "--prefix", prefix, "--out", f"{prefix}out")
    pace = ("--checkpoint", str(checkpoint), "--max-offsets-per-trigger", str(per_batch), "--sink", sink)
    command = [sys.executable, "-m", "kafka_shim.spark.stream", *job, *pace]
    while outcome.driver_runs < RUNS_AT_MOST:
        kinds = plan(outcome.kills, kills - outcome.kills.total())
        driver = _run_driver(target, command, scratch, kinds, outcome, chance)
        say(f"run {outcome.driver_runs}: {driver.batches} batches, kills so far: {dict(outcome.kills)}")
        status = driver.process.returncode
        if status == 0 and outcome.kills.total() >= kills:
            break
        if status not in (0, -signal.SIGKILL) and "broker" not in kinds:
            raise RuntimeError(f"the job ended with {status}:\n{''.join(driver.tail)}")
        if status == 0:
            raise RuntimeError(f"everything was read after {outcome.kills.total()} of {kills} kills: more batches")
    else:
        raise RuntimeError(f"the job did not come to its end in {RUNS_AT_MOST} runs")
    count(target.bootstrap, f"{prefix}out", orders, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _run_driver(
    target: Target, command: list[str], scratch: Path, kinds: set[str], outcome: Outcome, chance: random.Random
) -> Driver:
    """Runs the job once, kills what `kinds` names, and counts it in `outcome`. Returns the driver when it has ended."""
    fault = TaskFault(outcome.kills["task"], scratch / f"fault-{outcome.driver_runs}")
    surroundings = {**os.environ, "SPARK_LOCAL_DIRS": str(scratch)}
    driver = Driver(command, {**surroundings, **(fault.environment if "task" in kinds else {})}, scratch)
    outcome.driver_runs += 1
    try:
        if "broker" in kinds and driver.wait_for_batches(1):
            time.sleep(chance.random())  # anywhere in the next batch
            outcome.kills["broker"] += 1
            target.kill()
            target.start()
        # The driver last. If it survived the broker, it would continue and read everything.
        if "driver" in kinds and driver.wait_for_batches(driver.batches + 1):
            time.sleep(chance.random())  # anywhere in the next batch
            outcome.kills["driver"] += 1
            driver.kill()
        driver.end()
    except BaseException:
        driver.kill()
        raise
    outcome.batches += driver.batches
    outcome.kills["task"] += fault.happened
    return driver


def expected(number: int) -> dict[str, object]:
    """Returns the job's output for the order of that number."""
    order: dict[str, Any] = generator.order(number)
    cents = order["amount_cents"]
    return {"order_id": number, "amount_cents": cents, "tax_cents": cents * stream.TAX_PERCENT // 100}


def count(bootstrap: str, topic: str, orders: int, outcome: Outcome) -> None:
    """Compares the committed records of the topic with the expected output of the orders 0 ... orders - 1."""
    times: Counter[int] = Counter()
    for row in plain_clients.values(bootstrap, topic):
        number = row["order_id"]
        times[number] += 1
        if row != expected(number):
            outcome.wrong.append(number)
    outcome.found = times.total()
    outcome.missing = [number for number in range(orders) if number not in times]
    outcome.doubled = [number for number, seen in times.items() if seen > 1 or not 0 <= number < orders]


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--kind", default="shim", show_default=True, help="Broker: shim or kafka-native.")
@click.option("--orders", type=int, default=1_000_000, show_default=True)
@click.option("--kills", type=int, default=20, show_default=True)
@click.option("--per-batch", type=int, default=20_000, show_default=True, help="Offsets of a micro-batch.")
@click.option(
    "--sink",
    type=click.Choice([stream.FOREACH_BATCH, stream.DATA_SOURCE]),
    default=stream.FOREACH_BATCH,
    show_default=True,
)
def main(kind: str, orders: int, kills: int, per_batch: int, sink: str) -> None:
    from kafka_shim.targets import make

    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch, make(kind) as target:
        checkpoint = Path(scratch) / "checkpoint"
        outcome = run(
            target, orders, kills, per_batch, checkpoint, sink=sink, echo=lambda line: print(line, file=sys.stderr)
        )
    click.echo(outcome.line())
    sys.exit(not outcome.is_exact)


if __name__ == "__main__":
    main()
