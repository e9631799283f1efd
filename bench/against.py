"""This checkout beside another one, in pairs: ``python -m bench.against TREE``.

For a change that touches what every request passes: both brokers run on this machine at the same time, and every round
does each case once on each. `TREE` is the root of a checkout that ``make run`` has built. A ratio is this checkout's
figure by the other's: the median of the rounds with the least and the greatest.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench import cores, data, groups, machine, rounds, transactions
from bench.rounds import Pace, Side
from kafka_shim.targets.shim_process import ShimProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

THIS, OTHER = "this", "other"
PACE = Pace(seconds=0.6, megabytes=300, rounds=7, warm_up_s=1.0)


class OtherCheckout(ShimProcess):
    """The broker of another checkout, run by the interpreter of its `.venv`."""

    def __init__(self, tree: Path) -> None:
        super().__init__()
        self.tree = tree.resolve()
        self.python = str(self.tree / ".venv" / "bin" / "python")

    def _spawn(
        self, command: list[str], *, stdout_pipe: bool = False, environment: dict[str, str] | None = None
    ) -> None:
        # Neither this checkout's path nor its folders may come before the other's.
        found = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONPATH"}
        super()._spawn(["env", "-C", str(self.tree), *command], stdout_pipe=stdout_pipe, environment=found)


def chosen(words: list[str], pace: Pace) -> list[list[rounds.Case]]:
    """The cases of each part whose names begin with one of the words; all without words."""
    parts = (data.cases(pace.megabytes), transactions.CASES, groups.CASES, cores.CASES)
    kept = [[case for case in part if not words or case.name.startswith(tuple(words))] for part in parts]
    return [[replace(case, kinds=(THIS, OTHER)) for case in part] for part in kept]


def run(tree: Path, words: list[str], pace: Pace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    preparations = (None, transactions.prepare, lambda _, side: groups.prepare(side), None)
    for prepare, cases in zip(preparations, chosen(words, pace), strict=True):
        if cases:
            with ExitStack() as stack:
                targets = ((THIS, ShimProcess()), (OTHER, OtherCheckout(tree)))
                sides = {kind: Side(kind, stack.enter_context(target)) for kind, target in targets}
                if prepare is not None:
                    for side in sides.values():
                        prepare(stack, side)
                rounds.run(cases, sides, pace, found.__setitem__)
    return found


def table(found: Mapping[str, Any]) -> str:
    return "\n".join(["| case | state | figure | this | other | ratio |", "| --- " * 6 + "|", *_rows(found)])


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    for name, result in found.items():
        for state in machine.STATES:
            for figure in result["rounds"][0]["figures"][THIS]:
                ratio = rounds.paired(result, state, figure, THIS, OTHER)
                if ratio is not None:
                    this, other = (rounds.median(result, state, kind, figure) or 0.0 for kind in (THIS, OTHER))
                    cells = (name, state, figure, rounds.short(this), rounds.short(other), str(ratio))
                    yield "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path, help="the root of the other checkout, built")
    parser.add_argument("--only", action="append", default=[], help="how names of cases begin; several times")
    parser.add_argument("--rounds", type=int, default=PACE.rounds)
    parser.add_argument("--json", type=Path, help="every round")
    given = parser.parse_args()
    found = run(given.tree, given.only, replace(PACE, rounds=given.rounds))
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
