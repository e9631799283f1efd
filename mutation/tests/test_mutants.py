"""The mutants of small sources, their names, their order, what the rules leave out, and a whole trial."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutation import cython_source, python_source, trial
from mutation.__main__ import RECORDED, results
from mutation.forks import Forks
from mutation.mutants import Mutant, in_seeded_order
from mutation.rules import listed
from mutation.testmap import LineMap
from mutation.tree import FILES, ROOT, Tree

SOURCE = b'''\
"""Text."""
LIMIT = 3

def cut(items: list[int], limit: int = 2) -> list[int]:
    """Text."""
    if not items or len(items) < limit:
        raise ValueError(f"{limit + 1} at least")
    items.sort()
    return items[1:limit]
'''
CYTHON = b"""\
cdef enum:
    SIZE = 4 + 1

cdef const uint8_t* skip(const uint8_t* p, int64_t size) noexcept nogil:
    cdef int64_t left = size - SIZE
    if left < 0 or not <int32_t>(p[0] & 7) > 2:
        return NULL
    return p + left
"""


def changed(source: bytes, mutants: list[Mutant]) -> set[str]:
    """The changed line of each mutant."""
    return {mutant.applied(source).decode().split("\n")[mutant.line - 1].strip() for mutant in mutants}


def test_each_operator_of_python_is_changed() -> None:
    assert changed(SOURCE, python_source.mutants("a.py", SOURCE)) == {
        "LIMIT = 4",
        "def cut(items: list[int], limit: int = 3) -> list[int]:",
        "if  items or len(items) < limit:",
        "if not items and len(items) < limit:",
        "if not items or len(items) <= limit:",
        "pass",
        "return items[(1) + 1:limit]",
        "return items[2:limit]",
        "return items[1:(limit) - 1]",
        "return None",
    }


def test_types_and_texts_are_left_out() -> None:
    source = b"from x import y\nif TYPE_CHECKING:\n    A = 1\n__slots__ = ('a',)\nlogger.info(1 + 2)\nassert 3 > 2\n"
    assert python_source.mutants("a.py", source) == []


def test_signs_of_types_are_no_operators_of_cython() -> None:
    assert changed(CYTHON, cython_source.mutants("a.pyx", CYTHON)) == {
        "SIZE = 5 + 1",
        "SIZE = 4 - 1",
        "SIZE = 4 + 2",
        "cdef int64_t left = size + SIZE",
        "if left <= 0 or not <int32_t>(p[0] & 7) > 2:",
        "if left < 1 or not <int32_t>(p[0] & 7) > 2:",
        "if left < 0 and not <int32_t>(p[0] & 7) > 2:",
        "if left < 0 or  <int32_t>(p[0] & 7) > 2:",
        "if left < 0 or not <int32_t>(p[1] & 7) > 2:",
        "if left < 0 or not <int32_t>(p[0] | 7) > 2:",
        "if left < 0 or not <int32_t>(p[0] & 8) > 2:",
        "if left < 0 or not <int32_t>(p[0] & 7) >= 2:",
        "if left < 0 or not <int32_t>(p[0] & 7) > 3:",
        "return p - left",
    }


def test_every_mutant_of_python_can_be_compiled_and_has_a_name_of_its_own() -> None:
    for path in ("shim/clock.py", "shim/group/offset_rules.py", "shim/storage/producers.py", "shim/connection.py"):
        source = (ROOT / path).read_bytes()
        found = python_source.read(ROOT, path)
        assert len({mutant.name for mutant in found}) == len(found) > 50
        for mutant in found:
            ast.parse(mutant.applied(source))


def test_a_name_and_its_place_do_not_depend_on_other_lines() -> None:
    before = python_source.mutants("a.py", SOURCE)
    after = python_source.mutants("a.py", b"# one more line\n\nOTHER = 7\n" + SOURCE)
    assert {mutant.name for mutant in before} < {mutant.name for mutant in after}
    known = {mutant.name for mutant in before}
    order = [mutant.name for mutant in in_seeded_order(after, 1) if mutant.name in known]
    assert order == [mutant.name for mutant in in_seeded_order(before, 1)]
    assert order != [mutant.name for mutant in in_seeded_order(before, 2)]


def test_every_listed_mutant_has_a_reason() -> None:
    assert all(len(reason) > 20 for reason in listed().values())


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree with one module and one test, which notices some of its mutants."""
    monkeypatch.setattr("mutation.tree.HOME", tmp_path)
    made = Tree(1)
    (made.path / "build" / "names").mkdir(parents=True)
    (made.path / "mutation").symlink_to(ROOT / "mutation")
    (made.path / "a.py").write_bytes(SOURCE)
    (made.path / "test_a.py").write_text(
        "from a import cut\n\ndef test_cut():\n    assert cut([3, 1, 2]) == [2]\n\ndef test_other():\n    pass\n"
    )
    return made


