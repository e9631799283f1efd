"""What `sasl.server.callback.handler.class` names if it is none of Kafka's classes: a Python class by its dotted path.
docs/plugins.md has the interface for each mechanism.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from inspect import isawaitable

from kafka_shim.randomness import Randomness
from kafka_shim.security.plugins import make_plugin
from kafka_shim.security.sasl.plain import Plain
from kafka_shim.security.sasl.scram import MECHANISMS, MIN_ITERATIONS, Credentials, keys_of, salted_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.sasl.jaas import LoginModule
    from kafka_shim.security.sasl.scram import Credential

OPTION = "sasl.server.callback.handler.class"
KAFKAS_OWN = "org.apache.kafka."
# Mechanism -> the method that a handler must have.
METHODS = {"PLAIN": "authenticate", "OAUTHBEARER": "validate", **dict.fromkeys(MECHANISMS, "credential")}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a handler of SCRAM returns for a user (Kafka: ScramCredential)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> ScramCredential:
        """The credential for a password, with a new salt."""
        salt = base64.b64encode(Randomness().bytes_of(18))
        return cls(
            salt, *keys_of(mechanism, salted_password(mechanism, password, salt, iterations)), iterations=iterations
        )


def make_handler(
    name: str | None, mechanism: str, modules: Sequence[LoginModule], options: ListenerOptions
) -> Any | None:
    """Return the configured handler of a mechanism, or None if the option is unset or names a class of Kafka's. Raises
    ConfigError."""
    if not name or name.startswith(KAFKAS_OWN):
        return None
    login_options = [dict(module.options) for module in modules]
    method = METHODS[mechanism]
    awaited = () if mechanism in MECHANISMS else (method,)
    return make_plugin(OPTION, name, {}, (method,), options.given(), mechanism, login_options, awaited=awaited)


def credentials_of(handler: Any) -> Credentials:
    """Return the look-up of SCRAM credentials that asks the handler. As in Kafka it knows no delegation tokens."""

    def look_up(user: str, code: int) -> Credential | None:
        found: Credential | None = handler.credential(user)
        return found

    return Credentials(look_up, are_stored=False)


class HandledPlain(Plain):
    """One exchange of PLAIN, in which the handler knows the passwords."""

    def __init__(self, authenticate: Callable[[str, str], Any]) -> None:
        super().__init__({})
        self._authenticate = authenticate

    async def is_right(self, user: str, password: str) -> tuple[bool, str]:
        answer = self._authenticate(user, password)
        if isawaitable(answer):
            answer = await answer
        return answer is True, f"the handler does not accept user {user!r}"


class HandledTokens:
    """Checks tokens of OAUTHBEARER by the handler's `validate`."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    async def validate(self, token: str) -> tuple[str, int]:
        answer = self._handler.validate(token)
        if isawaitable(answer):
            answer = await answer
        name, expires_at_ms = answer
        return str(name), int(expires_at_ms)
