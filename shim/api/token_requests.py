"""What the requests of delegation tokens have in common."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.security.principals import ANONYMOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.security.delegation_tokens import DelegationTokens

# The time in a response that has none (DelegationTokenManager.ERROR_TIMESTAMP).
NO_TIMESTAMP = -1


def is_allowed(context: Context) -> bool:
    """Return whether the client has authenticated, and not by a token itself: a token begets no token."""
    session = context.session
    protocol = session.listener.security_protocol
    if protocol == "PLAINTEXT" or (protocol == "SSL" and session.principal == ANONYMOUS):
        return False
    return session.authenticator is None or not session.authenticator.token_id


def tokens_of(context: Context) -> DelegationTokens:
    """Return the tokens of this broker. Raises DELEGATION_TOKEN_AUTH_DISABLED without a secret key."""
    tokens = context.broker.tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def parts_of(principal: str) -> tuple[str, str]:
    """Return (type, name) of `Type:name`."""
    kind, _, name = principal.partition(":")
    return kind, name
