"""What ConsumerGroupDescribe and ShareGroupDescribe do alike, for each group that a request names."""

from __future__ import annotations

from kafka_shim.authorization import authorized_operations, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.turns import Steps


def describe_groups(
    context: Context,
    request: Any,
    response: Any,
    described_group: type[Any],
    describe: Callable[[str, Group | None, CoordinatorMetadataImage], Any],
) -> Steps[None]:
    """Append the request's groups to the response, in steps of a group: what `describe` makes of it, or the error
    that it or the check of DESCRIBE on the group raises."""
    groups = context.broker.groups
    for group_id in request.group_ids:
        try:
            _check(context, group_id)
            group = describe(group_id, groups.find(group_id), groups.image)
        except KafkaError as error:
            group = described_group(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        response.groups.append(group)
        yield


def _check(context: Context, group_id: str) -> None:
    require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
