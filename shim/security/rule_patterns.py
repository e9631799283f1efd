"""The regular expressions of rules that make names of what clients bring: the subject of a certificate, a Kerberos
principal.

The operator writes the expression and the client the text, so that an expression that backtracks may take hours. RE2
takes a time that is linear in the text. What it has not, lookaround and backreferences, Python's `re` matches, with a
warning.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Match(Protocol):
        """One match, of either library."""

        def __getitem__(self, group: int) -> str | None: ...

    class RulePattern(Protocol):
        """A compiled expression, of either library."""

        @property
        def groups(self) -> int: ...

        def fullmatch(self, text: str) -> Match | None: ...

        def sub(self, replacement: Callable[[Match], str], text: str, count: int = 0) -> str: ...


# A name of a client is matched up to this length. X.500 has no name of an attribute over a few hundred characters.
MOST_CHARACTERS = 8192


def compile_rule(expression: str, warnings: list[str]) -> RulePattern:
    """Return the compiled expression. `warnings` gets a line if its time is not bounded. Raises re.error."""
    compiled = re.compile(expression)
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        linear: RulePattern = re2.compile(expression, options)
    except re2.error:
        warnings.append(
            f"the expression {expression!r} has what RE2 has not (lookaround, a backreference), so that a client's "
            "name may make it take long: write it without"
        )
        return compiled
    return linear


def is_too_long(name: str) -> bool:
    """Whether no rule may be tried on the name."""
    return len(name) > MOST_CHARACTERS
