"""CreateAcls (key 30), versions 1-3.

Stores ACLs in the metadata log; they act on the next request. Needs ALTER on the cluster. Each ACL has its own result,
and one that exists is no error. SECURITY_DISABLED in each result without an authorizer. v1 prefixed patterns. v2 is
flexible. v3 user resources.
"""

from __future__ import annotations

from kafka_shim.api.acls import require_known, stored_acls
from kafka_shim.protocol.messages.create_acls_request import CreateAclsRequest
from kafka_shim.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kafka_shim.security.acl_binding import Acl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 30, 1, 3
REQUEST, RESPONSE = CreateAclsRequest, CreateAclsResponse


async def handle(context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    for one in request.creations:
        require_known("create_acls", one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
    broker = context.broker
    errors = await stored_acls(broker, "No Authorizer is configured.").create(
        (
            Acl(
                one.resource_type,
                one.resource_name,
                one.resource_pattern_type,
                one.principal,
                one.host,
                one.operation,
                one.permission_type,
            )
            for one in request.creations
        ),
        context.session,
    )
    await broker.metadata.flushed()
    results = [
        AclCreationResult() if error is None else AclCreationResult(error_code=error.code, error_message=error.message)
        for error in errors
    ]
    return CreateAclsResponse(results=results)


def failed(request: CreateAclsRequest, version: int, code: ErrorCode, message: str | None) -> Steps[CreateAclsResponse]:
    """Returns the error for each ACL."""
    response = CreateAclsResponse()
    for _ in request.creations:
        response.results.append(AclCreationResult(error_code=code, error_message=message))
        yield
    return response
