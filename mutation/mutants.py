"""One mutant, its name and its place in the seeded order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    - `start`, `end`: bytes of the file that `new` replaces.
    - `lines`: first and last line of the statement, by which tests are chosen; `is_import_time` when it runs once, at
      import.
    - `number`: which of the equal changes of equal lines of the file this is.
    """

    path: str
    operator: str
    start: int
    end: int
    old: str
    new: str
    line: int
    lines: tuple[int, int]
    text: str
    function: str
    is_import_time: bool
    number: int = 0

    @property
    def name(self) -> str:
        """The same as long as the line is, wherever it moves in its file."""
        words = (self.path, self.operator, self.text, self.old, self.new, self.function, str(self.number))
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function or 'the module'}: {self.operator}: {self.text}"


def in_seeded_order(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """Each mutant has its own place, so that a change elsewhere in the tree leaves the sample as it was."""
    return sorted(mutants, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).digest())


def numbered(found: list[Mutant]) -> list[Mutant]:
    """Tells equal changes of equal lines apart."""
    from dataclasses import replace

    seen: dict[str, int] = {}
    out = []
    for mutant in found:
        at = seen.get(mutant.name, 0)
        seen[mutant.name] = at + 1
        out.append(replace(mutant, number=at) if at else mutant)
    return out
