"""The Docker engine of the container targets: the machine's own, or one that is started for the tests.

An engine that responds is used as it is. If there is none and the user is root, ``dockerd`` is started, and stopped
when the last process that uses it ends. The processes that share it are listed by process id in STATE, so that the next
one can clean up after one that was killed.
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
# Options of dockerd, from the best to one that works without overlay file systems and packet filters. With each,
# published ports on 127.0.0.1 go through Docker's own proxy.
WAYS = (
    ("--storage-driver=overlay2",),
    ("--storage-driver=overlay2", "--iptables=false", "--ip6tables=false"),
    ("--storage-driver=vfs", "--iptables=false", "--ip6tables=false"),
)
PROBE = "kafka-shim-probe"
# The dockerd that this process started. The parent has to reap it.
_children: list[subprocess.Popen[bytes]] = []


class EngineError(Exception):
    """Containers cannot run here. The message is one sentence for the user."""


def ensure() -> None:
    """Returns if containers can run. Raises EngineError with the reason if not. The result is cached."""
    reason = unavailable()
    if reason:
        raise EngineError(reason)


@functools.cache
def unavailable() -> str:
    """Returns why containers cannot run on this machine, or an empty string. In the latter case the engine keeps
    running until this process ends.
    """
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
    """Returns whether an engine responds at Docker's address."""
    return _docker("version", "--format", "{{.Server.Version}}").returncode == 0


def leave() -> None:
    """Unregisters this process. Stops the engine if it was started for tests and no other process uses it."""
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
    """Registers this process as a user of the engine that was started here. Other engines are not managed."""
    if _pid() is not None:
        (STATE / "users" / str(os.getpid())).touch()
        atexit.register(leave)


def _users() -> list[int]:
    """Returns the processes that use the engine, and drops those that have ended."""
    found = []
    for entry in (STATE / "users").iterdir():
        if Path("/proc", entry.name).exists():
            found.append(int(entry.name))
        else:
            entry.unlink(missing_ok=True)
    return found


def _pid() -> int | None:
    """Returns the process id of the dockerd that was started here, if it runs."""
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
    """Runs one container with a published port. Returns the reason if that does not work, else an empty string."""
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
    """Returns a file system with `true` and the libraries that it links to."""
    program = shutil.which("true") or "/bin/true"
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    libraries = [word for word in linked.split() if word.startswith("/")]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        tar.add(program, "bin/true")
        for library in libraries:
            tar.add(library, library.removeprefix("/"))
    return buffer.getvalue()
