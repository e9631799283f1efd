"""`sasl.kerberos.principal.to.local.rules`: how a Kerberos principal becomes a user's name (Kafka: KerberosShortNamer,
KerberosRule, KerberosName).

A rule is `DEFAULT` (the first component of a principal of the default realm), or `RULE:[n:format](match)s/from/to/gL`:
for principals of n components, the format with `$0` (realm), `$1`, `$2` filled in must match as a whole; then `from` is
replaced once or, with `g`, everywhere; `/L` and `/U` change the case. The first rule that applies decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafka_shim.config import ConfigError
from kafka_shim.security.rule_patterns import compile_rule, filled, is_too_long
from kafka_shim.security.sasl.mechanism import SaslError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.security.rule_patterns import Match, RulePattern

_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<count>[0-9]*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_NAME = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?@(?P<realm>[^/@]*)")
_PARAMETER = re.compile(r"\$([0-9]*)")
_NOT_SIMPLE = re.compile("[/@]")


class NoMatchingRuleError(SaslError):
    """No rule applies to a principal, or one makes a name of it that is none."""


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    count: int
    format: str
    match: RulePattern | None
    source: RulePattern | None
    target: str
    is_repeated: bool
    case: str | None

    def apply(self, parts: Sequence[str]) -> str | None:
        """Return the name, or None if the rule is not for this principal. Raises NoMatchingRuleError."""
        if len(parts) - 1 != self.count:
            return None
        name = _PARAMETER.sub(lambda found: self._part(found[1], parts), self.format)
        if self.match is not None and self.match.fullmatch(name) is None:
            return None
        if self.source is not None:
            name = self.source.sub(self._replacement, name, 0 if self.is_repeated else 1)
        return _simple(name, self.text, self.case)

    def _part(self, number: str, parts: Sequence[str]) -> str:
        if not number:
            raise NoMatchingRuleError(f"bad format in username mapping in {self.text}")
        if int(number) >= len(parts):
            raise NoMatchingRuleError(
                f"index {number} from {self.format} is outside of the valid range 0 to {len(parts) - 1}"
            )
        return parts[int(number)]

    def _replacement(self, found: Match) -> str:
        assert self.source is not None
        try:
            return filled(self.target, self.source, found)
        except ValueError as err:
            raise NoMatchingRuleError(f"{err}, in {self.text}") from None


def _simple(name: str, rule: str, case: str | None) -> str:
    if _NOT_SIMPLE.search(name):
        raise NoMatchingRuleError(f"Non-simple name {name} after auth_to_local rule {rule}")
    return name.lower() if case == "L" else name.upper() if case == "U" else name


class KerberosRules:
    """The rules of one listener."""

    def __init__(self, default_realm: str, rules: Sequence[str]) -> None:
        """Raises ConfigError."""
        self._default_realm = default_realm
        # One line for each expression whose time is not bounded.
        self.warnings: list[str] = []
        self._rules = [_parse(rule, self.warnings) for rule in rules]

    def name_of(self, principal: str) -> str:
        """Return the name of `service/host@REALM`. Raises NoMatchingRuleError."""
        if is_too_long(principal):
            raise NoMatchingRuleError(f"a Kerberos name of {len(principal)} characters is tried on no rule")
        found = _NAME.fullmatch(principal)
        if found is None:
            if "@" in principal:
                raise NoMatchingRuleError(f"Malformed Kerberos name: {principal}")
            return principal
        parts = [found["realm"], found["service"]]
        if found["host"] is not None:
            parts.append(found["host"])
        for rule in self._rules:
            if rule is not None:
                name = rule.apply(parts)
            else:
                name = _simple(parts[1], "DEFAULT", None) if parts[0] == self._default_realm else None
            if name is not None:
                return name
        raise NoMatchingRuleError(f"No rules apply to {principal}: change sasl.kerberos.principal.to.local.rules")


def _parse(text: str, warnings: list[str]) -> _Rule | None:
    """Return the rule; None for DEFAULT."""
    found = _RULE.match(text)
    if found is None:
        raise ConfigError(f"Invalid rule: {text}")
    if found.end() != len(text):
        raise ConfigError(f"Invalid rule: `{text}`, unmatched substring: `{text[found.end() :]}`")
    if found["default"]:
        return None
    if not found["count"]:
        raise ConfigError(f"Invalid rule: {text}: it does not say for how many components it is")
    try:
        match = None if found["match"] is None else compile_rule(found["match"], warnings)
        source = None if found["from"] is None else compile_rule(found["from"], warnings)
    except re.error as err:
        raise ConfigError(f"Invalid rule: {text}: {err}") from None
    return _Rule(
        text, int(found["count"]), found["format"], match, source, found["to"] or "", bool(found["all"]), found["case"]
    )
