"""DescribeUserScramCredentials (key 50), version 0.

Returns mechanism and iterations of each SCRAM credential of the named users, or of all. A user that is named twice is
DUPLICATE_RESOURCE, one without credentials RESOURCE_NOT_FOUND. Keys and salts are never returned.
"""

from __future__ import annotations

from kafka_shim.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kafka_shim.protocol.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse
from kafka_shim.security.scram_credentials import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 50, 0, 0
REQUEST, RESPONSE = DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
ABANDONABLE = True


def handle(
    context: Context, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    users = None if request.users is None else [user.name for user in request.users]
    results = yield from describe(context.broker.metadata.image.scram, users)
    return DescribeUserScramCredentialsResponse(results=results)
