"""What is not mutated: code whose change no test of behaviour can see, or should. Each rule has its reason."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mutation.mutants import Mutant

# Files of shim/ and cext/, by the start of their path.
FILES = {
    "shim/tests/": "tests",
    "cext/tests/": "tests",
    "shim/protocol/messages/": "generated field tables; a test regenerates and compares them",
    "shim/protocol/records/": "generated field tables; a test regenerates and compares them",
    "shim/protocol/api_keys.py": "generated; a test regenerates and compares it",
    "shim/protocol/record_types.py": "generated; a test regenerates and compares it",
    "shim/config/generated_rows.py": "generated; a test regenerates and compares it",
    "shim/protocol/transcribe.py": "the generator: not part of a broker, and what it writes is compared",
    "shim/config/transcribe.py": "the generator: not part of a broker, and what it writes is compared",
    "shim/config/docs.py": "prints documentation",
}

# Kinds of code, by what `excluded` finds.
KINDS = {
    "text": "texts for people: their wording is not behaviour (what is inside f-strings and the strings themselves)",
    "log": "log lines: nobody's answer depends on them",
    "repr": "__repr__ is for the debugger",
    "names": "__slots__, __all__ and the like save memory or guide readers; code runs the same without",
    "types": "annotations, type aliases and `if TYPE_CHECKING` do not run",
    "dataclass": "frozen, slots, order and kw_only of @dataclass guard against our own mistakes only",
    "assert": "an assertion states what cannot be otherwise; it holds on the whole program",
    "main": "`if __name__ == '__main__'` runs in a process of its own",
}

LOGGERS = {"log", "_log", "logger", "LOG"}
NAME_LISTS = {"__slots__", "__all__", "__match_args__", "TYPE_CHECKING"}


def is_left_out(path: str) -> bool:
    return any(path.startswith(start) for start in FILES)


def excluded(node: ast.AST) -> str | None:
    """Returns the kind of a node that is left out with all that is inside it, or None."""
    match node:
        case ast.JoinedStr():
            return "text"
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in LOGGERS:
            return "log"
        case ast.FunctionDef(name="__repr__"):
            return "repr"
        case ast.Assign(targets=[ast.Name(id=name)]) if name in NAME_LISTS:
            return "names"
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return "types"
        case ast.Assert():
            return "assert"
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return "main"
        case ast.Call(func=ast.Name(id="dataclass")):
            return "dataclass"
        case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType")):
            return "types"
    return None


def listed() -> dict[str, str]:
    """Returns the reason of each single mutant that was shown to be equivalent, by its name."""
    path = Path(__file__).with_name("equivalent.toml")
    return {row["name"]: row["reason"] for row in tomllib.loads(path.read_text()).get("mutant", [])}


def in_use(mutants: list[Mutant]) -> list[Mutant]:
    """Returns the mutants that no list shows to be equivalent."""
    equivalent = listed()
    return [mutant for mutant in mutants if mutant.name not in equivalent]
