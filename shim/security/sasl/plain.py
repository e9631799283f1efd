"""PLAIN: user and password in one token (RFC 4616; Kafka: PlainSaslServer, PlainServerCallbackHandler).

Users are the options `user_NAME="password"` of `PlainLoginModule` in the listener's JAAS options.
"""

from __future__ import annotations

import hmac

from kafka_shim.security.sasl.mechanism import SaslAuthenticationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.security.sasl.jaas import LoginModule

NAME = "PLAIN"
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER_PREFIX = "user_"


def passwords_of(modules: Sequence[LoginModule]) -> dict[str, str]:
    """Return user -> password of a listener's login modules."""
    return {
        key.removeprefix(USER_PREFIX): value
        for module in reversed(modules)
        if module.name == LOGIN_MODULE
        for key, value in module.options.items()
        if key.startswith(USER_PREFIX)
    }


class Plain:
    """One exchange."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords
        self.authorization_id = ""
        self.is_complete = False
        self.token_id = ""
        self.expires_at_ms: int | None = None

    async def evaluate(self, token: bytes) -> bytes:
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != 3:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}",
                "the client does not speak PLAIN",
            )
        wanted, user, password = parts
        if not user:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        is_right, advice = await self.is_right(user, password)
        if not is_right:
            raise SaslAuthenticationError("Authentication failed: Invalid username or password", advice)
        if wanted and wanted != user:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.authorization_id = user
        self.is_complete = True
        return b""

    async def is_right(self, user: str, password: str) -> tuple[bool, str]:
        """Return whether this is the user's password, and advice for the operator if it is not."""
        expected = self._passwords.get(user)
        # An unknown user costs the same comparison as a known one.
        is_equal = hmac.compare_digest(password.encode(), ("" if expected is None else expected).encode())
        advice = f"user {user!r} has another password" if expected is not None else f"there is no user {user!r}"
        return (
            expected is not None and is_equal,
            f"{advice}: compare the client's sasl.jaas.config with the option user_NAME of this listener",
        )
