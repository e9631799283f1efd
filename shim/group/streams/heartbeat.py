"""StreamsGroupHeartbeat (KIP-1071): join, stay, leave (key 88). The table of states is in `group`.

One heartbeat joins or checks the member, records what it says, looks at the topology's topics if they may have changed,
bumps the group epoch, computes a target assignment if one is due, and moves the member one step towards it.
"""

from __future__ import annotations

from struct import error as StructError

from kafka_shim.cext.wire import EncodeError
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import REBALANCE, SESSION, Decision
from kafka_shim.group.records import Record
from kafka_shim.group.streams import configured as topics
from kafka_shim.group.streams.endpoints import partitions_by_endpoint
from kafka_shim.group.streams.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, UNREVOKED, StreamsMember
from kafka_shim.group.streams.reconcile import reconcile
from kafka_shim.group.streams.target import STANDBY_REPLICAS, check_fits, update_target
from kafka_shim.group.streams.tasks import Tasks, entries_of, numbers_of
from kafka_shim.group.streams.topology import Topology, topology_value
from kafka_shim.java_order import order_strings
from kafka_shim.protocol.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse, TaskIds
from kafka_shim.protocol.records.streams_group_topology_key import StreamsGroupTopologyKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, NoReturn

    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import RequestContext
    from kafka_shim.group.streams.configured import ConfiguredTopology, InternalTopic
    from kafka_shim.group.streams.group import StreamsGroup
    from kafka_shim.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

