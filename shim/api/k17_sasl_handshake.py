"""SaslHandshake (key 17), versions 0-1.

Chooses the mechanism of a SASL exchange, at the start of a connection or to authenticate again (KIP-368). After version
0 the tokens are raw frames, after version 1 they are SaslAuthenticate requests. Elsewhere the response is
ILLEGAL_SASL_STATE without mechanisms: the client is configured for another kind of listener.
"""

from __future__ import annotations

from kafka_shim.api.authentication import hold_back_failure
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 17, 0, 1
REQUEST, RESPONSE = SaslHandshakeRequest, SaslHandshakeResponse
ABANDONABLE = True


async def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    authenticator = context.session.authenticator
    if authenticator is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    code, mechanisms = authenticator.handshake(request.mechanism, context.api_version)
    if authenticator.is_refused:
        await hold_back_failure(context.broker, authenticator)
    return SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))
