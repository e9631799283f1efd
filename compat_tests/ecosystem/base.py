"""The interface of a part: it is made ready from packages, and run on a broker it says what it found."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass, field

from kafka_shim.targets import Target, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

WAIT_S = 120.0


class PartError(Exception):
    """A part did not come to its end. The text has the end of its output."""


@dataclass(frozen=True)
class Lab:
    """A broker that runs, how to get one more, and a folder for files."""

    target: Target
    other: Callable[[], Target]
    """Starts one more broker, of the second kind if there is one; it is stopped with the lab."""
    scratch: Path

    @property
    def bootstrap(self) -> str:
        return self.target.bootstrap


class Part:
    """One framework or client."""

    name: str
    title: str
    what: str
    """What the application does, for the table."""
    version: str

    def prepare(self) -> None:
        """Fetches and builds what is missing. Raises `kafka_shim.compat.upstream.base.Unavailable`."""
        raise NotImplementedError

    def run(self, lab: Lab) -> list[str]:
        """What the application found. Raises PartError."""
        raise NotImplementedError


@dataclass
class Result:
    """The lines of a part on each target, by the target's name, and the seconds that it took there."""

    part: Part
    found: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        lines = list(self.found.values())
        return all(each == lines[0] and each for each in lines)

    def text(self) -> str:
        rows = [f"{self.part.name} {self.part.version}: {'the same' if self.is_same else 'DIFFERENT'}"]
        for kind, lines in self.found.items():
            rows.append(f"  {kind}, {self.seconds[kind]:.0f} s")
            rows += [f"    {line}" for line in lines]
            if kind in self.errors:
                rows.append(f"    failed: {self.errors[kind]}")
        return "\n".join(rows)


@contextlib.contextmanager
def lab(kind: str, scratch: Path) -> Iterator[Lab]:
    """A broker of `kind`. ``shim+kafka-native`` is a shim whose other broker is Apache Kafka."""
    first, _, second = kind.partition("+")
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(make(first))
        yield Lab(target, lambda: stack.enter_context(make(second or first)), scratch)


def measure(part: Part, kinds: Sequence[str], scratch: Path) -> Result:
    """Runs a prepared part on a new broker of each kind."""
    result = Result(part)
    for kind in kinds:
        began = time.monotonic()
        folder = scratch / part.name / kind
        folder.mkdir(parents=True, exist_ok=True)
        with lab(kind, folder) as made:
            try:
                result.found[kind] = part.run(made)
            except PartError as failed:
                # No findings: what fails on both alike is not the same.
                result.found[kind] = []
                result.errors[kind] = str(failed)
            (folder / "broker.log").write_text(made.target.log())
        result.seconds[kind] = time.monotonic() - began
    return result


def run_program(command: Sequence[str], log: Path, *, timeout_s: float = 300) -> list[str]:
    """The lines that a program prints; its stderr goes to `log`. Raises PartError unless it ends well."""
    with log.open("wb") as errors:
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as slow:
            raise PartError(f"ran over {timeout_s:.0f} s: {(slow.stdout or b'').decode()[-1000:]}") from None
    lines = done.stdout.decode().splitlines()
    if done.returncode != 0:
        raise PartError(f"status {done.returncode}: {lines[-5:]} {log.read_text(errors='replace')[-2000:]}")
    return lines


def wait_for(what: str, condition: Callable[[], bool], log: Path | None = None) -> None:
    """Returns when `condition` is true. Raises PartError after WAIT_S."""
    give_up = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > give_up:
            tail = log.read_text(errors="replace")[-2000:] if log is not None else ""
            raise PartError(f"waited {WAIT_S:.0f} s for {what}\n{tail}")
        time.sleep(0.2)
