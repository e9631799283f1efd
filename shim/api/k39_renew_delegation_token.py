"""RenewDelegationToken (key 39), versions 1-2.

Moves the expiry of a token to at most `delegation.token.expiry.time.ms` from now, never beyond its longest lifetime.
For its owner and its renewers (else DELEGATION_TOKEN_OWNER_MISMATCH); an expired token is DELEGATION_TOKEN_EXPIRED, an
unknown HMAC DELEGATION_TOKEN_NOT_FOUND. Refused without authentication and over a session by token.
"""

from __future__ import annotations

from kafka_shim.api.token_requests import NO_TIMESTAMP, is_allowed, tokens_of
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kafka_shim.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 39, 1, 2
REQUEST, RESPONSE = RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(context: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    if not is_allowed(context):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
    tokens, secret = tokens_of(context), bytes(request.hmac)
    expiry_ms = tokens.renew(context.principal, secret, request.renew_period_ms, context.session)
    await context.broker.metadata.flushed()
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