# The kind of the timer that a group's first members start: others may join before the first target is computed.
INITIAL_REBALANCE = "initial rebalance"
# Topic changes request a refresh. A periodic refresh without a change is only a safety net.
REFRESH_INTERVAL_MS = 0x7FFFFFFF


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Check what does not depend on the group. Raises INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    topology = request.topology
    if request.instance_id is not None:
        _refuse("Static membership is not yet supported.")
    if request.task_offsets is not None:
        _refuse("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        _refuse("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        _refuse("WarmupTasks are not supported yet.")
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        _refuse("Regular expressions for source topics are not supported yet.")
    _refuse_blank(request.member_id, "MemberId")
    _refuse_blank(request.group_id, "GroupId")
    _refuse_blank(request.rack_id, "RackId")
    given = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.member_epoch == 0:
        if request.rebalance_timeout_ms == -1:
            _refuse("RebalanceTimeoutMs must be provided in first request.")
        for tasks, name in zip(given, ("ActiveTasks", "StandbyTasks", "WarmupTasks"), strict=True):
            if tasks is None or tasks:
                _refuse(f"{name} must be empty when (re-)joining.")
        if topology is None:
            _refuse("Topology must be non-null when (re-)joining.")
        _check_changelogs(topology.subtopologies)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        _refuse("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        _refuse(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    if any(tasks is not None for tasks in given) and any(tasks is None for tasks in given):
        _refuse("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != 0 and topology is not None:
        _refuse("Topology can only be provided when (re-)joining.")


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _refuse_blank(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        _refuse(f"{name} can't be empty.")


def _check_changelogs(subtopologies: list[Any]) -> None:
    for subtopology in subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


# --- join and stay


def heartbeat(
    group: StreamsGroup,
    is_known: bool,
    request: StreamsGroupHeartbeatRequest,
    waits_for_members: bool,
    context: RequestContext,
) -> dict[str, InternalTopic]:
    """Handle a heartbeat that does not leave. `is_known`: the group's id is in use, else memory that no record holds is
    dropped with this object. `waits_for_members`: the timer INITIAL_REBALANCE runs. The decision may hold the records
    that created the group for it. Returns the internal topics that are missing."""
    image, decision = context.image, context.decision
    group_id = group.group_id
    member = _member_of(group, request, image)
    _check_epoch(member, request)
    updated = member.updated_by(request, context.client)
    if updated != member:
        decision.records.append(updated.metadata_record(group_id))
    topology, statuses = _update_topology(group, request, updated, context)
    configured, metadata_hash = _configure(group, topology, context)
    validated_epoch = -1
    if configured.is_ready:
        validated_epoch = topology.epoch
        _check_tasks(configured, request)
    configs = {STANDBY_REPLICAS: str(image.streams_standby_replicas(group_id))}
    epoch = group.group_epoch
    if updated != member or (metadata_hash, validated_epoch, configs) != (
        group.metadata_hash,
        group.validated_epoch,
        group.assignment_configs,
    ):
        epoch += 1
        decision.records.append(group.epoch_record(epoch, metadata_hash, validated_epoch, configs))
    delay_ms = image.streams_initial_rebalance_delay_ms(group_id)
    if group.is_empty and delay_ms > 0:
        decision.schedule_if_absent(group_id, INITIAL_REBALANCE, "", delay_ms)
        waits_for_members = True
    target_epoch, target, status = update_target(
        group,
        epoch,
        updated,
        configured,
        configs,
        image,
        decision.records,
        context.now_ms,
        is_delayed=waits_for_members,
    )
    if status is not None:
        statuses.append(status)
    updated = _move(group, updated, target_epoch, target, request, decision)
    decision.schedule(group_id, SESSION, member.member_id, image.streams_session_timeout_ms(group_id))
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = member.member_id
    response = _response(group, is_known, request, member, updated, configured, image)
    if configured.status is not None:
        statuses.append(configured.status)
    if group.shutdown_member_id is not None:
        statuses.append((topics.SHUTDOWN_APPLICATION, _SHUTDOWN.format(group.shutdown_member_id)))
    response.status = [Status(status_code=code, status_detail=detail) for code, detail in statuses]
    decision.response = response
    return configured.missing


def _member_of(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, image: CoordinatorMetadataImage
) -> StreamsMember:
    """Returns the member as it is, a new one if it joins. Raises GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID."""
    if request.member_epoch != 0:
        return group.member(request.member_id)
    max_size = image.config.group_streams_max_size
    if len(group.members) >= max_size:
        # As in Kafka, for a member of the group too that rejoins.
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {max_size} members.",
        )
    return group.members.get(request.member_id) or StreamsMember(request.member_id)


def _response(
    group: StreamsGroup,
    is_known: bool,
    request: StreamsGroupHeartbeatRequest,
    member: StreamsMember,
    updated: StreamsMember,
    configured: ConfiguredTopology,
    image: CoordinatorMetadataImage,
) -> StreamsGroupHeartbeatResponse:
    """Returns the response without its statuses: `member` was before the heartbeat what `updated` is behind it."""
    response = StreamsGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=image.streams_heartbeat_interval_ms(group.group_id),
    )
    endpoint_epoch = group.endpoint_epoch
    if request.member_epoch == 0 or updated.assigned != member.assigned:
        response.active_tasks = _entries(updated.assigned.active)
        response.standby_tasks = _entries(updated.assigned.standby)
        response.warmup_tasks = _entries(updated.assigned.warmup)
        group.endpoints.pop(updated.member_id, None)
        if updated.user_endpoint is not None:
            # As in Kafka it counts although the request may fail.
            endpoint_epoch = group.endpoint_epoch = endpoint_epoch + 1
    if endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = partitions_by_endpoint(group, updated, configured, image)
    if is_known:
        response.endpoint_information_epoch = endpoint_epoch
    return response


_SHUTDOWN = "Streams group member {} encountered a fatal error and requested a shutdown for the entire application."


def _entries(tasks: Mapping[str, Collection[int]]) -> list[TaskIds]:
    return entries_of(TaskIds, tasks, order_strings(tasks))


def _check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Check the member epoch. Epoch 0 rejoins. The previous epoch is a retry if the request claims no task that the
    member does not have. Raises FENCED_MEMBER_EPOCH."""
    epoch = request.member_epoch
    if epoch in (0, member.member_epoch):
        return
    assigned = member.assigned
    pairs: tuple[tuple[list[Any] | None, Mapping[str, Collection[int]]], ...] = (
        (request.active_tasks, assigned.active),
        (request.standby_tasks, assigned.standby),
        (request.warmup_tasks, assigned.warmup),
    )
    is_retry = epoch == member.previous_epoch < member.member_epoch and all(
        owned is not None
        and all(
            each.subtopology_id in has and all(number in has[each.subtopology_id] for number in each.partitions)
            for each in owned
        )
        for owned, has in pairs
    )
    if not is_retry:
        size = "greater" if epoch > member.member_epoch else "smaller"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The streams group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
        )


def _update_topology(
    group: StreamsGroup,
    request: StreamsGroupHeartbeatRequest,
    member: StreamsMember,
    context: RequestContext,
) -> tuple[Topology, list[tuple[int, str]]]:
    """Returns (the group's topology, statuses). Raises INVALID_REQUEST for a changed topology, and
    UNKNOWN_SERVER_ERROR, as Kafka does, for one whose record is too large."""
    current = group.topology
    if request.topology is None:
        if current is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        topology = current
    else:
        sent = Topology(topology_value(request.topology))
        if current is None:
            topology = sent
            record = Record(StreamsGroupTopologyKey(group_id=group.group_id), sent.value)
            check_fits(_size_bytes(record), context.image)
            context.decision.records.append(record)
        elif current.epoch <= sent.epoch and not current.is_same(sent):
            _refuse("Topology updates are not supported yet.")
        else:
            topology = current
    statuses = []
    if current is not None and member.topology_epoch < current.epoch:
        reason = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {current.epoch}."
        )
        statuses.append((topics.STALE_TOPOLOGY, reason))
    return topology, statuses


def _size_bytes(record: Record) -> int:
    try:
        return len(record.encode()[1] or b"")
    except (EncodeError, StructError) as error:
        # Names may be longer in requests than in records.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _configure(group: StreamsGroup, topology: Topology, context: RequestContext) -> tuple[ConfiguredTopology, int]:
    """Returns (the topology with the counts of its topics, their hash)."""
    image, now_ms = context.image, context.now_ms
    if group.topology is not None and group.configured is not None and now_ms < group.refresh_deadline_ms:
        return group.configured, group.metadata_hash
    metadata_hash = image.metadata_hash(topology.required_topics)
    found = group.configured
    if group.topology is None or found is None or metadata_hash != group.metadata_hash:
        # At once, as in Kafka: a heartbeat that fails in what follows shows administrators these topics too.
        found = group.configured = topics.configure(topology, image)
        group.endpoints.clear()

    def change() -> None:
        group.refresh_deadline_ms = now_ms + REFRESH_INTERVAL_MS

    context.decision.changes.append(change)
    return found, metadata_hash


def _check_tasks(configured: ConfiguredTopology, request: StreamsGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST for a task that the topology does not have."""
    for entries in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for entry in entries or ():
            name = entry.subtopology_id
            subtopology = (configured.subtopologies or {}).get(name)
            if subtopology is None:
                _refuse(f"Subtopology {name} does not exist in the topology.")
            for number in entry.partitions:
                if not 0 <= number < subtopology.tasks:
                    _refuse(
                        f"Task {number} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                        f"{subtopology.tasks}"
                    )


def _move(
    group: StreamsGroup,
    member: StreamsMember,
    target_epoch: int,
    target: Tasks,
    request: StreamsGroupHeartbeatRequest,
    decision: Decision,
) -> StreamsMember:
    if member.is_reconciled_to(target_epoch):
        return member
    owned = None
    if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
        owned = Tasks(
            numbers_of(request.active_tasks), numbers_of(request.standby_tasks), numbers_of(request.warmup_tasks)
        )
    moved = reconcile(group, member, target_epoch, target, owned)
    if moved != member:
        decision.records.append(moved.assignment_record(group.group_id))
        if moved.state == UNREVOKED:
            decision.schedule(group.group_id, REBALANCE, member.member_id, moved.rebalance_timeout_ms)
        else:
            decision.cancel(group.group_id, REBALANCE, member.member_id)
    return moved


# --- leave


def leave(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> Decision:
    """Handle a heartbeat with epoch -1. Raises UNKNOWN_MEMBER_ID."""
    assert request.member_epoch == LEAVE_EPOCH
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    decision = fence(group, group.member(request.member_id))
    decision.response = StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, status=[]
    )
    return decision


def fence(group: StreamsGroup, member: StreamsMember) -> Decision:
    """Remove a member and bump the group epoch."""
    decision = Decision()
    decision.records += group.member_tombstones(member.member_id)
    decision.records.append(
        group.epoch_record(group.group_epoch + 1, group.metadata_hash, group.validated_epoch, group.assignment_configs)
    )
    for kind in (SESSION, REBALANCE):
        decision.cancel(group.group_id, kind, member.member_id)
    return decision


# --- timers


def initial_delay_over(group: StreamsGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle the timer INITIAL_REBALANCE: compute the first target for all that joined."""
    decision = Decision()
    if group.members and group.configured is not None and group.group_epoch > group.assignment_epoch:
        update_target(
            group,
            group.group_epoch,
            None,
            group.configured,
            group.assignment_configs,
            image,
            decision.records,
            now_ms,
            is_delayed=False,
        )
    return decision
