"""The allow list of a suite: one line per test, ``quick ID``, ``long ID`` or ``out ID # reason``.

``make test`` runs ``quick``. The long form runs ``quick`` and ``long``. ``out`` tests are not run, for the given
reason. An ID may contain ``*``. The first line that matches a test applies, so an exception precedes the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

QUICK, LONG, OUT = "quick", "long", "out"


class AllowListError(ValueError):
    """An invalid line."""


@dataclass(frozen=True)
class Line:
    kind: str
    test: str
    reason: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(".*".join(re.escape(part) for part in self.test.split("*")))

    def fits(self, test: str) -> bool:
        return self.pattern.fullmatch(test) is not None


@dataclass(frozen=True)
class AllowList:
    lines: tuple[Line, ...]

    @classmethod
    def parse(cls, text: str) -> AllowList:
        """Parses a list. Raises AllowListError for an invalid line, an exclusion without a reason, or a test listed
        twice.
        """
        lines: list[Line] = []
        for row in text.splitlines():
            if not row.strip() or row.startswith("#"):
                continue
            rule, _, reason = (part.strip() for part in row.partition(" # "))
            kind, _, test = rule.partition(" ")
            line = Line(kind, test.strip(), reason)
            if kind not in (QUICK, LONG, OUT) or not line.test:
                raise AllowListError(f"neither quick, long nor out: {row!r}")
            if kind == OUT and not reason:
                raise AllowListError(f"an exclusion without a reason: {row!r}")
            if any(line.test == other.test for other in lines):
                raise AllowListError(f"listed twice: {row!r}")
            lines.append(line)
        return cls(tuple(lines))

    @classmethod
    def read(cls, path: Path) -> AllowList:
        return cls.parse(path.read_text())

    def line_of(self, test: str) -> Line | None:
        return next((line for line in self.lines if line.fits(test)), None)

    def chosen(self, tests: Iterable[str], *, long: bool) -> list[str]:
        """Returns those of `tests` that the form runs."""
        kinds = (QUICK, LONG) if long else (QUICK,)
        return [test for test in tests if (line := self.line_of(test)) is not None and line.kind in kinds]

    def excluded(self, tests: Iterable[str]) -> dict[str, str]:
        """Returns those of `tests` that no form runs, each with the reason."""
        lines = {test: self.line_of(test) for test in tests}
        return {test: line.reason for test, line in lines.items() if line is not None and line.kind == OUT}

    def disagreements(self, tests: Iterable[str]) -> list[str]:
        """Returns the mismatches between the list and the package: tests that no line matches, and lines that match no
        test.
        """
        known = list(tests)
        unlisted = [f"not listed: {test}" for test in known if self.line_of(test) is None]
        # A subtest of a Go suite is known only after it ran. Its top-level test is known before.
        gone = [
            f"listed, but not in the package: {line.test}"
            for line in self.lines
            if not any(line.fits(test) for test in known) and line.test.partition("/")[0] not in known
        ]
        return unlisted + gone
