"""Share consumers as child processes, and what they have reported so far."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from kafka_shim.compat.clients.go_client import compiled
from kafka_shim.targets import jvm
from kafka_shim.targets.waiting import PATIENCE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
JAVA = Path(__file__).resolve().parent.parent / "java" / "ShareMember.java"


class ShareProcess:
    """One share consumer: Java's, franz-go's, or librdkafka's through confluent-kafka.

    `records` are (partition, offset, delivery count or -1, value) in the order of arrival; `commits` counts
    acknowledgements that the broker confirmed."""

    def __init__(self, kind: str, mode: str, bootstrap: str, group: str, topic: str) -> None:
        self.records: list[tuple[int, int, int, str]] = []
        self.commits = 0
        self.errors: list[str] = []
        self.is_holding = False
        self.is_running = True
        if kind == "java":
            line = jvm.command("ShareMember", mode, bootstrap, group, topic, level="error", extra=(jvm.compiled(JAVA),))
        elif kind == "franz-go":
            line = [str(compiled("ShareMember")), mode, bootstrap, group, topic]
        else:
            line = [sys.executable, "-m", "kafka_shim.compat.groups.confluent_share", mode, bootstrap, group, topic]
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "record":
                _, partition, offset, count, value = rest.split(" ", 4)
                self.records.append((int(partition), int(offset), int(count), value))
            elif word == "committed":
                self.commits += 1
            elif word == "error":
                self.errors.append(rest)
            elif word == "holding":
                self.is_holding = True

    @property
    def deliveries(self) -> list[tuple[int, str]]:
        """(Delivery count, value) of each record."""
        return [(count, value) for _, _, count, value in self.records]

    @property
    def values(self) -> list[str]:
        return [record[3] for record in self.records]

    def kill(self) -> None:
        """Sends SIGKILL and returns when the process has ended."""
        self._process.kill()
        self._process.wait()
        self.is_running = False
        self._reader.join(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


class ShareProcesses:
    """All share consumers of a test, killed at its end."""

    def __init__(self) -> None:
        self._all: list[ShareProcess] = []

    def __iter__(self) -> Iterator[ShareProcess]:
        return iter(self._all)

    def start(self, kind: str, mode: str, bootstrap: str, group: str, topic: str) -> ShareProcess:
        self._all.append(ShareProcess(kind, mode, bootstrap, group, topic))
        return self._all[-1]

    def close(self) -> None:
        for process in self._all:
            if process.is_running:
                process.kill()
