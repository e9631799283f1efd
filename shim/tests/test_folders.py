"""Which folder may import which: `kafka_shim.targets` is what tests, jobs and the bench have in common."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# By folder: the packages that no file of it imports, its tests included.
FORBIDDEN = {
    "targets": ("kafka_shim.compat", "kafka_shim.spark", "bench"),
    "bench": ("kafka_shim.compat",),
    "mutation": ("kafka_shim",),
    "spark": ("kafka_shim.compat", "bench"),
    "compat_tests": ("kafka_shim.spark", "bench"),
}


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_folder_imports_only_what_it_may(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files or not (ROOT / folder).is_dir()
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported(path)
        for package in FORBIDDEN[folder]
        if f"{name}.".startswith(f"{package}.")
    ]
    assert not wrong
