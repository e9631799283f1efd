"""Imports go one way: docs/DESIGN.md, "Layers". An upward arrow fails here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SHIM = ROOT / "shim"

# Each layer may import itself and what stands before it; parts of one layer do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "java_hash", "uuids", "randomness", "internal_topics"),
    ("clock", "config", "faults", "metrics", "outcome", "patterns", "scheduler", "waiters"),
    ("protocol",),
    ("storage",),
    ("metadata",),
    ("group", "txn", "security"),
    ("session",),
    ("broker",),
    ("context",),
    ("authorization",),
    ("api",),
    ("dispatch",),
    ("memory_pool", "network_send"),
    ("connection",),
    ("listeners",),
    ("acceptor",),
    ("server",),
    ("serve", "memory_dir", "embedded", "pytest_plugin", "cli", "commands", "__main__", "__init__"),
)
# Layers whose parts may import each other.
OPEN = {"errors", "clock", "serve"}
# Parts that use the protocol and the base alone.
BESIDE = {"wiretap", "history", "wire_client"}
BASE = {*LAYERS[0], *LAYERS[1], "protocol"}
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
RESULTS_OF_STORAGE = "kafka_shim.storage.results"


def part_of(path: Path) -> str:
    relative = path.relative_to(SHIM)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def modules() -> list[Path]:
    return [path for path in sorted(SHIM.rglob("*.py")) if "tests" not in path.relative_to(SHIM).parts]


def imports(path: Path) -> list[tuple[str, int]]:
    """(module, line) of everything of this project that a file imports, for types only or not, at any depth."""
    found: list[tuple[str, int]] = []
    tree = ast.parse(path.read_text())
    guarded = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for inner in outer.body
        for node in ast.walk(inner)
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module == "kafka_shim"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if whole else [node.module]
            found += [(name, node.lineno) for name in names]
    return [(name, line) for name, line in found if name.split(".")[0] == "kafka_shim"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SHIM)))
def test_imports_point_downwards(path: Path):
    part = part_of(path)
    for name, line in imports(path):
        where = f"{path.relative_to(ROOT)}:{line} imports {name}"
        _, _, target = name.partition(".")
        target = target.split(".")[0]
        assert target not in ("compat", "spark"), where
        if target in ("cext", part) or not target or target.startswith("__"):
            continue
        if part in BESIDE:
            assert target in BASE | BESIDE, where
            continue
        if target in BESIDE:
            assert part == "commands", where
            continue
        assert target in RANK, f"{where}: {target} has no place in LAYERS"
        assert part in RANK, f"{part} has no place in LAYERS"
        if RANK[target] == RANK[part]:
            assert LAYERS[RANK[part]][0] in OPEN, f"{where}: parts of one layer do not know each other"
        else:
            assert RANK[target] < RANK[part], f"{where}: an upward arrow"


def test_the_package_of_options_is_imported_by_its_face():
    for path in modules():
        if part_of(path) == "config":
            continue
        inner = [
            f"{path}:{line} imports {name}" for name, line in imports(path) if name.startswith("kafka_shim.config.")
        ]
        assert not inner


def test_cext_imports_nothing_of_the_broker():
    for path in sorted((ROOT / "cext").glob("*.py*")):
        if path.suffix not in (".py", ".pyx", ".pyi", ".pxd"):
            continue
        text = path.read_text()
        for name in re.findall(r"(?m)^\s*(?:from|c?import)\s+([\w.]+)", text):
            assert name != "asyncio", f"{path.name}: {name}"
            assert not name.startswith("kafka_shim") or name.startswith("kafka_shim.cext"), f"{path.name}: {name}"
