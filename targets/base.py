"""The interface of all targets: a broker that can be started, stopped, killed and restarted on the same data."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from functools import cache
from itertools import cycle, islice
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import IO, Self

# The settings of every target that accepts any: one node, no delay of the first rebalance.
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Test records have old timestamps, so the next retention check would delete them.
    "log.retention.ms": "-1",
}
# Below the ports of outgoing connections (from 32768 on with Linux, from 49152 on elsewhere).
FIRST_PORT, PORTS_PER_PROCESS, PROCESSES = 21_000, 200, 40


class Power(enum.Flag):
    """What a scenario may need of a target besides requests."""

    WIRE = enum.auto()
    """Requests only; every target has it."""
    PROXY = enum.auto()
    """A recorder between client and broker may hold, drop, repeat or forge frames."""
    SETTINGS = enum.auto()
    """Broker options can be set before the start."""
    KILL = enum.auto()
    """SIGKILL and restart on the same data."""
    SEEDED = enum.auto()
    """The data directory can be prepared before the start."""
    INSIDE = enum.auto()
    """A step inside the broker can be held or failed."""
    CONTROLLER = enum.auto()
    """With `controller.listener.names` CONTROLLER it has a listener of the controller's."""


class TargetError(Exception):
    """The target failed to start, or it does not support the operation."""


class Target:
    """One broker. Not thread-safe: the owner starts and stops it. Clients in any thread may use `bootstrap`."""

    kind = ""
    powers = Power.WIRE

    def __init__(self, settings: Mapping[str, str] | None = None, data_dir: Path | None = None) -> None:
        self.settings = {**SETTINGS, **(settings or {})}
        self.bootstrap = ""
        self.pid: int | None = None
        self._own_dir = data_dir is None
        self._data_dir = data_dir

    @property
    def data_dir(self) -> Path:
        """The log directory. Created on first use if none was given."""
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix=f"{self.kind}-"))
        return self._data_dir

    @property
    def controller(self) -> str:
        """The address of the controller's listener; empty if there is none."""
        return ""

    @property
    def host(self) -> str:
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def prepare_for_measuring(self) -> None:
        """Selects, before the start, the broker's default options instead of faster ones for tests."""

    def start(self) -> Self:
        """Starts the broker and returns when it responds. Raises TargetError if it does not respond in time."""
        raise NotImplementedError

    def stop(self) -> None:
        """Shuts the broker down cleanly. Does nothing if it is not running."""
        raise NotImplementedError

    def kill(self) -> None:
        """Sends SIGKILL and returns when the process has ended."""
        raise TargetError(f"{self.kind} cannot be killed")

    def restart(self, *, kill: bool = False) -> Self:
        """Stops cleanly or kills, then starts again on the same data and, if it had one, at the same address."""
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def log(self) -> str:
        """Returns the broker's log, for failed tests."""
        return ""

    def close(self) -> None:
        """Stops the broker, and removes the data directory if the target created it."""
        self.stop()
        if self._own_dir and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ProcessTarget(Target):
    """A target that is a child process. Its output goes to a file beside the data directory."""

    start_timeout_s = 120.0  # a JVM on a busy machine
    stop_timeout_s = 120.0

    def __init__(self, settings: Mapping[str, str] | None = None, data_dir: Path | None = None) -> None:
        super().__init__(settings, data_dir)
        self.process: subprocess.Popen[bytes] | None = None
        self._log_file: IO[bytes] | None = None

    @property
    def log_path(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".log")

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _spawn(
        self, command: list[str], *, stdout_pipe: bool = False, environment: dict[str, str] | None = None
    ) -> None:
        self._log_file = self.log_path.open("ab")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout_pipe else self._log_file,
            stderr=self._log_file,
            env=environment,
        )
        self.pid = self.process.pid

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TargetError(f"{self.kind} did not stop within {self.stop_timeout_s:.0f} s:\n{self.tail()}") from None
        self._reap()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._reap()

    def _reap(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()
        if self._log_file is not None:
            self._log_file.close()
        self.process = self._log_file = self.pid = None

    def tail(self, characters: int = 3000) -> str:
        return self.log()[-characters:]

    def close(self) -> None:
        path = self.log_path if self._data_dir is not None else None
        super().close()
        if self._own_dir and path is not None:
            path.unlink(missing_ok=True)

    def wait_until_it_answers(self) -> None:
        """Polls the address until the broker responds to ApiVersions. Stops if the process has ended."""
        deadline = time.monotonic() + self.start_timeout_s
        while not answers(self.host, self.port):
            if self.process is not None and self.process.poll() is not None:
                status = self.process.returncode
                tail = self.tail()
                self._reap()
                raise TargetError(f"{self.kind} ended with status {status} before it answered:\n{tail}")
            if time.monotonic() > deadline:
                tail = self.tail()
                self.kill()
                raise TargetError(f"{self.kind} did not answer within {self.start_timeout_s:.0f} s:\n{tail}")
            time.sleep(0.02)


def answers(host: str, port: int, timeout_s: float = 2.0) -> bool:
    """Returns whether a broker at the address responds to ApiVersions version 0."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.recv(8)
        return len(answer) == 8 and answer[4:] == struct.pack(">i", 7)
    return False


def free_ports(count: int) -> list[int]:
    """Returns different TCP ports of the loopback interface that are free now. No other test takes them before a
    broker listens there, or while it is started again: they are not among those that the system gives to outgoing
    connections and to listeners on port 0, and no other process chooses from the same ones."""
    ports: list[int] = []
    for port in islice(_ports_of_process(os.getpid()), PORTS_PER_PROCESS):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise TargetError(f"of {PORTS_PER_PROCESS} ports fewer than {count} are free")


@cache
def _ports_of_process(pid: int) -> Iterator[int]:
    """Yields the ports of this process again and again. It claims a block of ports for its life, and begins anywhere
    in it, because clients of an earlier process may still look for their broker."""
    folder = Path(tempfile.gettempdir()) / f"kafka-shim-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(PROCESSES):
        claim = os.open(folder / str(number), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            continue
        first = FIRST_PORT + number * PORTS_PER_PROCESS
        at = pid % PORTS_PER_PROCESS
        ports = range(first, first + PORTS_PER_PROCESS)
        return cycle([*ports[at:], *ports[:at]])
    raise TargetError(f"{PROCESSES} processes start brokers already")
