"""SaslAuthenticate (key 36), versions 0-2.

All listeners are PLAINTEXT, so the response is ILLEGAL_SASL_STATE. Not implemented: all mechanisms.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 36, 0, 2
REQUEST, RESPONSE = SaslAuthenticateRequest, SaslAuthenticateResponse
REFUSAL = "SaslAuthenticate request received after successful authentication"


def handle(context: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=REFUSAL)
