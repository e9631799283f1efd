"""Instances of a Kafka Streams application in JVMs of their own (compat_tests/java/StreamsApplication)."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

from kafka_shim.targets import jvm
from kafka_shim.targets.kafka_jars import streams_libs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SOURCE = Path(__file__).resolve().parent.parent / "java" / "StreamsApplication.java"


class StreamsApplication:
    """A context manager over one instance. `said` are its lines so far: its states, and its failure if it has one."""

    def __init__(
        self, bootstrap: str, application_id: str, source: str, sink: str, state_dir: Path, **options: str
    ) -> None:
        libs = Path(f"{streams_libs()}/*")
        given = [f"{name.replace('_', '.')}={value}" for name, value in options.items()]
        words = (bootstrap, application_id, source, sink, str(state_dir), *given)
        self.log = state_dir.with_suffix(".log")
        line = jvm.command("StreamsApplication", *words, extra=(libs, jvm.compiled(SOURCE, libs)))
        with self.log.open("ab") as stderr:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8"
            )
        self.said: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.said.append(line.rstrip("\n"))
                self._changed.notify_all()

    def wait_until_running(self, timeout_s: float = 90) -> None:
        """Returns when the instance has its tasks. Raises AssertionError with what it said."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self.said or self.said[-1] != "state RUNNING":
                left = deadline - time.monotonic()
                if left <= 0 or any(line.startswith("failed") for line in self.said):
                    raise AssertionError(f"{self.said}\n{self.log.read_text()[-3000:]}")
                self._changed.wait(min(left, 1))

    def kill(self) -> None:
        """Sends SIGKILL and returns when the process has ended."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """Ends the instance, which leaves its group."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.kill()
        self.close()
