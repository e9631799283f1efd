"""From the name in a client's certificate to the name of a principal: `ssl.principal.mapping.rules` (Kafka:
SslPrincipalMapper).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT

The first rule whose pattern matches the whole name makes the principal: each match of the pattern in the name is
replaced, so `.*` matches twice, the name and the nothing behind it. `L` and `U` change the case; DEFAULT takes the name
as it is.
"""

from __future__ import annotations

import functools
import re

from kafka_shim.config import ConfigError
from kafka_shim.security.printable import MAX_REASON, printable
from kafka_shim.security.rule_patterns import compile_rule, filled, is_too_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.security.rule_patterns import RulePattern

# As in Kafka nothing between two commas is no rule.
_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<to>(?:\\.|[^\\/])*)/(?P<case>[LU]?))?\s*"
)
_REFERENCE = re.compile(r"\$([1-9][0-9]*)")


class MappingRules:
    """Parsed rules."""

    def __init__(self, text: str) -> None:
        """Raises ConfigError."""
        # One line for each expression whose time is not bounded.
        self.warnings: list[str] = []
        # (pattern or None for DEFAULT, replacement, case)
        self._rules: list[tuple[RulePattern | None, str, str]] = []
        at = 0
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigError(f"ssl.principal.mapping.rules: Invalid rule: `{text[at:]}`")
            if found["default"]:
                self._rules.append((None, "", ""))
            elif found["pattern"] is not None:
                try:
                    pattern = compile_rule(found["pattern"], self.warnings)
                except re.error as err:
                    raise ConfigError(f"ssl.principal.mapping.rules: {found['pattern']}: {err}") from None
                self._rules.append((pattern, found["to"], found["case"]))
            at = found.end() + 1

    def name_of(self, subject: str) -> str:
        """Return the principal's name for a certificate's subject. Raises ConfigError if no rule matches."""
        if any(pattern is not None for pattern, _, _ in self._rules) and is_too_long(subject):
            raise ConfigError(f"ssl.principal.mapping.rules: a name of {len(subject)} characters is tried on no rule")
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return subject
            if pattern.fullmatch(subject) is None:
                continue
            to = _with_literals(replacement, pattern.groups)
            try:
                name = pattern.sub(functools.partial(filled, to, pattern), subject)
            except ValueError as err:
                raise ConfigError(f"ssl.principal.mapping.rules: {err}") from None
            return name.lower() if case == "L" else name.upper() if case == "U" else name
        raise ConfigError(f"no rule of ssl.principal.mapping.rules matches {printable(subject, MAX_REASON)}")


def _with_literals(replacement: str, group_count: int) -> str:
    """Quote the references to groups that a pattern with groups has not (SslPrincipalMapper's
    escapeLiteralBackReferences, which finds their places before it quotes the first)."""
    quoted = replacement
    for found in _REFERENCE.finditer(replacement) if group_count else ():
        group = int(found[1])
        while group > group_count and group >= 10:
            group //= 10
        if group > group_count:
            quoted = f"{quoted[: found.start()]}\\{quoted[found.start() :]}"
    return quoted
