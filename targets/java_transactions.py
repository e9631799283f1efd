"""Java transactional producers and consumers in one JVM, one call at a time (targets/java/TransactionDriver)."""

from __future__ import annotations

import queue
import subprocess
import threading
from pathlib import Path

from kafka_shim.targets import jvm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SOURCE = Path(__file__).resolve().parent / "java" / "TransactionDriver.java"


class JavaClientError(Exception):
    """An exception of the Java client. `name` is its simple class name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class JavaTransactions:
    """A context manager over one JVM. `call("commit", "p1")` returns the words after `ok`."""

    def __init__(self, bootstrap: str) -> None:
        classes = jvm.compiled(SOURCE)
        line = jvm.command("TransactionDriver", bootstrap, level="error", extra=(classes,))
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line.rstrip("\n"))
        self._answers.put("error\tEndOfFile\tthe JVM ended")

    def start(self, *words: str) -> None:
        """Starts a call without waiting for its result."""
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()

    def finish(self, timeout_s: float = 60) -> list[str]:
        """Returns the result of the earliest started call. Raises JavaClientError, or queue.Empty after `timeout_s`."""
        status, *words = self._answers.get(timeout=timeout_s).split("\t")
        if status == "error":
            raise JavaClientError(words[0], "\t".join(words[1:]))
        return [word for word in words if word]

    def call(self, *words: str, timeout_s: float = 60) -> list[str]:
        self.start(*words)
        return self.finish(timeout_s)

    # --- words as people use them

    def producer(self, name: str, transactional_id: str, **options: str) -> None:
        """Creates a producer with `transactional.id`, without initialising it. Option names have underscores."""
        pairs = {"transactional.id": transactional_id, "max.block.ms": "30000", "linger.ms": "0"}
        pairs |= {key.replace("_", "."): value for key, value in options.items()}
        self.call("producer", name, *(f"{key}={value}" for key, value in pairs.items()))

    def send(self, name: str, topic: str, value: str, partition: int = 0) -> None:
        self.call("send", name, topic, str(partition), "k", value)

    def state(self, name: str) -> str:
        """Returns the state of the client's transaction state machine (B22)."""
        return self.call("state", name)[0]

    def consumer(self, name: str, group: str | None = None, isolation: str = "read_committed", **options: str) -> None:
        pairs = {"isolation.level": isolation, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        pairs |= {key.replace("_", "."): value for key, value in options.items()}
        if group:
            pairs["group.id"] = group
        self.call("consumer", name, *(f"{key}={value}" for key, value in pairs.items()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
