"""The options of Apache Kafka 4.3.1 and what each does here.

``options.py`` writes docs/options.md, and ``check`` compares it. ``list`` prints every option with its state and its
tests. ``prove [NAME...]`` runs the tests of each option without the option: every one of them must fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kafka_shim.tests.config.option_registry import TABLES, TESTS, VARIABLE, marked_tests, states

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"
HEAD = """# Options

Written by `scripts/options.py` from the tables of `shim/config`: do not edit. Names, types and defaults are those of
Apache Kafka 4.3.1, but for names that begin with `kafka.shim.`: those options are this project's own. An option with an
effect does here what the sentence beside it says, and a test shows it
(`python scripts/options.py list` names the tests). One without effect is accepted, and named in one line of the log
where it is set to another value than its default. One that is refused stops the start, or fails the request, unless it
has its default.
"""
TITLES = {
    "": "Options of the broker",
    "topic:": "Options of topics",
    "group:": "Options of groups",
    "client-metrics:": "Options of clients' metrics",
}


def page() -> str:
    """Returns the whole page."""
    state_of = states()
    parts = [HEAD]
    for level, table in TABLES.items():
        kinds = [_kind(state_of[level + name]) for name in table]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("with effect", "without", "refused"))
        parts.append(f"\n## {TITLES[level]}\n\n{len(table)}: {counts}.\n\n| Option | Here |\n| --- | --- |\n")
        for name, option in sorted(table.items()):
            state = state_of[level + name]
            if state == "effect":
                text = option.doc or "Has the effect that it has in Kafka."
            elif state.startswith("refused: "):
                text = f"**Refused**: {state.removeprefix('refused: ')}."
            else:
                text = f"*Without effect*: {state}."
            parts.append(f"| `{name}` | {text} |\n")
    return "".join(parts)


def _kind(state: str) -> str:
    return "with effect" if state == "effect" else "refused" if state.startswith("refused") else "without"


def show() -> None:
    """Prints every option with its state and its tests."""
    tests = marked_tests()
    found = states()
    for label, state in found.items():
        print(f"{label}: {state}" + "".join(f"\n    {test}" for test in tests.get(label, ())))
    kinds = [_kind(state) for state in found.values()]
    print(f"{len(kinds)} options: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))


def prove(names: list[str]) -> int:
    """Runs the tests of these options, or of all, without them. Returns how many tests passed all the same."""
    pairs = [
        (label, test)
        for label, tests in sorted(marked_tests().items())
        for test in tests
        if not names or label in names
    ]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda pair: _fails_without(*pair), pairs))
    passed = [pair for pair, is_failed in zip(pairs, results, strict=True) if not is_failed]
    for label, test in passed:
        print(f"passes without {label}: {test}")
    print(f"{len(pairs) - len(passed)} of {len(pairs)} tests of effects fail without their option")
    return len(passed)


def _fails_without(label: str, test: str) -> bool:
    environment = {**os.environ, VARIABLE: label}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--basetemp=inner"]
    with tempfile.TemporaryDirectory() as directory:  # a broker without log.dirs makes its directory here
        done = subprocess.run(
            [*command, TESTS / test], env=environment, cwd=directory, capture_output=True, check=False
        )
    return done.returncode == 1


def main(arguments: list[str]) -> int:
    """Does what the first argument says. Returns the exit status."""
    match arguments:
        case []:
            PAGE.write_text(page(), encoding="utf-8")
        case ["check"]:
            if PAGE.read_text(encoding="utf-8") != page():
                sys.stderr.write("docs/options.md is out of date: run python scripts/options.py\n")
                return 1
        case ["list"]:
            show()
        case ["prove", *names]:
            return min(prove(names), 1)
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
