"""Tests that could not fail are found by reading them: a test without an assert, an assert that holds by its form. So
are those that fail on a slow machine, because they give up too early."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREES = ("cext/tests", "shim/tests", "compat_tests/tests", "mutation/tests", "spark/tests")
ANY_EXCEPTION = {"Exception", "BaseException"}
# Calls that fail by themselves, or whose point is that they end: name -> why.
CHECKING_CALLS = {
    "fail": "pytest.fail",
    "raises": "pytest.raises",
    "warns": "pytest.warns",
    "run_state_machine_as_test": "hypothesis: its rules and invariants assert",
    "check_call": "raises for a status that is not 0",
    "soak": "kafka_shim.compat.transactions.soak: checks its history",
    "check": "wire_client.check raises for an error code",
}
# Calls that give up after so many seconds: name -> which argument says how many.
GIVES_UP = {
    **dict.fromkeys(("result", "exception", "join", "settimeout", "timeout", "wait", "flush", "poll"), 0),
    **dict.fromkeys(("init_transactions", "commit_transaction", "abort_transaction"), 0),
    "wait_for": 1,
    "wait_until": 2,
}
# What tests use, which gives up as they do.
HELPERS = ("compat_tests", "targets")
# Their calls are tried again until a later time.
RETRIED = {"compat_tests/transactions/client_pipeline.py", "compat_tests/transactions/soak.py"}
LEAST_PATIENCE_S = 30
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(trees: tuple[str, ...] = TREES) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted({path for tree in trees for path in (ROOT / tree).rglob("*.py")}):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def functions(module: ast.AST) -> Iterator[Function]:
    for node in ast.walk(module):
        if isinstance(node, Function):
            yield node


def last_name(function: ast.expr) -> str:
    """What is called, without what it belongs to. `ast.unparse` of all would take most of this file's time."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ast.unparse(function).rpartition(".")[2]


