"""DescribeAcls (key 29), versions 1-3.

Returns the ACLs that a filter matches, by resource pattern. Needs DESCRIBE on the cluster. SECURITY_DISABLED without an
authorizer. v1 prefixed patterns. v2 is flexible. v3 user resources.
"""

from __future__ import annotations

from kafka_shim.api.acls import require_known, stored_acls
from kafka_shim.protocol.messages.describe_acls_request import DescribeAclsRequest
from kafka_shim.protocol.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafka_shim.security.acl_binding import AclFilter
from kafka_shim.security.acl_control import in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 29, 1, 3
REQUEST, RESPONSE = DescribeAclsRequest, DescribeAclsResponse


async def handle(context: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    require_known(
        "describe_acls",
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )
    acls = stored_acls(context.broker, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    async for acl in in_slices(await acls.find(AclFilter(request))):
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        resource = resources.get(key)
        if resource is None:
            resource = resources[key] = DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type
            )
        resource.acls.append(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))
