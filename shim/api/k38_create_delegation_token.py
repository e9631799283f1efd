"""CreateDelegationToken (key 38), versions 1-3.

Returns a new token and its HMAC, which is its password. Refused as DELEGATION_TOKEN_REQUEST_NOT_ALLOWED without
authentication and over a session by token. v3: a token for another owner (KIP-373) needs CreateTokens on the USER
resource of that owner. Renewers are users; another type is INVALID_PRINCIPAL_TYPE.
"""

from __future__ import annotations

from kafka_shim.api.token_requests import NO_TIMESTAMP, is_allowed, parts_of, tokens_of
from kafka_shim.authorization import is_authorized
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kafka_shim.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.principals import ANONYMOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 38, 1, 3
REQUEST, RESPONSE = CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def handle(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    version = context.api_version
    requester = owner = context.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, whose principals have a type
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if refused := _refusal(context, owner, requester, request):
        return _response(version, owner, requester, refused, NO_TIMESTAMP)
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    try:
        token, secret = tokens_of(context).create(owner, requester, renewers, request.max_lifetime_ms, context.session)
    except KafkaError as err:
        return _response(version, owner, requester, err.code, 0)
    await context.broker.metadata.flushed()
    response = _response(version, owner, requester, ErrorCode.NONE, 0)
    response.issue_timestamp_ms = token.issue_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    response.token_id = token.token_id
    response.hmac = secret
    return response


def _refusal(context: Context, owner: str, requester: str, request: CreateDelegationTokenRequest) -> ErrorCode | None:
    """Return what Kafka's broker refuses before it asks the controller."""
    if not is_allowed(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != requester and not is_authorized(context, AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(one.principal_type != "User" for one in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def _response(
    version: int, owner: str, requester: str, code: ErrorCode, timestamp_ms: int
) -> CreateDelegationTokenResponse:
    owner_type, owner_name = parts_of(owner)
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=timestamp_ms,
        expiry_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )
    if version >= 3:
        kind, name = parts_of(requester)
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    return response


def failed(
    request: CreateDelegationTokenRequest, version: int, code: ErrorCode, message: str | None
) -> CreateDelegationTokenResponse:
    return _response(version, ANONYMOUS, ANONYMOUS, code, NO_TIMESTAMP)
