"""DeleteAcls (key 31), versions 1-3.

Deletes the ACLs that filters match; the next request is decided without them. Needs ALTER on the cluster. Each filter
has its own result, with the ACLs that it deleted. SECURITY_DISABLED in each result without an authorizer. v1 prefixed
patterns. v2 is flexible. v3 user resources.
"""

from __future__ import annotations

from kafka_shim.api.acls import require_known, stored_acls
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.delete_acls_request import DeleteAclsRequest
from kafka_shim.protocol.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kafka_shim.security.acl_binding import AclFilter
from kafka_shim.security.acl_control import in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.security.acl_binding import Acl
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 31, 1, 3
REQUEST, RESPONSE = DeleteAclsRequest, DeleteAclsResponse


async def handle(context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    async for one in in_slices(request.filters):
        require_known(
            "delete_acls", one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type
        )
    broker = context.broker
    acls = stored_acls(broker, "No Authorizer is configured.")
    results = await acls.delete([AclFilter(one) async for one in in_slices(request.filters)], context.session)
    await broker.metadata.flushed()
    return DeleteAclsResponse(filter_results=[_result(one) async for one in in_slices(results)])


def failed(request: DeleteAclsRequest, version: int, code: ErrorCode, message: str | None) -> Steps[DeleteAclsResponse]:
    """Returns the error for each filter."""
    response = DeleteAclsResponse()
    for _ in request.filters:
        response.filter_results.append(DeleteAclsFilterResult(error_code=code, error_message=message))
        yield
    return response


def _result(result: list[Acl] | KafkaError) -> DeleteAclsFilterResult:
    if isinstance(result, KafkaError):
        return DeleteAclsFilterResult(error_code=result.code, error_message=result.message)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in result
        ],
    )
