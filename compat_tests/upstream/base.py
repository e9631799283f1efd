"""The interface of an upstream suite: tests with ids that can be listed and run against a broker's address."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.compat.upstream.allow_list import AllowList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import ClassVar

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Unavailable(Exception):
    """The suite cannot be run here: no package index, no toolchain. The text says what is missing."""


@dataclass(frozen=True)
class Outcome:
    """The result of one test. `text` is its message or output if it did not pass."""

    status: str
    seconds: float = 0.0
    text: str = ""


class Suite:
    """A client's own tests. Call `prepare` first. A suite does not start a broker."""

    name: str
    title: str
    """The client and where its tests are from, for reports."""
    folder: Path
    """Of tests.allow and FINDINGS.md."""
    settings: ClassVar[Mapping[str, str]] = {}
    """Broker options that the tests count on."""

    host = "127.0.0.1"
    """What the broker listens on and says that it does."""

    @property
    def allow_list(self) -> AllowList:
        return AllowList.read(self.folder / "tests.allow")

    @property
    def version(self) -> str:
        """Of the client whose tests run; known after `prepare`."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Fetches and builds what is missing. Raises Unavailable."""
        raise NotImplementedError

    def tests(self) -> list[str]:
        """The ids of every test that the package has."""
        raise NotImplementedError

    def run(self, bootstrap: str, tests: Sequence[str], scratch: Path, *, long: bool) -> dict[str, Outcome]:
        """Runs `tests` against the broker at `bootstrap`; files may be left in `scratch`.

        A test that is missing in the answer did not run: the child ended before it.
        """
        raise NotImplementedError
