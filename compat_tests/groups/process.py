"""Group members as child processes, and the events that they have reported so far."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from kafka_shim.targets import jvm
from kafka_shim.targets.waiting import PATIENCE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent.parent
JAVA = Path(__file__).resolve().parent.parent / "java" / "GroupMember.java"


class Member:
    """One consumer in its process. `records` are (topic, partition, offset, value) in the order of arrival."""

    def __init__(self, kind: str, bootstrap: str, group: str, topic: str, **options: object) -> None:
        self.kind = kind
        self.records: list[tuple[str, int, int, str]] = []
        self.assigned: list[str] = []
        self.errors: list[str] = []
        self.is_closed = False
        self.is_committed = False  # what it has told of so far
        self._started = threading.Event()
        pairs = [f"{key}={value}" for key, value in options.items()]
        if kind.startswith("java"):
            line = jvm.command(
                "GroupMember", kind, bootstrap, group, topic, *pairs, level="error", extra=(jvm.compiled(JAVA),)
            )
        else:
            line = [sys.executable, "-m", "kafka_shim.compat.groups.member", kind, bootstrap, group, topic, *pairs]
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "record":
                topic, partition, offset, value = rest.split(" ", 3)
                self.records.append((topic, int(partition), int(offset), value))
                self.is_committed = False
            elif word == "committed":
                self.is_committed = True
            elif word == "assigned":
                self.assigned = rest.split()
            elif word == "started":
                self._started.set()
            elif word == "error":
                self.errors.append(rest)
            elif word == "closed":
                self.is_closed = True

    @property
    def values(self) -> list[str]:
        return [record[3] for record in self.records]

    def stop(self, timeout_s: float = PATIENCE_S) -> None:
        """Leaves the group and ends the process."""
        # Before that it would not know how.
        if not self._started.wait(timeout_s):
            raise AssertionError(f"{self.kind} did not start in {timeout_s} s")
        self._process.terminate()
        self._end(timeout_s)
        if not self.is_closed:
            raise AssertionError(f"{self.kind} did not close properly")

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._process.kill()
        self._end(PATIENCE_S)

    def _end(self, timeout_s: float) -> None:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"{self.kind} did not end in {timeout_s} s") from None
        finally:
            self._reader.join(PATIENCE_S)
            assert self._process.stdout is not None
            self._process.stdout.close()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None


class Members:
    """All members of a test. Kills those that still run at the end."""

    def __init__(self, bootstrap: str, **options: object) -> None:
        self.bootstrap = bootstrap
        self.options = options  # of each member
        self.all: list[Member] = []

    def start(self, kind: str, group: str, topic: str, **options: object) -> Member:
        member = Member(kind, self.bootstrap, group, topic, **{**self.options, **options})
        self.all.append(member)
        return member

    def close(self) -> None:
        for member in self.all:
            if member.is_running:
                member.kill()


def covers(members: Iterable[Member], topic: str, partitions: int) -> bool:
    """Returns whether these members hold all partitions, each exactly once, and each member holds at least one."""
    held = [each for member in members for each in member.assigned]
    return sorted(held) == sorted(f"{topic}:{each}" for each in range(partitions)) and all(
        member.assigned for member in members
    )
