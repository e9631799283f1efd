"""The Python of another architecture, from Debian's packages, run by QEMU's user emulation: what `wheels.py --check`
tests a wheel with that was compiled for a machine that this is not.

The packages are unpacked and not configured, which Python does not need. QEMU looks for each file in that folder first
and then on this machine, so nothing is mounted and nothing registered with the kernel. A program can start the Python
again by its name (`sys.executable`), that of a script of this machine, and no other program of its architecture.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Debian's name of the architecture, by the kernel's.
DEBIAN = {"aarch64": "arm64", "x86_64": "amd64"}


class Release(NamedTuple):
    """A release of Debian, and the second number of its glibc 2."""

    name: str
    glibc: int


# By the Python that it has; no release has 3.12.
RELEASES = {"3.11": Release("bookworm", 36), "3.13": Release("trixie", 41)}
MIRROR = os.environ.get("KAFKA_SHIM_DEBIAN_MIRROR", "http://deb.debian.org/debian")


class UnavailableError(Exception):
    """This machine cannot emulate that Python. The text says why."""


@dataclass(frozen=True)
class EmulatedPython:
    """A Python under emulation. `command` goes before its arguments."""

    command: tuple[str, ...]
    machine: str
    version: str

    @property
    def pip_options(self) -> list[str]:
        """What makes this machine's pip install wheels for it; that takes a folder (`--target`)."""
        # pip takes only what is named, newest first: a wheel names the oldest glibc that it runs on.
        platforms = [f"manylinux_2_{minor}_{self.machine}" for minor in range(RELEASES[self.version].glibc, 16, -1)]
        options = ["--python-version", self.version, "--implementation", "cp", "--only-binary=:all:"]
        for platform in [*platforms, f"manylinux2014_{self.machine}"]:
            options += ["--platform", platform]
        return options


def python_of(machine: str, version: str, folder: Path) -> EmulatedPython:
    """Debian's Python `version` (of RELEASES) for `machine`, unpacked below `folder` once. Raises UnavailableError."""
    emulator = shutil.which(f"qemu-{machine}-static")
    if emulator is None:
        raise UnavailableError(f"qemu-{machine}-static is missing: apt-get install qemu-user-static")
    if shutil.which("debootstrap") is None:
        raise UnavailableError("debootstrap is missing: apt-get install debootstrap")
    release = RELEASES[version].name
    root = folder / f"debian-{release}-{DEBIAN[machine]}"
    if not root.is_dir():
        if os.geteuid() != 0:
            raise UnavailableError("debootstrap, which fetches Debian's Python, runs as root only")
        partial = root.with_name(f".{root.name}")
        shutil.rmtree(partial, ignore_errors=True)
        _unpack(partial, DEBIAN[machine], release)
        partial.rename(root)
    return EmulatedPython((str(_script(emulator, root, version)),), machine, version)


def _script(emulator: str, root: Path, version: str) -> Path:
    """What the kernel of this machine can start. It lies beside the Python, which looks for its library from there."""
    place = root.absolute() / "usr" / "bin"
    line = (
        shlex.join([emulator, "-L", str(root.absolute())])
        + f' -0 "$0" {shlex.quote(str(place / f"python{version}"))} "$@"'
    )
    script = place / f"emulated-python{version}"
    written = script.with_name(f".{script.name}.{os.getpid()}")
    written.write_text(f"#!/bin/sh\nexec {line}\n")
    written.chmod(0o755)
    return written.replace(script)


def _unpack(root: Path, architecture: str, release: str) -> None:
    """Fetches Python with all that it needs, and unpacks it. debootstrap unpacks only what Debian needs to start."""
    root.parent.mkdir(parents=True, exist_ok=True)
    line = ["debootstrap", "--foreign", f"--arch={architecture}", "--variant=minbase"]
    _run(*line, "--include=python3,libstdc++6", release, str(root), MIRROR)
    for package in sorted((root / "var" / "cache" / "apt" / "archives").glob("*.deb")):
        # As debootstrap does it: folders that are links of the merged /usr stay links.
        unpacked = 'dpkg-deb --fsys-tarfile "$0" | tar --extract --keep-directory-symlink --overwrite --directory "$1"'
        _run("sh", "-c", unpacked, str(package), str(root))
        package.unlink()
    # A folder that is there hides this machine's, and these are empty.
    for name in ("dev", "home", "proc", "root", "run", "sys", "tmp"):
        shutil.rmtree(root / name, ignore_errors=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
