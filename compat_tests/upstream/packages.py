"""Fetches packages that carry their tests, through their ordinary clients, into ``.cache/upstream``; nothing of them is
committed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from kafka_shim.compat.upstream.base import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / "upstream"


def source_distribution(name: str, version: str, only: Sequence[str]) -> Path:
    """Returns the folder with the source distribution of `name`, reduced to the folders `only`.

    The rest is left out so that the tests import the installed client. Raises Unavailable if the index does not have
    it.
    """
    target = CACHE / f"{name}-{version}"
    if target.is_dir():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as scratch:
        line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
        line += ["--no-binary", ":all:", "--dest", scratch, f"{name}=={version}"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        archives = list(Path(scratch).glob("*.tar.gz"))
        if done.returncode != 0 or not archives:
            raise Unavailable(f"no source distribution of {name} {version}: {_last_line(done.stderr)}")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(archives[0]) as archive:
            archive.extractall(unpacked, filter="data")
        source = next(unpacked.iterdir())
        found = re.search(r"^Version: (.+)$", (source / "PKG-INFO").read_text(), re.MULTILINE)
        if found is None or found[1] != version:
            raise Unavailable(f"the source distribution of {name} is not {version}")
        wanted = Path(scratch) / "wanted"
        for folder in only:
            if not (source / folder).is_dir():
                raise Unavailable(f"the source distribution of {name} {version} has no {folder}/")
            shutil.copytree(source / folder, wanted / folder)
        _settle(wanted, target)
    return target


def go_module(path: str, version: str) -> Path:
    """The folder of a Go module in the module cache, read-only and verified by Go. Raises Unavailable."""
    if shutil.which("go") is None:
        raise Unavailable("no Go toolchain")
    line = ["go", "mod", "download", "-json", f"{path}@{version}"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd="/")
    answer = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Dir" not in answer:
        raise Unavailable(f"no Go module {path} {version}: {answer.get('Error') or _last_line(done.stderr)}")
    return Path(answer["Dir"])


def _settle(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError:
        # Another process was first. Its folder is complete, because it was also renamed into place.
        if not target.is_dir():
            raise


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
