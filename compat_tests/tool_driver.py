"""Runs Kafka's command-line tools in one JVM: a tool runs for a tenth of a second, but a JVM takes two seconds to
start.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafka_shim.targets import jvm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SOURCE = Path(__file__).resolve().parent / "java" / "ToolDriver.java"


class ToolDriver:
    """One JVM that runs `jvm.TOOLS`, one at a time; a context manager."""

    def __init__(self) -> None:
        command = jvm.command("ToolDriver", level="error", extra=(jvm.compiled(SOURCE),))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def run(self, name: str, *arguments: str) -> str:
        """Returns what the tool prints on stdout. Raises jvm.ToolError if it ends with a non-zero status."""
        status, text = self.result(name, *arguments)
        if status:
            raise jvm.ToolError(f"{name} {' '.join(arguments)} ended with status {status}:\n{text}")
        return text

    def result(self, name: str, *arguments: str) -> tuple[int, str]:
        """Returns the tool's exit status and what it prints on stdout."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join([jvm.TOOLS[name], *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if len(answer) != 2:
            raise jvm.ToolError(f"{name} {' '.join(arguments)} ended its JVM")
        return int(answer[0]), self._process.stdout.read(int(answer[1])).decode()

    def close(self) -> None:
        """End the JVM."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
