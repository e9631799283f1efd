"""A Java program that answers lines: Apache Kafka's own code, as an oracle, behind a pipe."""

from __future__ import annotations

import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self


class JavaDriver:
    """A context manager over one Java process, which ends with its input. Not thread-safe."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)

    def _ask(self, *words: str) -> str:
        """Writes the words as one line, with tabs between them, and returns the line that answers it."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the driver ended with {self._process.wait(timeout=60)} at {words}; a JDK 17 is needed")
        return answer
