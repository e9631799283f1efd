"""ExpireDelegationToken (key 40), versions 1-2.

Moves the expiry of a token, never beyond its longest lifetime; a negative period removes the token at once, also an
expired one. For its owner and its renewers (else DELEGATION_TOKEN_OWNER_MISMATCH); an unknown HMAC is
DELEGATION_TOKEN_NOT_FOUND. Refused without authentication and over a session by token.
"""

from __future__ import annotations

from kafka_shim.api.token_requests import NO_TIMESTAMP, is_allowed, tokens_of
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafka_shim.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 40, 1, 2
REQUEST, RESPONSE = ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(context: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    if not is_allowed(context):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
    tokens, secret = tokens_of(context), bytes(request.hmac)
    expiry_ms = tokens.expire(context.principal, secret, request.expiry_time_period_ms, context.session)
    await context.broker.metadata.flushed()
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