def called(node: ast.AST) -> set[str]:
    """Last names of everything that is called."""
    return {last_name(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}


def mentioned(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def asserts_itself(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Assert | ast.Raise):
            return True
        if isinstance(one, ast.keyword) and one.arg == "check" and getattr(one.value, "value", None) is True:
            return True  # subprocess.run(check=True)
    return bool(called(node) & CHECKING_CALLS.keys())


def asserting_names(every: list[ast.Module]) -> set[str]:
    """Names of functions that assert, or call one that does."""
    bodies: list[tuple[str, ast.AST]] = [(node.name, node) for module in every for node in functions(module)]
    uses = [(name, called(node)) for name, node in bodies]
    names = {name for name, node in bodies if asserts_itself(node)}
    while True:
        more = {name for name, used in uses if name not in names and used & names}
        if not more:
            return names
        names |= more


def holds_by_its_form(test: ast.expr) -> bool:
    """`assert x == x`, `assert True`, `assert (x, "why")`, `assert x in {True, False}`, `assert x if y else True`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], comparators=[right]):
            return ast.dump(left) == ast.dump(right) and not _may_differ(left)
        case ast.Compare(ops=[ast.In()], comparators=[ast.Set(elts=elts) | ast.Tuple(elts=elts) | ast.List(elts=elts)]):
            return {ast.unparse(one) for one in elts} >= {"True", "False"}
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=[_, *_]) | ast.JoinedStr():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return holds_by_its_form(body) or holds_by_its_form(orelse)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(holds_by_its_form(value) for value in values)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(holds_by_its_form(value) for value in values)
    return False


def _may_differ(node: ast.expr) -> bool:
    """Whether the same text may have two values: a call, or what awaits one."""
    return any(isinstance(one, ast.Call | ast.Await) for one in ast.walk(node))


def patience_s(node: ast.Call | ast.BinOp) -> Iterator[float]:
    """After how many seconds a call or a deadline gives up, where a number says so."""
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            at = GIVES_UP.get(last_name(func), len(args))
            said = [*args[at : at + 1], *(word.value for word in keywords if word.arg in {"timeout", "timeout_s"})]
        case ast.BinOp(left=ast.Call(func=func), op=ast.Add(), right=right) if last_name(func) == "monotonic":
            said = [right]
        case _:
            return
    for one in said:
        if isinstance(one, ast.Constant) and isinstance(one.value, int | float):
            yield one.value


def hasty(path: Path, module: ast.Module) -> Iterator[str]:
    where = path.relative_to(ROOT)
    for node in ast.walk(module):
        if not isinstance(node, ast.Call | ast.BinOp):
            continue
        if any(1 < seconds < LEAST_PATIENCE_S for seconds in patience_s(node)):
            yield f"{where}:{node.lineno}: gives up where a busy machine is late: {ast.unparse(node)}"


def faults(path: Path, module: ast.Module, names: set[str]) -> Iterator[str]:
    where = path.relative_to(ROOT)
    for function in functions(module):
        is_test = function.name.startswith("test_") and path.name.startswith("test_")
        if is_test and not asserts_itself(function) and not called(function) & names:
            yield f"{where}:{function.lineno}: {function.name} asserts nothing"
        inner = [one for one in ast.walk(function) if isinstance(one, Function) and one is not function]
        used = mentioned(function) if inner else set()
        for one in inner:
            if one.name not in used and not one.decorator_list and asserts_itself(one):
                yield f"{where}:{one.lineno}: {one.name} asserts and is never called"
    for node in ast.walk(module):
        if isinstance(node, ast.Assert) and holds_by_its_form(node.test):
            yield f"{where}:{node.lineno}: holds by its form: {ast.unparse(node.test)}"
        elif isinstance(node, ast.Call) and last_name(node.func) == "raises":
            wanted = {ast.unparse(one) for argument in node.args[:1] for one in ast.walk(argument)}
            if wanted & ANY_EXCEPTION and not {word.arg for word in node.keywords} & {"match", "check"}:
                yield f"{where}:{node.lineno}: any exception would do: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and last_name(node.func) == "parametrize":
            values = node.args[1] if len(node.args) > 1 else None
            if isinstance(values, ast.List | ast.Tuple) and not values.elts:
                yield f"{where}:{node.lineno}: parametrised over nothing"


def all_faults() -> list[str]:
    every = list(modules((*TREES, *HELPERS)))
    tests = [(path, module) for path, module in every if any(path.is_relative_to(ROOT / tree) for tree in TREES)]
    names = asserting_names([module for _, module in tests])
    patient = [each for each in every if each[0].relative_to(ROOT).as_posix() not in RETRIED]
    return [
        *(fault for path, module in tests for fault in faults(path, module, names)),
        *(fault for path, module in patient for fault in hasty(path, module)),
    ]


@pytest.mark.timeout(600)  # it reads all tests, which takes a minute beside three other layers
def test_each_test_can_fail_and_not_by_slowness() -> None:
    assert all_faults() == []


BAD = """
import pytest
def helper(x): assert x
def test_nothing(): print(1)
def test_through_a_helper(): helper(1)
def test_same(x): assert x.a == x.a
def test_calls(x): assert x() == x()
def test_constant(): assert True
def test_tuple(x): assert (x, "why")
def test_either(x): assert x in {True, False}
def test_if(x, y): assert x if y else True
def test_any():
    with pytest.raises(Exception): helper(0)
def test_named():
    with pytest.raises(Exception, match="a"): helper(0)
def test_callback():
    def never(): assert False
    helper(1)
@pytest.mark.parametrize("x", [])
def test_none(x): assert x
def test_hasty(x): assert x.result(10) or x.result(60) or x.result(1) or x.run(timeout=5) or x.exception(20)
def test_deadline(x): assert x < time.monotonic() + 10
"""


def test_the_check_finds_each_kind() -> None:
    module = ast.parse(BAD)
    path = ROOT / "shim" / "tests" / "test_bad.py"
    found = [*faults(path, module, asserting_names([module])), *hasty(path, module)]
    assert [fault.partition(": ")[2] for fault in found] == [
        "test_nothing asserts nothing",
        "never asserts and is never called",
        "holds by its form: x.a == x.a",
        "holds by its form: True",
        "holds by its form: (x, 'why')",
        "holds by its form: x in {True, False}",
        "holds by its form: x if y else True",
        "parametrised over nothing",
        "any exception would do: pytest.raises(Exception)",
        "gives up where a busy machine is late: x.result(10)",
        "gives up where a busy machine is late: x.run(timeout=5)",
        "gives up where a busy machine is late: x.exception(20)",
        "gives up where a busy machine is late: time.monotonic() + 10",
    ]


def test_each_folder_of_tests_is_in_a_layer() -> None:
    listed = runpy.run_path(str(ROOT / "scripts" / "layers.py"))
    layers = (listed["clients"], listed["groups"], listed["compat"])
    run = {argument for layer in layers for step in layer() for argument in step.command}
    folders = {path.parent for path in (ROOT / "compat_tests" / "tests").glob("*/**/test_*.py")}
    missing = [path for path in folders if not any(str(path.relative_to(ROOT)).startswith(tree) for tree in run)]
    assert len(folders) > 8
    assert missing == []
