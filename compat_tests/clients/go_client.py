"""Programs of ours in Go that use franz-go, compiled with a toolchain that is on the path."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.compat.upstream.packages import CACHE

FRANZ_GO = "v1.22.2"
SOURCES = Path(__file__).resolve().parent.parent / "go"


class GoError(Exception):
    """The program does not compile."""


def compiled(name: str) -> Path:
    """Compiles `compat_tests/go/<name>.go`, once for each content. Returns the program. Raises GoError."""
    source = SOURCES / f"{name}.go"
    made = CACHE / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    if not made.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
            shutil.copy(source, Path(scratch) / "main.go")
            module = f"module client\n\ngo 1.24\n\nrequire github.com/twmb/franz-go {FRANZ_GO}\n"
            (Path(scratch) / "go.mod").write_text(module)
            for line in (["go", "mod", "tidy"], ["go", "build", "-o", "made", "."]):
                done = subprocess.run(line, cwd=scratch, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise GoError(f"{source.name}: {done.stderr[-2000:]}")
            (Path(scratch) / "made").rename(made)
    return made
