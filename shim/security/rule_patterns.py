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
    from collections.abc import Callable, Mapping
    from typing import Protocol

    class Match(Protocol):
        """One match, of either library."""

        def __getitem__(self, group: int | str) -> str | None: ...

    class RulePattern(Protocol):
        """A compiled expression, of either library."""

        @property
        def groups(self) -> int: ...

        @property
        def groupindex(self) -> Mapping[str, int]: ...

        def fullmatch(self, text: str) -> Match | None: ...

        def sub(self, replacement: Callable[[Match], str], text: str, count: int = 0) -> str: ...


# A name of a client is matched up to this length. X.500 has no name of an attribute over a few hundred characters.
MOST_CHARACTERS = 8192


# An expression with a class in a class, or `&&` in one.
_CLASS = r"\[\^?+\]?+(?:\\.|[^]\\[&]|&(?!&))*+"
_SET_OPERATION = re.compile(rf"(?:\\.|[^\\[]|{_CLASS}\])*+{_CLASS}(?:\[|&&)", re.DOTALL)
_NAMED_GROUP = re.compile(r"(\\.)|\(\?<(?=[a-zA-Z])", re.DOTALL)
# In what replaces a match: a quoted character, a group, or what Java refuses.
_REPLACEMENT = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|[$\\]", re.DOTALL
)


def compile_rule(expression: str, warnings: list[str]) -> RulePattern:
    """Return the compiled expression. `warnings` gets a line if its time is not bounded. Raises re.error."""
    if _SET_OPERATION.match(expression):
        raise re.error("a class in a class, and && in one, mean something else in Java: write the class without")
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        linear: RulePattern = re2.compile(expression, options)
    except re2.error:
        compiled = re.compile(_NAMED_GROUP.sub(lambda found: found[1] or "(?P<", expression), re.ASCII)
        warnings.append(
            f"the expression {expression!r} has what RE2 has not (lookaround, a backreference), so that a client's "
            "name may make it take long: write it without"
        )
        return compiled
    return linear


def filled(replacement: str, pattern: RulePattern, match: Match) -> str:
    """Return what Java's Matcher puts in place of a match. Raises ValueError, as Java refuses the replacement."""

    def fill(part: re.Match[str]) -> str:
        if part["literal"] is not None:
            return part["literal"]
        if (name := part["name"]) in pattern.groupindex:
            return match[name] or ""
        number = part["number"]
        if number is None or int(number[0]) > pattern.groups:
            raise ValueError(f"the replacement {replacement!r} names no group")
        digits = 1
        while digits < len(number) and int(number[: digits + 1]) <= pattern.groups:
            digits += 1
        return (match[int(number[:digits])] or "") + number[digits:]

    return _REPLACEMENT.sub(fill, replacement)


def is_too_long(name: str) -> bool:
    """Whether no rule may be tried on the name."""
    return len(name) > MOST_CHARACTERS
