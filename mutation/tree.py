"""Copies of the tree, in build/mutation: a mutant never stands in the sources that people work on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "mutation"
# What tests and builds need. The rest of the repository (jars, environments, reports) is not copied.
PARTS = ("bench", "cext", "compat_tests", "docker", "docs", "mutation", "scripts", "shim", "spark", "targets")
FILES = (
    "CHANGELOG.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "NOTICE",
    "README.md",
    "conftest.py",
    "pyproject.toml",
    "setup.py",
)
CIMPORT = re.compile(r"kafka_shim\.cext\.(\w+)\s+cimport|cimport\s+kafka_shim\.cext\.(\w+)")


class Tree:
    """One copy, with extension modules of its own that are replaced by mutated ones and put back."""

    def __init__(self, number: int) -> None:
        self.path = HOME / f"tree-{number}"

    def make(self) -> None:
        """Makes the copy what the sources are now. The extensions must be built in place."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in PARTS:
            shutil.rmtree(self.path / name, ignore_errors=True)
            skip = shutil.ignore_patterns("__pycache__", "*.html")
            shutil.copytree(ROOT / name, self.path / name, ignore=skip)
        for name in FILES:
            shutil.copy2(ROOT / name, self.path / name)
        names = self.path / "build" / "names" / "kafka_shim"
        shutil.rmtree(names, ignore_errors=True)
        names.mkdir(parents=True)
        folders = {path.name: path for path in (self.path / "shim").iterdir()}
        folders |= {"cext": self.path / "cext", "targets": self.path / "targets"}
        folders |= {"spark": self.path / "spark", "compat": self.path / "compat_tests"}
        for name, path in folders.items():
            (names / name).symlink_to(path)

    def environment(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join([str(self.path / "build" / "names"), str(self.path)])
        return {**os.environ, "PYTHONPATH": path, "KAFKA_SHIM_WERROR": "1", **more}

    def modules_of(self, path: str) -> list[str]:
        """Returns the extension modules that a .pyx or .pxd is compiled into."""
        users: dict[str, set[str]] = {}
        for source in sorted((self.path / "cext").glob("*.p[yx][xd]")):
            for match in CIMPORT.finditer(source.read_text()):
                users.setdefault(match[1] or match[2], set()).add(source.name)
        found: set[str] = set()
        waiting = [Path(path).name]
        while waiting:
            name = waiting.pop()
            stem, _, suffix = name.partition(".")
            if suffix == "pyx":
                found.add(stem)
                continue
            if (self.path / "cext" / f"{stem}.pyx").exists():
                found.add(stem)
            # A .pxd is seen by those that cimport it, and through their .pxd by others.
            waiting += [user for user in users.get(stem, ()) if user != name and user.partition(".")[0] not in found]
        return sorted(found)

    def build(self, modules: list[str]) -> str:
        """Builds modules from the sources as they are. Returns what the compilers refused, or an empty string."""
        done = subprocess.run(
            [sys.executable, "-m", "mutation.build", *modules],
            cwd=self.path,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout + done.stderr)[-2000:] if done.returncode else ""

    def put_back(self, modules: list[str]) -> None:
        for module in modules:
            for good in (ROOT / "cext").glob(f"{module}.*.so"):
                partial = self.path / "cext" / f".{good.name}"
                shutil.copy2(good, partial)
                partial.replace(self.path / "cext" / good.name)
