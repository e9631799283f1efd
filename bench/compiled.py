"""The bench's programs in C, compiled at their first use."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.wire_client import parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def program(name: str, sources: Iterable[str]) -> Path:
    """Returns the path of the program of these files, which are named as seen from the top of the repository. Raises
    CalledProcessError if the compiler refuses them."""
    paths, found = [ROOT / source for source in sources], ROOT / "build" / "bench" / name
    if not found.exists() or any(path.stat().st_mtime > found.stat().st_mtime for path in paths):
        found.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mktemp(dir=found.parent)
        subprocess.run([os.environ.get("CC", "cc"), *FLAGS, "-o", made, *map(str, paths)], check=True)
        Path(made).replace(found)  # others may do the same
    return found


def local_port(bootstrap: str) -> int:
    """Returns the port of a broker's address. Raises ValueError if it is not on this machine."""
    host, port = parse_address(bootstrap)
    if host not in ("127.0.0.1", "localhost"):
        raise ValueError(f"the bench is for brokers on this machine, not at {bootstrap}")
    return port
