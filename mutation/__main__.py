"""``python -m mutation``: changes one place of `shim/` or `cext/` at a time and runs the tests that touch it.

- ``map``: runs the unit tests under coverage, to know which test touches which line; arguments go to pytest.
- ``run``: tries a seeded sample, keeps the results in build/mutation/results.jsonl and goes on where it stopped. The
  test that noticed a mutant the last time runs first; with ``--known`` nothing else does, which needs no map.
- ``report``: prints the figure and the survivors of the sample.
- ``list``: prints the sample.
- ``sample``: tries the few mutants that every test run tries, by their recorded tests; needs no map.

It works in copies of the tree below build/mutation, niced. docs/mutation.md explains it.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from mutation import cython_source, python_source, testmap
from mutation.forks import Forks
from mutation.mutants import Mutant, in_seeded_order
from mutation.rules import in_use, is_left_out
from mutation.testmap import LineMap
from mutation.tree import HOME, ROOT, Tree
from mutation.trial import (
    KILLED,
    NOT_BUILT,
    NOTICED,
    SURVIVED,
    TEST_TIMEOUT_S,
    Trial,
    attempt,
    is_noticed_by,
    judged,
    unchanged,
    verdict_of,
)

SEED = 1
COUNT = 400
MOST_SURVIVORS_PERCENT = 5.0
# The tests of one mutant, in seconds as they were measured under coverage; survivors are tried again with more.
BUDGET_S = 40.0
ALL_S = 600.0
RESULTS = HOME / "results.jsonl"
RECORDED = Path(__file__).with_name("recorded.jsonl")
SAMPLE = 5
NICE = 10


def all_mutants() -> list[Mutant]:
    """Returns every mutant of the tree that no rule and no list leaves out."""
    found: list[Mutant] = []
    for path in sorted((ROOT / "shim").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not is_left_out(name):
            found += python_source.read(ROOT, name)
    for path in sorted([*(ROOT / "cext").glob("*.pyx"), *(ROOT / "cext").glob("*.pxd")]):
        found += cython_source.read(ROOT, path.relative_to(ROOT).as_posix())
    return in_use(found)


def sample(seed: int, count: int) -> list[Mutant]:
    return in_seeded_order(all_mutants(), seed)[: count or None]


def results(path: Path) -> dict[str, Trial]:
    """Returns the last result of each mutant."""
    rows = path.read_text().splitlines() if path.exists() else []
    return {trial.name: trial for trial in (Trial(**json.loads(row)) for row in rows)}


def run(options: argparse.Namespace) -> int:
    done = results(RESULTS)
    again = (SURVIVED, "no test") if options.again else ()
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    part, parts = map(int, options.part.split("/"))
    left = [
        mutant
        for mutant in sample(options.seed, options.count)[part - 1 :: parts]
        if (mutant.name not in done or done[mutant.name].outcome in again) and mutant.path.startswith(options.only)
    ]
    # Those that need no process and no build of their own first.
    for mutant in sorted(left, key=lambda mutant: (mutant.path.startswith("cext/"), mutant.is_import_time)):
        waiting.put(mutant)
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    tests = LineMap() if options.known else LineMap.load()
    killers = {trial.name: trial.killer for trial in results(RECORDED).values() if trial.outcome == KILLED}
    writing = threading.Lock()

    def work(number: int) -> None:
        tree = Tree(options.first_tree + (part - 1) * options.processes + number)
        tree.make()
        sound: dict[str, bool] = {}
        with Forks(tree, str(verdict_of(tree)), TEST_TIMEOUT_S) as forks:
            while time.monotonic() < until:
                try:
                    mutant = waiting.get_nowait()
                except queue.Empty:
                    return
                killer = killers.get(mutant.name, "")
                trial = None
                if killer:
                    trial = judged(mutant, tree, tests, BUDGET_S, [killer], forks, sound)
                if trial is None or not is_noticed_by(trial, killer):
                    if options.known:
                        continue
                    trial = judged(mutant, tree, tests, BUDGET_S, None, forks, sound)
                if trial.outcome == SURVIVED and options.all:
                    order = tests.touching(mutant, tree.path)
                    if len(order) > trial.tests:
                        trial = judged(mutant, tree, tests, ALL_S, None, forks, sound)
                with writing:
                    with RESULTS.open("a") as out:
                        out.write(trial.row() + "\n")
                    print(f"{trial.outcome:8} {trial.seconds:6.1f} s {mutant} {trial.killer}", flush=True)

    workers = [threading.Thread(target=work, args=(number + 1,)) for number in range(options.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return report(options)


def report(options: argparse.Namespace) -> int:
    """Prints the figure. Mutants that do not build are none."""
    chosen = sample(options.seed, options.count)
    done = results(RESULTS if RESULTS.exists() else RECORDED)
    tried = [done[mutant.name] for mutant in chosen if mutant.name in done]
    count = Counter(trial.outcome for trial in tried)
    counted = [trial for trial in tried if trial.outcome != NOT_BUILT]
    survivors = [trial for trial in counted if trial.outcome not in NOTICED]
    for trial in sorted(survivors, key=lambda trial: (trial.path, trial.line)):
        print(
            f"{trial.outcome} ({trial.tests} tests): {trial.name} {trial.path}:{trial.line} in {trial.function}: "
            f"{trial.operator}: {trial.text}"
        )
    percent = 100 * len(survivors) / max(1, len(counted))
    print(
        f"mutation: seed {options.seed}, {len(tried)} of {len(chosen)} tried ({dict(count)}), "
        f"{len(survivors)} of {len(counted)} not noticed: {percent:.1f}%"
    )
    return 1 if percent >= MOST_SURVIVORS_PERCENT else 0


def record(options: argparse.Namespace) -> int:
    """Keeps the results of the sample beside the sources: what was noticed by which test. One that was not tried again
    keeps its last result."""
    done = results(RECORDED) | results(RESULTS)
    rows = [done[mutant.name].row() for mutant in sample(options.seed, options.count) if mutant.name in done]
    RECORDED.write_text("".join(f"{row}\n" for row in rows))
    return 0


def quick_sample(options: argparse.Namespace) -> int:
    """Tries a few recorded mutants with the test that noticed each. Fails when that test does not notice it any more,
    or does not pass without the mutant.
    """
    known = results(RECORDED)
    tree = Tree(0)
    tree.make()
    tests = LineMap()
    missed = []
    fit = [
        mutant
        for mutant in sample(options.seed, options.count)
        if mutant.path.endswith(".py")
        and mutant.name in known
        and known[mutant.name].outcome == KILLED
        and known[mutant.name].killer
        and known[mutant.name].seconds < 4
    ]
    killers = [known[mutant.name].killer for mutant in fit[:SAMPLE]]
    before = unchanged(tree, list(dict.fromkeys(killers)))
    if before.outcome != SURVIVED:
        print(f"mutation: the tests do not pass without a mutant: {before.outcome}: {before.killer} {before.reason}")
        return 1
    for mutant, killer in zip(fit, killers, strict=False):
        trial = attempt(mutant, tree, tests, BUDGET_S, [killer])
        is_noticed = is_noticed_by(trial, killer)
        more = trial.killer if is_noticed else f"not noticed by {killer}: {trial.killer} {trial.reason}"
        print(f"{trial.outcome:8} {trial.seconds:6.1f} s {mutant} {more}", flush=True)
        missed += [mutant] * (not is_noticed)
    print(f"mutation: {len(fit[:SAMPLE]) - len(missed)} of {len(fit[:SAMPLE])} sampled mutants noticed")
    return 1 if missed or len(fit) < SAMPLE else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("what", choices=["map", "run", "report", "list", "record", "sample"])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="size of the sample; 0 is every mutant")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after the mutant under way then")
    parser.add_argument("--part", default="1/1", help="K/N: of N runs beside each other this is the K-th")
    parser.add_argument("--first-tree", type=int, default=0, help="numbers of copies begin behind this one")
    parser.add_argument("--only", default="", help="paths that begin so")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--all", action="store_true", help="give a survivor every test that touches its line")
    parser.add_argument(
        "--known", action="store_true", help="try recorded mutants alone, by the test that noticed each"
    )
    parser.add_argument("--nice", type=int, default=NICE, help="how much to give way to other processes")
    options, more = parser.parse_known_args()
    os.nice(options.nice)
    if options.what == "map":
        testmap.make(more)
        return 0
    if options.what == "list":
        for mutant in sample(options.seed, options.count):
            print(mutant.name, mutant)
        return 0
    return {"run": run, "report": report, "record": record, "sample": quick_sample}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