def test_a_trial_says_which_test_noticed_a_mutant_and_puts_the_file_back(tree: Tree) -> None:
    tests = LineMap(
        ["test_a.py::test_cut"], {"test_a.py::test_cut": 0.1}, {"a.py": {str(line): [0] for line in range(4, 10)}}
    )
    outcomes = {}
    for mutant in python_source.read(tree.path, "a.py"):
        if mutant.operator in ("call dropped", "logic or to and", "slice begins 1 later"):
            found = trial.attempt(mutant, tree, tests, 10.0)
            outcomes[mutant.operator] = (found.outcome, found.killer)
    assert outcomes == {
        "call dropped": ("killed", "test_a.py::test_cut"),
        "logic or to and": ("survived", ""),
        "slice begins 1 later": ("killed", "test_a.py::test_cut"),
    }
    assert (tree.path / "a.py").read_bytes() == SOURCE


def test_tests_of_the_same_name_and_folder_run_first() -> None:
    names = ["shim/tests/api/test_b.py::x", "shim/tests/txn/test_c.py::x", "shim/tests/txn/test_a.py::x"]
    tests = LineMap(names, {name: float(number) for number, name in enumerate(names)})
    assert tests._in_order(set(names), "shim/txn/a.py") == names[::-1]
    assert tests._in_order(set(names), "shim/a.py") == [names[2], *names[:2]]


def test_what_no_test_touches_is_said_so(tree: Tree) -> None:
    mutant = python_source.read(tree.path, "a.py")[0]
    assert trial.attempt(mutant, tree, LineMap(), 10.0).outcome == "no test"
    assert trial.attempt(mutant, tree, LineMap(), 10.0, ["test_a.py::test_gone"]).outcome == "no test"
    assert trial.attempt(mutant, tree, LineMap(), 10.0, ["test_gone.py::test_gone"]).outcome == "no test"


def test_without_a_mutant_the_chosen_tests_must_pass(tree: Tree) -> None:
    chosen = ["test_a.py::test_cut", "test_a.py::test_other"]
    assert trial.unchanged(tree, chosen).outcome == "survived"
    (tree.path / "conftest.py").write_text("raise RuntimeError('not in the copy')\n")
    assert trial.unchanged(tree, chosen).outcome != "survived"


def test_an_end_that_no_test_caused_is_an_error_of_the_tool(tree: Tree) -> None:
    chosen = ["test_a.py::test_cut"]
    (tree.path / "conftest.py").write_text("import os\n\ndef pytest_collection():\n    os._exit(3)\n")
    found = trial.unchanged(tree, chosen)
    assert (found.outcome, found.reason.partition(":")[0]) == ("error", "exit status 3")
    (tree.path / "conftest.py").write_text("import os\n\ndef pytest_collection():\n    os.abort()\n")
    assert trial.unchanged(tree, chosen).outcome == "killed"


@pytest.mark.parametrize(
    ("outcome", "killer", "reason", "is_noticed"),
    [
        ("killed", "a.py::one", "assert 1 == 2", True),
        ("killed", "a.py", "ImportError", False),
        ("killed", "a.py::one", "Failed: Timeout (>25.0s) from pytest-timeout.", False),
        ("timed out", "", "", False),
        ("error", "", "exit status 3", False),
    ],
)
def test_a_mutant_of_the_sample_is_noticed_by_its_own_test(
    outcome: str, killer: str, reason: str, is_noticed: bool
) -> None:
    found = trial.Trial("", "a.py", 1, "", "", "", outcome, 1, killer, reason)
    assert trial.is_noticed_by(found, "a.py::one") is is_noticed


def test_what_fails_anyway_notices_nothing_and_no_mutant_stays(tree: Tree) -> None:
    (tree.path / "cext" / "tests").mkdir(parents=True)
    tests = tree.path / "shim" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_b.py").write_text(
        "from a import cut\n\n"
        "def test_broken():\n    assert False\n\n"
        "def test_cut():\n    assert cut([3, 1, 2]) == [2]\n"
    )
    broken, good = "shim/tests/test_b.py::test_broken", "shim/tests/test_b.py::test_cut"
    mutant = next(each for each in python_source.read(tree.path, "a.py") if each.operator == "call dropped")
    with Forks(tree, str(trial.verdict_of(tree)), 25) as forks:
        (tree.path / "a.py").write_bytes(mutant.applied(SOURCE))
        assert forks.run("", [good], 60, 60.0) == 0, "the mutant is not what was imported"
        (tree.path / "a.py").write_bytes(SOURCE)
        sound: dict[str, bool] = {}
        found = trial.judged(mutant, tree, LineMap(), 10.0, [broken, good], forks, sound)
    assert (found.outcome, found.killer) == ("killed", good)
    assert sound == {broken: False, good: True}


def test_the_copy_has_the_settings_of_all_tests() -> None:
    settings = {path.name for path in ROOT.iterdir() if path.name in ("conftest.py", "pyproject.toml")}
    assert settings == {"conftest.py", "pyproject.toml"}
    assert settings <= set(FILES)


def test_each_recorded_killer_is_a_test_that_there_is() -> None:
    """One that was renamed or moved would fail the sample that takes its mutant."""
    gone = []
    for killer in sorted({one.killer for one in results(RECORDED).values() if one.killer}):
        path, _, name = killer.partition("::")  # without a name a file that the mutant keeps from being collected
        wanted = f"def {name.partition('[')[0].rpartition('::')[2]}(" if name else ""
        if not (ROOT / path).exists() or wanted not in (ROOT / path).read_text():
            gone.append(killer)
    assert gone == []
