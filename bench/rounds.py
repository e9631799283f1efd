"""How every figure beside Apache Kafka is taken: cases, warm-up, rounds in pairs, and the one statistic.

A case is one kind of work. Before the first one each side does some of every case: a JVM compiles what it does often,
for the first 10 to 20 s of a load, and until then Kafka has a tenth to a half of its rate. Before its rounds a case
works on each side for equal times until its figure is stable; then every round does the case once on each side in each
state of the machine. The side and the state that begin change from round to round. All steps are kept; a ratio is the
median of the rounds' ratios with the least and the greatest.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field, replace

from bench import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from kafka_shim.targets import Target

    Figures = dict[str, float]

SHIM, KAFKA, YARDSTICK, FLOOR = "shim", "kafka", "yardstick", "floor"
ALL = (SHIM, KAFKA, YARDSTICK)
STABLE_STEPS, STABLE_WITHIN = 3, 0.1
MOST_WARM_UPS = 6
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Pace:
    """How much a run does: seconds of a step whose length is free, megabytes of a throughput step, rounds, the least
    seconds of warm-up of each side (and of one of its steps), seconds of a case after which no further round begins if
    LEAST_ROUNDS are done, whether the work at size is small, and the least seconds that each side does each case before
    the first is measured."""

    seconds: float = 0.8
    megabytes: int = 500
    rounds: int = 5
    warm_up_s: float = 2.0
    case_s: float = 75.0
    is_small: bool = False
    first_s: float = 0.0


@dataclass
class Side:
    """One broker under the bench. `kept` is for the cases: what they know of it from step to step."""

    kind: str
    target: Target
    bootstrap: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bootstrap = self.bootstrap or self.target.bootstrap

    @property
    def is_broker(self) -> bool:
        """Whether there are topics and groups to be made before they are used."""
        return self.kind not in (YARDSTICK, FLOOR)

    def next_name(self, word: str) -> str:
        """A name that no step used before."""
        self.kept["number"] = self.kept.get("number", 0) + 1
        return f"{word}-{self.kept['number']}"


@dataclass(frozen=True)
class Case:
    """`work` does one step and returns its figures; `stable` names the one that a warm-up waits for, and an empty one
    means that there is none. `pages_mb` are made warm before a step in the state QUIET. `is_awake`: CPUs are kept from
    halting in QUIET; work that fills both CPUs is not slowed down by that."""

    name: str
    work: Callable[[Side, Pace], Figures]
    stable: str = ""
    is_awake: bool = True
    pages_mb: int = 0
    kinds: tuple[str, ...] = (SHIM, KAFKA)
    states: tuple[str, ...] = machine.STATES


def run(cases: Sequence[Case], sides: Mapping[str, Side], pace: Pace, keep: Callable[[str, Any], None]) -> None:
    """Does every case and hands its result to `keep` by its name."""
    with machine.Spinners() as spinners:
        first = _work_at_all(cases, sides, pace, spinners)
        for case in cases:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            taking_part = [sides[kind] for kind in case.kinds if kind in sides]
            began = time.monotonic()
            load = machine.load()
            warm = _warm_up(case, taking_part, pace, spinners) if case.stable else {}
            rounds = []
            for number in range(pace.rounds):
                if number >= LEAST_ROUNDS and time.monotonic() - began > pace.case_s:
                    break
                for state in _turned(case.states, number // len(taking_part)):
                    order = _turned(taking_part, number)
                    figures = {side.kind: _step(case, side, pace, state, spinners) for side in order}
                    rounds.append({"state": state, "order": [side.kind for side in order], "figures": figures})
            took_s = round(time.monotonic() - began, 1)
            found = {"load": load, "seconds": took_s, "first": first[case.name], "warm_up": warm, "rounds": rounds}
            keep(case.name, found)


def _turned(values: Sequence[Any], number: int) -> list[Any]:
    """`values` from another one on, by the number of the round."""
    at = number % len(values)
    return [*values[at:], *values[:at]]


def _step(case: Case, side: Side, pace: Pace, state: str, spinners: machine.Spinners) -> Figures:
    if state == machine.QUIET and case.pages_mb:
        machine.settle(side.target.data_dir.parent, case.pages_mb * 1_000_000)
    with spinners.awake(case.is_awake and state == machine.QUIET):
        return case.work(side, pace)


def _work_at_all(
    cases: Sequence[Case], sides: Mapping[str, Side], pace: Pace, spinners: machine.Spinners
) -> dict[str, dict[str, list[float]]]:
    """Does each case that has a warm-up on each side for `first_s`, so that no case is the first to use what others use
    too. Returns the figures that its warm-up waits for, by case and side."""
    found: dict[str, dict[str, list[float]]] = {}
    for case in cases:
        found[case.name] = {}
        for kind in case.kinds:
            if case.stable and kind in sides:
                found[case.name][kind] = _steps(case, sides[kind], pace, pace.first_s, spinners)[0]
    return found


def _steps(case: Case, side: Side, pace: Pace, seconds: float, spinners: machine.Spinners) -> tuple[list[float], float]:
    """Works in steps of `warm_up_s` for at least so many seconds. Returns what the warm-up waits for, and how long it
    took."""
    began = time.monotonic()
    seen: list[float] = []
    pace = replace(pace, seconds=max(pace.seconds, pace.warm_up_s))
    while time.monotonic() - began < seconds:
        seen.append(_step(case, side, pace, machine.AS_IS, spinners)[case.stable])
    return seen, time.monotonic() - began


def _warm_up(case: Case, sides: Sequence[Side], pace: Pace, spinners: machine.Spinners) -> dict[str, Any]:
    """Works until the figure of every side is stable, at most MOST_WARM_UPS times the least time, and for the same time
    on each (to the length of a step)."""
    spent = {side.kind: 0.0 for side in sides}
    seen: dict[str, list[float]] = {side.kind: [] for side in sides}
    for number in range(1, MOST_WARM_UPS + 1):
        for side in _turned(sides, number):
            steps, took_s = _steps(case, side, pace, pace.warm_up_s * number - spent[side.kind], spinners)
            seen[side.kind] += steps
            spent[side.kind] += took_s
        if all(is_stable(values) for values in seen.values()):
            break
    return {
        kind: {"seconds": round(spent[kind], 1), "is_stable": is_stable(values), case.stable: values}
        for kind, values in seen.items()
    }


def is_stable(values: Sequence[float]) -> bool:
    last = values[-STABLE_STEPS:]
    return len(last) == STABLE_STEPS and max(last) - min(last) <= STABLE_WITHIN * statistics.median(last)


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios, with the least and the greatest."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{short(self.median)}x ({short(self.least)}-{short(self.greatest)})"


def values(result: Mapping[str, Any], state: str, kind: str, figure: str) -> list[float]:
    """The figure of a side in each round."""
    rounds = [one["figures"] for one in result["rounds"] if one["state"] == state]
    return [one[kind][figure] for one in rounds if figure in one.get(kind, {})]


def median(result: Mapping[str, Any], state: str, kind: str, figure: str) -> float | None:
    found = values(result, state, kind, figure)
    return statistics.median(found) if found else None


def paired(result: Mapping[str, Any], state: str, figure: str, one: str = SHIM, other: str = KAFKA) -> Ratio | None:
    """`one` against `other`; None where no round has both, or where the figure of `other` is too small to measure."""
    return _ratio(values(result, state, one, figure), values(result, state, other, figure))


def beside(result: Mapping[str, Any], nothing: Mapping[str, Any], state: str, figure: str) -> Ratio | None:
    """The shim in one case against itself in the case in which it has nothing else to do."""
    return _ratio(values(result, state, SHIM, figure), values(nothing, state, SHIM, figure))


def _ratio(mine: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    if not mine or len(mine) != len(theirs) or 0 in theirs:
        return None
    ratios = [left / right for left, right in zip(mine, theirs, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def short(value: float) -> str:
    """Three digits: what figures of a machine are worth."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
