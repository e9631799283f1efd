"""SaslHandshake (key 17), versions 0-1.

All listeners are PLAINTEXT, so there is nothing to negotiate: the response is ILLEGAL_SASL_STATE without mechanisms,
which shows that the client is configured for another kind of listener. Not implemented: all mechanisms.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 17, 0, 1
REQUEST, RESPONSE = SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
