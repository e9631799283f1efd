"""Jars of Maven and programs of ours that are compiled with them, in ``.cache/ecosystem``."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from kafka_shim.compat.upstream.base import Unavailable
from kafka_shim.targets.kafka_jars import ROOT, fetched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CACHE = ROOT / ".cache" / "ecosystem"
HERE = Path(__file__).resolve().parent


def key(*parts: object) -> str:
    """A short name of a content."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def jars(name: str, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """The folder of the jars of `artifacts` (group, name, version) with all that they need. Raises Unavailable."""
    if shutil.which("java") is None:
        raise Unavailable("no Java")
    try:
        return fetched(CACHE / f"{name}-{key(*artifacts)}" / "libs", artifacts, "kafka-clients-*.jar")
    except (RuntimeError, subprocess.CalledProcessError, OSError) as failed:
        raise Unavailable(f"its jars cannot be fetched: {failed}") from None


def compiled(program: str, libs: Path) -> Path:
    """The folder of the classes of ``java/PROGRAM.java``. Raises Unavailable without a compiler."""
    source = HERE / "java" / f"{program}.java"
    folder = CACHE / f"{program}-{key(source.read_bytes(), libs.parent.name)}"
    if not folder.is_dir():
        if shutil.which("javac") is None:
            raise Unavailable("no javac")
        partial = folder.with_name(f".{folder.name}")
        partial.mkdir(parents=True, exist_ok=True)
        line = ["javac", "-nowarn", "-cp", f"{libs}/*", "-d", str(partial), str(source)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")
        partial.rename(folder)
    return folder
