"""One immutable member of a streams group (KIP-1071; Kafka: StreamsGroupMember). Rules create changed copies, records
carry them, and `apply` stores them.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.records import Record
from kafka_shim.group.streams.tasks import NONE_HELD, HeldTasks, entries_of, epochs_of, numbers_of
from kafka_shim.protocol.records.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kafka_shim.protocol.records.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
    TaskIds,
)
from kafka_shim.protocol.records.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_shim.protocol.records.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.group.client import Client
    from kafka_shim.group.streams.tasks import EpochNumbers
    from kafka_shim.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

# States of a member, as its record stores them.
# STABLE: it has what its target gives, or waits for nothing.
# UNREVOKED: it still holds tasks that it must give up; it stays in its epoch until it has.
# UNRELEASED: it is in the new epoch, but other processes still hold some of its tasks.
# UNKNOWN: written by a newer version; the member must rejoin.
STABLE = 1
UNREVOKED = 2
UNRELEASED = 3
UNKNOWN = 127

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

_FIELDS = (
    "assigned",
    "client_host",
    "client_id",
    "client_tags",
    "instance_id",
    "member_epoch",
    "member_id",
    "pending_revocation",
    "previous_epoch",
    "process_id",
    "rack_id",
    "rebalance_timeout_ms",
    "state",
    "topology_epoch",
    "user_endpoint",
)


class StreamsMember:
    """One thread of an application; members with the same process id are threads of one process."""

    __slots__ = _FIELDS

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        # --- what the member says
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = -1
        self.topology_epoch = -1
        self.process_id = ""
        # (host, port) where the application answers queries for its state
        self.user_endpoint: tuple[str, int] | None = None
        self.client_tags: dict[str, str] = {}
        # --- what the coordinator decided
        self.member_epoch = 0
        self.previous_epoch = 0
        self.state = STABLE
        self.assigned = NONE_HELD
        self.pending_revocation = NONE_HELD

    def copy(self, **changes: Any) -> StreamsMember:
        """Returns a copy of the member with these fields changed."""
        new = StreamsMember.__new__(StreamsMember)
        for name in _FIELDS:
            setattr(new, name, getattr(self, name))
        for name, value in changes.items():
            setattr(new, name, value)
        return new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamsMember):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StreamsMember({self.member_id!r}, epoch {self.member_epoch}, state {self.state}, {self.assigned})"

    def is_reconciled_to(self, epoch: int) -> bool:
        """Returns whether the member has reached this assignment epoch and has nothing left to do."""
        return self.state == STABLE and self.member_epoch == epoch

    def updated_by(self, request: StreamsGroupHeartbeatRequest, client: Client) -> StreamsMember:
        """Returns the member with what its heartbeat says. A field that is absent keeps its value. Raises
        UNKNOWN_SERVER_ERROR for a client tag that is given twice."""
        changes: dict[str, Any] = {"client_id": client.client_id, "client_host": client.host}
        if request.rack_id is not None:
            changes["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topology is not None:
            changes["topology_epoch"] = request.topology.epoch
        if request.process_id is not None:
            changes["process_id"] = request.process_id
        if request.client_tags is not None:
            tags = {tag.key: tag.value for tag in request.client_tags}
            if len(tags) < len(request.client_tags):
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)  # as Kafka, for a key that is there twice
            changes["client_tags"] = tags
        if request.user_endpoint is not None:
            changes["user_endpoint"] = (request.user_endpoint.host, request.user_endpoint.port)
        return self.copy(**changes)

    # --- records

    def metadata_record(self, group_id: str) -> Record:
        """The record of what the member sent."""
        endpoint = self.user_endpoint
        value = StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=[KeyValue(key=key, value=self.client_tags[key]) for key in sorted(self.client_tags)],
        )
        return Record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id), value)

    def assignment_record(self, group_id: str) -> Record:
        """The record of what the coordinator decided."""
        value = StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            active_tasks=_with_epochs(self.assigned.active),
            standby_tasks=entries_of(_without_epochs, self.assigned.standby),
            warmup_tasks=entries_of(_without_epochs, self.assigned.warmup),
            active_tasks_pending_revocation=_with_epochs(self.pending_revocation.active),
            standby_tasks_pending_revocation=entries_of(_without_epochs, self.pending_revocation.standby),
            warmup_tasks_pending_revocation=entries_of(_without_epochs, self.pending_revocation.warmup),
        )
        return Record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id), value)

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        """Returns the member with the values of its metadata record."""
        endpoint = value.user_endpoint
        return self.copy(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        """Returns the member with the values of its assignment record."""
        return self.copy(
            member_epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state if value.state in (STABLE, UNREVOKED, UNRELEASED) else UNKNOWN,
            assigned=HeldTasks(
                epochs_of(value.active_tasks, value.member_epoch),
                numbers_of(value.standby_tasks),
                numbers_of(value.warmup_tasks),
            ),
            pending_revocation=HeldTasks(
                epochs_of(value.active_tasks_pending_revocation, value.member_epoch),
                numbers_of(value.standby_tasks_pending_revocation),
                numbers_of(value.warmup_tasks_pending_revocation),
            ),
        )


def _with_epochs(tasks: EpochNumbers) -> list[TaskIds]:
    return [
        TaskIds(
            subtopology_id=subtopology,
            partitions=sorted(tasks[subtopology]),
            assignment_epochs=[tasks[subtopology][number] for number in sorted(tasks[subtopology])],
        )
        for subtopology in sorted(tasks)
    ]


def _without_epochs(subtopology_id: str, partitions: list[int]) -> TaskIds:
    return TaskIds(subtopology_id=subtopology_id, partitions=partitions)
