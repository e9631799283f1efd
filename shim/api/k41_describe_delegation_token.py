"""DescribeDelegationToken (key 41), versions 1-3.

Returns the tokens of the named owners, or of all, with their HMACs: those of which the client is owner, requester or
renewer, and those that it may describe by an ACL, on the token or (KIP-373) DescribeTokens on the USER resource of
their owner. Refused without authentication and over a session by token.
"""

from __future__ import annotations

from kafka_shim.api.token_requests import is_allowed, parts_of, tokens_of
from kafka_shim.authorization import is_authorized
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kafka_shim.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.protocol.records.delegation_token_record import DelegationTokenRecord
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 41, 1, 3
REQUEST, RESPONSE = DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
ABANDONABLE = True


def handle(context: Context, request: DescribeDelegationTokenRequest) -> Steps[DescribeDelegationTokenResponse]:
    if not is_allowed(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = tokens_of(context)
    owners: set[str] | None = None
    if request.owners is not None:
        owners = set()
        for one in request.owners:
            owners.add(f"{one.principal_type}:{one.principal_name}")
            yield
    described = []
    for token in tokens:
        if _is_shown(context, token, owners):
            described.append(_describe(context.api_version, token, tokens.hmac_of(token.token_id)))
        yield
    return DescribeDelegationTokenResponse(tokens=described)


def _is_shown(context: Context, token: DelegationTokenRecord, owners: set[str] | None) -> bool:
    own = {token.owner, token.requester, *token.renewers}
    if owners is not None and own.isdisjoint(owners):
        return False
    return (
        context.principal in own
        or is_authorized(context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or is_authorized(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _describe(version: int, token: DelegationTokenRecord, secret: bytes) -> DescribedDelegationToken:
    owner_type, owner_name = parts_of(token.owner)
    renewers = [parts_of(renewer) for renewer in token.renewers]
    described = DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret,
        renewers=[DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name) for kind, name in renewers],
    )
    if version >= 3:
        kind, name = parts_of(token.requester)
        described.token_requester_principal_type, described.token_requester_principal_name = kind, name
    return described
