"""The Docker engine of the container targets: the machine's own, or one that runs for as long as it is used.

An engine that answers is used as it is. Where none does and this is root, ``dockerd`` is started, and ended when the
last process that asked for it ends. Processes that share it are listed by their ids in STATE, so that the next one
clears up behind one that was killed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STATE = Path("/run/kafka-shim-engine")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
# What dockerd can do differs from machine to machine: from the best to what works without overlays and packet filters.
# Published ports on 127.0.0.1 go through Docker's own proxy in each.
WAYS = (
    ("--storage-driver=overlay2",),
    ("--storage-driver=overlay2", "--iptables=false", "--ip6tables=false"),
    ("--storage-driver=vfs", "--iptables=false", "--ip6tables=false"),
)
PROBE = "kafka-shim-probe"
# The dockerd that this process started: its parent has to hear of its end.
_children: list[subprocess.Popen[bytes]] = []


class EngineError(Exception):
    """No container can run here; a sentence for people."""


def ensure() -> None:
    """Returns when containers can run. Raises EngineError with the reason why none can; the answer is kept."""
    reason = unavailable()
    if reason:
        raise EngineError(reason)


@functools.cache
def unavailable() -> str:
    """Why containers cannot run on this machine; empty when they can, and the engine stays until this process ends."""
    try:
        if shutil.which("docker") is None:
            return "there is no docker command"
        address = os.environ.get("DOCKER_HOST")
        if address:
            if not answers():
                return f"no Docker engine answers at {address}, which DOCKER_HOST names"
        elif os.geteuid() == 0:
            with _locked():
                if not answers():
                    _start()
                _join()
        elif not answers():
            return "no Docker engine answers, and only root can start one"
        return _probe()
    except (EngineError, subprocess.TimeoutExpired) as error:
        return str(error)


def answers() -> bool:
    """Whether an engine answers at Docker's address."""
    return _docker("version", "--format", "{{.Server.Version}}").returncode == 0


def leave() -> None:
    """This process needs the engine no longer; ends it when it was started for tests and nobody else needs it."""
    with _locked():
        (STATE / "users" / str(os.getpid())).unlink(missing_ok=True)
        if not _users():
            _stop()


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    (STATE / "users").mkdir(parents=True, exist_ok=True)
    with (STATE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _join() -> None:
    """Notes this process as a user of the engine that was started here; another engine is not ours to end."""
    if _pid() is not None:
        (STATE / "users" / str(os.getpid())).touch()
        atexit.register(leave)


def _users() -> list[int]:
    """The processes that use the engine; those that are gone are forgotten."""
    found = []
    for entry in (STATE / "users").iterdir():
        if Path("/proc", entry.name).exists():
            found.append(int(entry.name))
        else:
            entry.unlink(missing_ok=True)
    return found


def _pid() -> int | None:
    """The process of the dockerd that was started here, while it runs."""
    try:
        pid = int((STATE / "pid").read_text())
        return pid if Path("/proc", str(pid), "comm").read_text() == "dockerd\n" else None
    except (OSError, ValueError):
        return None


def _start() -> None:
    if shutil.which("dockerd") is None:
        raise EngineError("no Docker engine answers, and dockerd is not installed")
    log = STATE / "dockerd.log"
    for way in WAYS:
        with log.open("wb") as output:
            command = ["dockerd", *way]
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        _children.append(started)
        (STATE / "pid").write_text(str(started.pid))
        deadline = time.monotonic() + START_TIMEOUT_S
        while started.poll() is None and time.monotonic() < deadline:
            if answers():
                print(f"started {' '.join(command)} for containers, process {started.pid}", file=sys.stderr)
                return
            time.sleep(0.2)
        _stop()
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    raise EngineError(f"dockerd does not start here: {last[:300]}")


def _stop() -> None:
    pid = _pid()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while _pid() is not None and time.monotonic() < deadline:
            for child in _children:
                child.poll()
            time.sleep(0.05)
    (STATE / "pid").unlink(missing_ok=True)


def _probe() -> str:
    """Runs one container with a published port; why that does not work, or nothing."""
    ran = _docker("image", "inspect", PROBE)
    if ran.returncode:
        ran = _docker("import", "-", PROBE, stdin=_smallest_image())
    if ran.returncode == 0:
        ran = _docker("run", "--rm", "-p", "127.0.0.1::9", PROBE, "/bin/true")
    if ran.returncode == 0:
        return ""
    last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return f"this machine runs no containers: {last[:300]}"


def _docker(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", *words], input=stdin, capture_output=True, timeout=120, check=False)


def _smallest_image() -> bytes:
    """A file system that holds `true` and what it is linked with."""
    program = shutil.which("true") or "/bin/true"
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    libraries = [word for word in linked.split() if word.startswith("/")]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        tar.add(program, "bin/true")
        for library in libraries:
            tar.add(library, library.removeprefix("/"))
    return buffer.getvalue()
