"""From the name in a client's certificate to the name of a principal: `ssl.principal.mapping.rules` (Kafka:
SslPrincipalMapper).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT

The first rule whose pattern matches the whole name makes the principal; `L` and `U` change its case; DEFAULT takes the
name as it is.
"""

from __future__ import annotations

import re

from kafka_shim.config import ConfigError
from kafka_shim.security.printable import MAX_REASON, printable

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<to>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*"
)


class MappingRules:
    """Parsed rules."""

    def __init__(self, text: str) -> None:
        """Raises ConfigError."""
        # (pattern or None for DEFAULT, replacement, case)
        self._rules: list[tuple[re.Pattern[str] | None, str, str]] = []
        at = 0
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigError(f"ssl.principal.mapping.rules: Invalid rule: `{text[at:]}`")
            if found["default"]:
                self._rules.append((None, "", ""))
            else:
                try:
                    pattern = re.compile(found["pattern"])
                except re.error as err:
                    raise ConfigError(f"ssl.principal.mapping.rules: {found['pattern']}: {err}") from None
                self._rules.append((pattern, re.sub(r"\$(\d)", r"\\g<\1>", found["to"]), found["case"]))
            at = found.end() + 1

    def name_of(self, subject: str) -> str:
        """Return the principal's name for a certificate's subject. Raises ConfigError if no rule matches."""
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return subject
            if pattern.fullmatch(subject) is None:
                continue
            try:
                name = pattern.sub(replacement, subject, count=1)
            except (re.error, IndexError) as err:
                raise ConfigError(f"ssl.principal.mapping.rules: {err}") from None
            return name.lower() if case == "L" else name.upper() if case == "U" else name
        raise ConfigError(f"no rule of ssl.principal.mapping.rules matches {printable(subject, MAX_REASON)}")
