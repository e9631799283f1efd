"""The parts of the bench: each starts its brokers, warm or new, and does its cases on them."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench import data, groups, loop, machine, rounds, scale, security, start, transactions
from bench.client_process import ROOT, anonymous_mb
from bench.rounds import KAFKA, SHIM, YARDSTICK, Side
from kafka_shim.targets import Target, make
from kafka_shim.targets.base import ProcessTarget, free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from bench.rounds import Pace

    # Takes the results of a case, or facts of the brokers, by a name.
    Keep = Callable[[str, Any], None]


class Yardstick(ProcessTarget):
    kind = "yardstick"

    def start(self) -> Self:
        if not self.bootstrap:
            self.bootstrap = f"127.0.0.1:{free_ports(1)[0]}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._spawn(
            [sys.executable, "-m", "bench.yardstick", str(self.port), str(self.data_dir)], environment=environment
        )
        self.wait_until_it_answers()
        return self


def _target(kind: str) -> Target:
    if kind == YARDSTICK:
        return Yardstick()
    return make({SHIM: "shim", KAFKA: "kafka-native"}[kind], is_measured=True)


def _started(stack: ExitStack, *kinds: str) -> dict[str, Side]:
    return {kind: Side(kind, stack.enter_context(_target(kind))) for kind in kinds}


def run_start(pace: Pace, keep: Keep) -> None:
    placeholders = {kind: Side(kind, Target()) for kind in (SHIM, KAFKA)}
    rounds.run(start.CASES, placeholders, pace, keep)


def run_data(pace: Pace, keep: Keep) -> None:
    with ExitStack() as stack:
        sides = _started(stack, SHIM, KAFKA, YARDSTICK)
        keep("jvm", machine.jvm_flags(sides[KAFKA].target.pid or 0))
        rounds.run(data.cases(pace.megabytes), sides, pace, keep)
        after = {kind: {"memory_mb": anonymous_mb(side.target)} for kind, side in sides.items()}
        keep("memory after", {"rounds": [{"state": state, "figures": after} for state in machine.STATES]})


def run_transactions(pace: Pace, keep: Keep) -> None:
    with ExitStack() as stack:
        sides = _started(stack, SHIM, KAFKA)
        for side in sides.values():
            transactions.prepare(stack, side)
        rounds.run(transactions.CASES, sides, pace, keep)


def run_groups(pace: Pace, keep: Keep) -> None:
    with ExitStack() as stack:
        sides = _started(stack, SHIM, KAFKA, YARDSTICK)
        for kind in (SHIM, KAFKA):
            groups.prepare(sides[kind])
        rounds.run(groups.CASES, sides, pace, keep)


def run_security(pace: Pace, keep: Keep) -> None:
    pace = replace(pace, megabytes=max(pace.megabytes // 2, 1))
    with ExitStack() as stack:
        setup = security.Setup(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))))
        sides, suites = {}, {}
        for kind, made in security.KINDS.items():
            secured = made(setup.settings, protocols=("SSL", "SASL_PLAINTEXT"))
            secured.target.prepare_for_measuring()
            stack.enter_context(secured)
            sides[kind] = Side(kind, secured.target, secured.bootstrap)
            security.prepare(sides[kind], secured, setup)
            suites[kind] = security.suite_of(secured.addresses["SSL"])
        keep("tls", suites)
        rounds.run(security.cases(pace.megabytes), sides, pace, keep)


def run_scale(pace: Pace, keep: Keep) -> None:
    once = replace(pace, rounds=1)
    rounds.run(scale.CASES, {SHIM: Side(SHIM, Target())}, once, keep)


def run_loop(pace: Pace, keep: Keep) -> None:
    with loop.Watched() as target:
        side = Side(SHIM, target)
        loop.prepare(side)
        cases = loop.cases(target.data_dir)
        rounds.run(cases, {SHIM: side}, replace(pace, rounds=1 if pace.is_small else 3), keep)


PARTS: dict[str, Callable[[Pace, Keep], None]] = {
    "start": run_start,
    "data": run_data,
    "transactions": run_transactions,
    "groups": run_groups,
    "security": run_security,
    "scale": run_scale,
    "loop": run_loop,
}


def run(names: Sequence[str], pace: Pace, keep: Callable[[str, Any], None]) -> dict[str, str]:
    """Does the parts by name; `keep` takes the case, or a fact's name, and the result. A part that fails ends, and the
    next ones are done: returns why, by part."""
    failed = {}
    for name in names:
        try:
            PARTS[name](pace, keep)
        except Exception as error:
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return failed
