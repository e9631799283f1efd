"""Unsecured JSON Web Tokens: anybody can make one (Kafka: OAuthBearerUnsecuredJws,
OAuthBearerUnsecuredValidatorCallbackHandler). For tests.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from types import NoneType

from kafka_shim.config import ConfigError
from kafka_shim.security.printable import MAX_NAME
from kafka_shim.security.sasl.mechanism import InvalidTokenError, sendable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kafka_shim.clock import Clock

_PREFIX = "unsecuredValidator"


class UnsecuredTokens:
    """Checks the claims of tokens without a signature by the options of the login module."""

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        """Raises ConfigError."""
        self._clock = clock
        self._principal_claim = options.get(f"{_PREFIX}PrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get(f"{_PREFIX}ScopeClaimName", "").strip() or "scope"
        self._required_scope = options.get(f"{_PREFIX}RequiredScope", "").split()
        skew = options.get(f"{_PREFIX}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise ConfigError(f"{_PREFIX}AllowableClockSkewMs: {skew} is not a number of milliseconds")
        self._skew_ms = int(skew)

    async def validate(self, token: str) -> tuple[str, int]:
        parts = token.split(".")
        if len(parts) != 3 or ".." in token:
            raise InvalidTokenError("an unsecured token has three parts with dots between, the last one empty")
        header, claims = _json(parts[0]), _json(parts[1])
        if header.get("alg") != "none" or parts[2]:
            raise InvalidTokenError(
                "the token is signed, but this listener takes unsecured ones: set sasl.server.callback.handler.class"
            )
        expires, issued = _number(claims, "exp"), _number(claims, "iat")
        if expires is None:
            raise InvalidTokenError("the token has no expiration time (exp)")
        principal = claims.get(self._principal_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise InvalidTokenError(f"the token has no principal name (claim {self._principal_claim})")
        who = principal[:MAX_NAME]
        now_ms = self._clock.now_ms()
        if issued is not None and 1000 * issued > now_ms + self._skew_ms:
            raise InvalidTokenError(f"the token of {who!r} was issued in the future: compare the clocks")
        if now_ms - self._skew_ms >= 1000 * expires:
            raise InvalidTokenError(f"the token of {who!r} has expired: the client needs a new one")
        if issued is not None and expires <= issued:
            raise InvalidTokenError(f"the token of {who!r} expires before it was issued")
        scope = claims.get(self._scope_claim)
        if not isinstance(scope, (str, list, NoneType)):
            raise InvalidTokenError(f"the claim {self._scope_claim} of the token is neither text nor a list")
        granted = {scope.strip()} if isinstance(scope, str) else {str(one).strip() for one in scope or ()}
        missing = [one for one in self._required_scope if one not in granted]
        if missing:
            reason = f"the token of {who!r} lacks the scope {missing[0]}"
            raise InvalidTokenError(reason, f"[{', '.join(self._required_scope)}]")
        return sendable(principal), round(expires * 1000)


def _json(part: str) -> dict[str, Any]:
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidTokenError("the token is not base64 of JSON objects")
    return found


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise InvalidTokenError(f"the claim {name} of the token is not a time in seconds")
    return value
