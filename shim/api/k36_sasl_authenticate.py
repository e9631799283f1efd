"""SaslAuthenticate (key 36), versions 0-2.

One token of a SASL exchange. The response has the mechanism's answer and, after the last token, how long the session
lasts (v1). A failure is SASL_AUTHENTICATION_FAILED with Kafka's message, sent after
`connection.failed.authentication.delay.ms`; then the connection is closed. Outside an exchange it is
ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from kafka_shim.api.authentication import hold_back_failure
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 36, 0, 2
REQUEST, RESPONSE = SaslAuthenticateRequest, SaslAuthenticateResponse
ABANDONABLE = True
REFUSAL = "SaslAuthenticate request received after successful authentication"


async def handle(context: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    authenticator = context.session.authenticator
    if authenticator is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=REFUSAL)
    try:
        answer, lifetime_ms = await authenticator.authenticate(bytes(request.auth_bytes))
    except KafkaError as error:
        if authenticator.is_refused:
            await hold_back_failure(context.broker, authenticator)
        return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
    return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
