"""What ConsumerGroupDescribe and ShareGroupDescribe do alike, for each group that a request names."""

from __future__ import annotations

from kafka_shim.authorization import authorized_operations, hide_groups_by_topic, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.security.acl import DESCRIBE, GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Protocol, TypeVar

    from kafka_shim.context import Context
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.turns import Steps

    class DescribeRequest(Protocol):
        """The fields that these requests have."""

        group_ids: list[str]
        include_authorized_operations: bool

    class Described(Protocol):
        """The fields that a group has in each of the responses."""

        group_id: str
        error_code: int
        authorized_operations: int

        def __init__(self, *, group_id: str, error_code: int, error_message: str | None = None) -> None: ...

    D = TypeVar("D", bound=Described)


def describe_groups(
    context: Context,
    request: DescribeRequest,
    described_group: type[D],
    describe: Callable[[str, Group | None, CoordinatorMetadataImage], D],
    topics_of: Callable[[D], Collection[str]],
) -> Steps[list[D]]:
    """Returns the groups of the response, in steps of a group: what `describe` makes of each, or the error that it or
    the check of DESCRIBE on the group raises, or TOPIC_AUTHORIZATION_FAILED for a group with a topic that the client
    may not describe."""
    groups = context.broker.groups
    found: list[D] = []
    for group_id in request.group_ids:
        try:
            _check(context, group_id)
            group = describe(group_id, groups.find(group_id), groups.image)
        except KafkaError as error:
            group = described_group(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(context, GROUP, group_id)
        found.append(group)
        yield

    def hidden(group: D) -> D:
        return described_group(
            group_id=group.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )

    yield from hide_groups_by_topic(context, found, topics_of, hidden)
    return found


def _check(context: Context, group_id: str) -> None:
    require(context, DESCRIBE, GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
