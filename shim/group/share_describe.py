"""ShareGroupDescribe (key 77): share groups as administrators see them."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.group.share import ShareGroup
from kafka_shim.java_order import order_ints, order_timeline, order_uuids
from kafka_shim.protocol.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.share_member import ShareMember

ASSIGNOR = "simple"


def described_share(group_id: str, group: Group | None, image: CoordinatorMetadataImage) -> DescribedGroup:
    """Describe a share group. Any other group is GROUP_ID_NOT_FOUND."""
    if not isinstance(group, ShareGroup):
        reason = "not found" if group is None else "is not a share group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {reason}.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(group.members[member_id], image) for member_id in order_timeline(group.members)],
    )


def _member(member: ShareMember, image: CoordinatorMetadataImage) -> Member:
    topics = image.metadata.topics_by_id
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topics),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic_id,
                    topic_name=topics[topic_id].name,
                    partitions=order_ints(member.assigned[topic_id]),
                )
                for topic_id in order_uuids(member.assigned)
                if topic_id in topics
            ]
        ),
    )
