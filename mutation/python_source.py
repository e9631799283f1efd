"""Mutants of a Python file. Positions are bytes, as `ast` counts them, so a mutant is a replacement in the text."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from mutation.mutants import Mutant, numbered
from mutation.rules import excluded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Returns every mutant of one file, in the order of the text."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return numbered(sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.operator)))


def read(root: Path, path: str) -> list[Mutant]:
    return mutants(path, (root / path).read_bytes())


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.rows = source.split(b"\n")
        self.begins = [0]
        for row in self.rows:
            self.begins.append(self.begins[-1] + len(row) + 1)
        self.found: list[Mutant] = []
        self.functions: list[str] = []
        self.depth = 0  # of functions: 0 is what runs at import
        self.statement = (1, 1)

    # --- places

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self.begins[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.begins[node.end_lineno - 1] + node.end_col_offset

    def _add(self, operator: str, start: int, end: int, new: str) -> None:
        line = self.source.count(b"\n", 0, start) + 1
        self.found.append(
            Mutant(
                self.path,
                operator,
                start,
                end,
                self.source[start:end].decode(),
                new,
                line,
                (min(line, self.statement[0]), self.statement[1]),
                self.rows[line - 1].decode().strip(),
                ".".join(self.functions),
                self.depth == 0,
            )
        )

    def _swap(self, operator: str, left: ast.expr, right: ast.expr, words: tuple[str, str]) -> None:
        """Replaces the operator between two operands, where brackets and line ends may stand too."""
        start, end = self._end(left), self._start(right)
        is_word = words[0][0].isalpha()
        pattern = rf"\b{words[0].replace(' ', r' +')}\b" if is_word else re.escape(words[0])
        match = re.search(pattern.encode(), self.source[start:end])
        if match:
            self._add(f"{operator} {words[0]} to {words[1]}", start + match.start(), start + match.end(), words[1])

    def _wrap(self, operator: str, node: ast.expr, template: str) -> None:
        start, end = self._start(node), self._end(node)
        self._add(operator, start, end, template.format(self.source[start:end].decode()))

    # --- walking

    def visit(self, node: ast.AST) -> None:
        if excluded(node):
            return
        if isinstance(node, ast.stmt):
            before = self.statement
            self.statement = _lines(node)
            super().visit(node)
            self.statement = before
        else:
            super().visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, deeper: int) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                self.visit(default)
        self.functions.append(node.name)
        self.depth += deeper
        for child in node.body:
            self.visit(child)
        self.depth -= deeper
        self.functions.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node, 1)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node, 1)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._function(node, 0)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # --- operators

    def visit_Compare(self, node: ast.Compare) -> None:
        for (left, right), operator in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            self._swap("comparison", left, right, COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        words = ARITHMETIC.get(type(node.op))
        if words and not (_is_text(node.left) or _is_text(node.right)):
            self._swap("arithmetic", node.left, node.right, words)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in pairwise(node.values):
            self._swap("logic", left, right, words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add("not dropped", self._start(node), self._start(node) + len("not"), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant flipped", self._start(node), self._end(node), str(not value))
        elif isinstance(value, int):
            self._add("constant plus 1", self._start(node), self._end(node), str(value + 1))
        elif isinstance(value, float):
            self._add("constant doubled", self._start(node), self._end(node), str(value * 2 or 1.0))

    def _condition(self, test: ast.expr) -> None:
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp | ast.Await):
            self._wrap("condition negated", test, "not ({})")

    def visit_If(self, node: ast.If) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        if node.lower is not None:
            self._wrap("slice begins 1 later", node.lower, "({}) + 1")
        if node.upper is not None:
            self._wrap("slice ends 1 earlier", node.upper, "({}) - 1")
        self.generic_visit(node)

    # --- statements

    def _drop(self, what: str, node: ast.stmt) -> None:
        self._add(f"{what} dropped", self._start(node), self._end(node), "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._wrap("returns None", node.value, "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and not excluded(call):
            self._drop("call", node)
        if not isinstance(call, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        # What __init__ leaves out fails wherever it is used.
        stays = all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        if self.depth and self.functions[-1] != "__init__" and stays:
            self._drop("assignment", node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        words = ARITHMETIC.get(type(node.op))
        if words and not _is_text(node.value):
            self._swap("arithmetic", node.target, node.value, (f"{words[0]}=", f"{words[1]}="))
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if self.depth:
            self._drop("raise", node)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        if self.depth:
            self._drop("del", node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add("break to continue", self._start(node), self._end(node), "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("continue to break", self._start(node), self._end(node), "break")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _lines(node: ast.stmt) -> tuple[int, int]:
    """The lines of a simple statement, or of the head of a compound one."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        return node.lineno, max(node.lineno, body[0].lineno - 1)
    return node.lineno, node.end_lineno or node.lineno
