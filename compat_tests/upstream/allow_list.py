"""Which tests of a suite must pass: one line each, ``quick ID``, ``long ID`` or ``out ID # reason``.

``quick`` is run by ``make test``, ``quick`` and ``long`` together are the long form, ``out`` is what is not run and
why. An ID may hold ``*``. A test is judged by the first line that fits it, so an exception stands above the pattern.
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
    """A line that cannot be read."""


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
        """Raises AllowListError for a line of another form, an exclusion without a reason, or a test listed twice."""
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
        """Those of `tests` that the form runs."""
        kinds = (QUICK, LONG) if long else (QUICK,)
        return [test for test in tests if (line := self.line_of(test)) is not None and line.kind in kinds]

    def excluded(self, tests: Iterable[str]) -> dict[str, str]:
        """Those of `tests` that no form runs, each with the reason."""
        lines = {test: self.line_of(test) for test in tests}
        return {test: line.reason for test, line in lines.items() if line is not None and line.kind == OUT}

    def disagreements(self, tests: Iterable[str]) -> list[str]:
        """What the list and the package's tests do not agree on: a test that no line fits, a line that fits none."""
        known = list(tests)
        unlisted = [f"not listed: {test}" for test in known if self.line_of(test) is None]
        # A subtest of a Go suite is known when it ran, not before: its test is.
        gone = [
            f"listed, but not in the package: {line.test}"
            for line in self.lines
            if not any(line.fits(test) for test in known) and line.test.partition("/")[0] not in known
        ]
        return unlisted + gone
