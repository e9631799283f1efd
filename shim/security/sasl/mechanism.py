"""What a SASL mechanism is to the rest of the broker (Java: SaslServer)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Mechanism(Protocol):
        """One exchange of one client, from its first token until `is_complete`."""

        # Once complete: the name that the client has proved to be.
        authorization_id: str
        is_complete: bool
        # Once complete: the id of the delegation token by which the client has authenticated, or empty.
        token_id: str
        # When the credentials expire, in milliseconds since the epoch; None: never.
        expires_at_ms: int | None

        async def evaluate(self, token: bytes) -> bytes:
            """Return the answer to a client's token. Raises SaslError."""

    class TokenValidator(Protocol):
        """Checks the tokens of OAUTHBEARER."""

        async def validate(self, token: str) -> tuple[str, int]:
            """Return (principal's name, expiry in milliseconds since the epoch). Raises InvalidTokenError."""


# The longest message of SCRAM or OAUTHBEARER: parsing one of half a megabyte, as `sasl.server.max.receive.size` allows,
# holds the event loop for tens of milliseconds, and whoever reaches the port can send it.
LONGEST_MESSAGE_BYTES = 1 << 16
# A name in a message of SCRAM or OAUTHBEARER (RFC 5801: saslname). Possessive: one of half a megabyte is read once, and
# nothing is kept to go back to.
SASLNAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"


class SaslError(Exception):
    """The exchange failed. The client learns only that its credentials are invalid (Java: SaslException). The message
    is for the operator and contains no secret."""


class SaslAuthenticationError(SaslError):
    """The exchange failed, and the client gets this message (Kafka: SaslAuthenticationException). `advice` is for the
    operator alone."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class SaslSilentError(SaslError):
    """The exchange failed in a way that Kafka answers by closing the connection."""


class InvalidTokenError(Exception):
    """A token is not accepted. The message is for the operator; the client learns the status and the scope."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = "invalid_token" if scope is None else "insufficient_scope"
        self.scope = scope


def check_length(message: bytes) -> None:
    """Raises SaslError for a message over `LONGEST_MESSAGE_BYTES`."""
    if len(message) > LONGEST_MESSAGE_BYTES:
        raise SaslError(f"the client's message has {len(message)} bytes, at most {LONGEST_MESSAGE_BYTES} are read")


def sendable(name: str) -> str:
    """Return a name out of JSON, which may have half a character, as Java sends it."""
    return name.encode(errors="replace").decode()
