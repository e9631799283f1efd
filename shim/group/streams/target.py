"""The target assignment of a streams group (Kafka: maybeUpdateStreamsTargetAssignment, TargetAssignmentBuilder)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer_target import is_too_early
from kafka_shim.group.streams.assignor import MemberSpec, SubtopologySpec, assign
from kafka_shim.group.streams.configured import ASSIGNMENT_DELAYED
from kafka_shim.group.streams.tasks import NO_TASKS
from kafka_shim.java_order import order_strings, order_timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.records import Record
    from kafka_shim.group.streams.configured import ConfiguredTopology
    from kafka_shim.group.streams.group import StreamsGroup
    from kafka_shim.group.streams.member import StreamsMember
    from kafka_shim.group.streams.tasks import Tasks

# The option of the assignor, as records name it.
STANDBY_REPLICAS = "num.standby.replicas"
# What a task takes in the record of a target.
TASK_BYTES = 4


def check_fits(size_bytes: int, image: CoordinatorMetadataImage) -> None:
    """Raises UNKNOWN_SERVER_ERROR for records of a topology or target that no batch may hold (`image.may_hold`)."""
    if not image.may_hold(size_bytes):
        most_bytes = image.config.message_max_bytes
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"a topology or target of {size_bytes} bytes exceeds message.max.bytes ({most_bytes})",
        )


def update_target(
    group: StreamsGroup,
    epoch: int,
    member: StreamsMember | None,
    configured: ConfiguredTopology,
    configs: dict[str, str],
    image: CoordinatorMetadataImage,
    records: list[Record],
    now_ms: int,
    *,
    is_delayed: bool,
) -> tuple[int, Tasks, tuple[int, str] | None]:
    """Returns (epoch, the member's tasks, a status for the member or None). The target is computed if the group epoch
    is ahead of it, and neither the initial delay nor the assignment interval holds it back."""
    if is_delayed:
        reason = "Assignment delayed due to the configured initial rebalance delay."
        return group.assignment_epoch, NO_TASKS, (ASSIGNMENT_DELAYED, reason)
    last = NO_TASKS if member is None else group.target_of(member.member_id)
    if group.assignment_epoch >= epoch:
        return group.assignment_epoch, last, None
    interval_ms = image.streams_assignment_interval_ms(group.group_id)
    if is_too_early(group.assignment_ms, interval_ms, now_ms):
        reason = "Assignment delayed due to the configured assignment interval."
        return group.assignment_epoch, last, (ASSIGNMENT_DELAYED, reason)
    if not group.target:
        # The first target is written whole, in one batch.
        check_fits(TASK_BYTES * sum(each.tasks for each in (configured.subtopologies or {}).values()), image)
    assigned = _computed(group, member, configured, configs)
    for member_id, tasks in assigned.items():
        if group.target.get(member_id) != tasks:
            records.append(group.target_record(member_id, tasks))
    records.append(group.target_epoch_record(epoch, now_ms))
    return epoch, NO_TASKS if member is None else assigned[member.member_id], None


def _computed(
    group: StreamsGroup, member: StreamsMember | None, configured: ConfiguredTopology, configs: dict[str, str]
) -> dict[str, Tasks]:
    members = {member_id: group.members[member_id] for member_id in order_timeline(group.members)}
    if member is not None:
        members[member.member_id] = member
    in_order = order_strings(members)
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(in_order, NO_TASKS)
    subtopologies = {
        name: SubtopologySpec(each.tasks, bool(each.changelogs)) for name, each in configured.subtopologies.items()
    }
    specs = {member_id: MemberSpec(members[member_id].process_id, group.target_of(member_id)) for member_id in in_order}
    return assign(specs, subtopologies, int(configs.get(STANDBY_REPLICAS, 0)))
