"""The one gate: what a request needs, asked of the broker's authorizer (Kafka's AuthHelper).

`dispatch` asks for what a row of `api.ROWS` says, an operation on the cluster. A handler asks for what only it knows:
names in the request or in its answer. It asks at the place where KafkaApis filters, and answers for a name that is not
authorised as KafkaApis does. Without an authorizer all is allowed, at the cost of a call.
"""

from __future__ import annotations

from kafka_shim.errors import KafkaError
from kafka_shim.security.acl import CLUSTER_NAME, DENIED, SUPPORTED_OPERATIONS, AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_shim.context import Context


def authorized(
    context: Context, operation: AclOperation, resource_type: ResourceType, names: Collection[str]
) -> Collection[str]:
    """Those of the names on which the client may carry out the operation."""
    authorizer = context.broker.authorizer
    if authorizer is None or not names:
        return names
    session = context.session
    return authorizer.allowed(session.principal, session.peer_host, operation, resource_type, names)


def is_authorized(context: Context, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
    """Whether the client may carry out the operation on this one."""
    return context.broker.authorizer is None or name in authorized(context, operation, resource_type, (name,))


def require(context: Context, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
    """Raises the resource type's ..._AUTHORIZATION_FAILED where the client may not."""
    if not is_authorized(context, operation, resource_type, name):
        raise KafkaError(DENIED[resource_type])


def may_on_cluster(context: Context, operation: AclOperation) -> bool:
    """Whether the client may carry out the operation on the cluster."""
    return is_authorized(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def require_on_cluster(context: Context, *operations: AclOperation) -> None:
    """Raises CLUSTER_AUTHORIZATION_FAILED where the client may carry out none of the operations on the cluster."""
    if not any(may_on_cluster(context, operation) for operation in operations):
        raise KafkaError(DENIED[ResourceType.CLUSTER])


def may_on_any(context: Context, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Whether there is any resource of this type on which the client may carry out the operation."""
    authorizer = context.broker.authorizer
    session = context.session
    return authorizer is None or authorizer.allowed_on_any(
        session.principal, session.peer_host, operation, resource_type
    )


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """What the client may do to this one, as bits by AclOperation's codes."""
    bits = 0
    for operation in SUPPORTED_OPERATIONS[resource_type]:
        if is_authorized(context, operation, resource_type, name):
            bits |= 1 << operation
    return bits
