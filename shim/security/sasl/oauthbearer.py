"""OAUTHBEARER: one bearer token (RFC 7628; Kafka: OAuthBearerSaslServer, OAuthBearerClientInitialResponse).

What checks a token is named by `sasl.server.callback.handler.class`: unset, unsecured tokens are accepted, which nobody
has signed (`unsecured_tokens.py`); Kafka's `OAuthBearerValidatorCallbackHandler` checks signatures (`tokens.py`).
"""

from __future__ import annotations

import re

from kafka_shim.config import ConfigError
from kafka_shim.security.sasl.mechanism import (
    SASLNAME,
    InvalidTokenError,
    SaslAuthenticationError,
    SaslError,
    check_length,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.sasl.jaas import LoginModule
    from kafka_shim.security.sasl.mechanism import TokenValidator

NAME = "OAUTHBEARER"
LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"

_FIRST = re.compile(rf"n,(?:a=(?P<authzid>{SASLNAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


def maker(
    handler: TokenValidator | str | None,
    modules: Sequence[LoginModule],
    options: ListenerOptions,
    clock: Clock,
    warnings: list[str],
) -> Callable[[], OAuthBearer]:
    """Return what makes the exchanges of a listener. `handler` names a class of Kafka's or checks tokens itself. Raises
    ConfigError."""
    own = [module for module in modules if module.name == LOGIN_MODULE]
    if len(own) != 1:
        raise ConfigError(f"Must supply exactly 1 non-null JAAS mechanism configuration (size was {len(own)})")
    validator: TokenValidator
    if handler is not None and not isinstance(handler, str):
        validator = handler
    elif handler in (None, "", UNSECURED):
        from kafka_shim.security.sasl.unsecured_tokens import UnsecuredTokens

        validator = UnsecuredTokens(own[0].options, clock)
        warnings.append(
            "OAUTHBEARER accepts tokens that nobody has signed, so any client may call itself anything: set "
            f"sasl.server.callback.handler.class to {VALIDATOR}"
        )
    elif handler == VALIDATOR:
        from kafka_shim.security.sasl.tokens import SignedTokens

        validator = SignedTokens(options, clock, warnings, own[0].options)
    else:
        raise ConfigError(f"sasl.server.callback.handler.class: {handler} cannot run here; {VALIDATOR} is built in")
    return lambda: OAuthBearer(validator)


class OAuthBearer:
    """One exchange: the token, and after a refused one the client's last word."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._error = ""
        self._reason = ""
        self.authorization_id = ""
        self.is_complete = False
        self.token_id = ""
        self.expires_at_ms: int | None = None

    async def evaluate(self, token: bytes) -> bytes:
        if token == b"\x01" and self._error:
            raise SaslAuthenticationError(self._error, self._reason)
        self._error = ""
        check_length(token)
        found = _FIRST.fullmatch(token.decode(errors="replace"))
        if found is None:
            raise SaslError("the client's first message is not a message of OAUTHBEARER")
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
        auth = pairs.pop("auth", None)
        bearer = None if auth is None else _AUTH.fullmatch(auth)
        if bearer is None or bearer["scheme"].lower() != "bearer":
            raise SaslError("the client's first message has no bearer token")
        try:
            name, expires_at_ms = await self._validator.validate(bearer["token"])
        except InvalidTokenError as err:
            self._reason = str(err)
            scope = "" if err.scope is None else f', "scope":"{err.scope}"'
            self._error = f'{{"status":"{err.status}"{scope}}}'
            return self._error.encode()
        wanted = found["authzid"]
        if wanted and wanted != name:
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({wanted}) that is different from the "
                f"token's principal name ({name})"
            )
        self.authorization_id = name
        self.expires_at_ms = expires_at_ms
        self.is_complete = True
        return b""
