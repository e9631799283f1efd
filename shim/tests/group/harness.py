"""A group coordinator over real logs and metadata in a directory, and what its clients send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.client import Client
from kafka_shim.group.consumer_protocol import PROTOCOL_TYPE
from kafka_shim.group.coordinator import GroupCoordinator
from kafka_shim.group.describe import listed
from kafka_shim.group.loader import CoordinatorLoader
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.timers import Timers
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages import (
    consumer_group_heartbeat_request,
    heartbeat_request,
    join_group_request,
    leave_group_request,
    offset_commit_request,
    offset_fetch_request,
    streams_group_heartbeat_request,
    sync_group_request,
    txn_offset_commit_request,
)
from kafka_shim.protocol.messages.list_groups_response import ListedGroup
from kafka_shim.targets.requests import struct
from kafka_shim.tests import node
from kafka_shim.turns import at_once

SESSION_MS = 10_000
REBALANCE_MS = 20_000


def documented(name: str) -> dict[str, list[str]]:
    """A table of states of docs/SEMANTICS.md: codes by request; the first row, "request", has the states."""
    text = (Path(__file__).parents[3] / "docs" / "SEMANTICS.md").read_text()
    begin = text.index(f"<!-- {name} states: begin -->")
    rows = text[begin : text.index(f"<!-- {name} states: end -->")].splitlines()[1:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if "---" not in row]
    return {first: rest for first, *rest in cells}


def subscription(*topics: str) -> bytes:
    """Bytes of a version 0 subscription."""
    parts = [(0).to_bytes(2, "big"), len(topics).to_bytes(4, "big")]
    for topic in topics:
        parts += [len(topic).to_bytes(2, "big"), topic.encode()]
    return b"".join([*parts, b"\xff\xff\xff\xff"])


class Node(node.Node):
    """A node with a group coordinator, and a loop of its own."""

    topic_name = TOPIC

    def __init__(self, path: Path, **options: object) -> None:
        self.loop = asyncio.new_event_loop()
        super().__init__(path, **{"offsets_topic_num_partitions": 2, **options})

    def start_coordinator(self) -> None:
        self.groups = GroupCoordinator(
            clock=self.clock, config=self.config, logs=self.logs, metadata=self.metadata, faults=self.faults
        )
        self.groups.start()

    def stop_coordinator(self) -> None:
        self.groups.stop()
        self.advance(0)

    def close(self) -> None:
        self.faults.disarm()
        self.stop()
        self.loop.close()

    # --- time

    def advance(self, delay_ms: float) -> None:
        """Let time pass, and what it wakes run."""
        self.loop.run_until_complete(self.clock.advance_and_drain(delay_ms))

    def call(self, function: Any, *arguments: Any) -> Any:
        """Call on the loop; what waits becomes a `Later`."""

        async def run() -> Any:
            answer = function(*arguments)
            return Later(self, answer) if isinstance(answer, DelayedResponse) else answer

        answer = self.loop.run_until_complete(run())
        self.advance(0)
        if isinstance(answer, Outcome):
            return answer.response
        return answer.response if isinstance(answer, Later) and answer.is_done else answer

    def finish(self, waiting: Coroutine[Any, Any, Any]) -> Any:
        """Run to its end what works in slices. Returns or raises what it does."""

        async def run() -> Any:
            task = asyncio.ensure_future(waiting)
            while not task.done():
                await self.clock.advance_and_drain(0)
            return await task

        return self.loop.run_until_complete(run())

    # --- requests

    def delete_group(self, group: str) -> None:
        self.finish(self.groups.delete_group(group))

    def join(self, group: str, member_id: str = "", version: int = 9, **fields: Any) -> Any:
        """JoinGroup; the response, or a `Later`."""
        given = fields.pop("protocols", (("range", subscription("t")),))
        client = fields.pop("client", Client("c", "/127.0.0.1"))
        protocols = [join_group_request.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in given]
        request = join_group_request.JoinGroupRequest(
            **{
                "group_id": group,
                "member_id": member_id,
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "protocol_type": PROTOCOL_TYPE,
                "protocols": protocols,
                **fields,
            }
        )
        return self.call(self.groups.classic.join_group, request, version, client)

    def member(self, group: str, **fields: Any) -> Any:
        """A dynamic member's two joins."""
        return self.join(group, self.join(group, **fields).member_id, **fields)

    def sync(self, group: str, joined: Any, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        given = [
            sync_group_request.SyncGroupRequestAssignment(member_id=name, assignment=data)
            for name, data in (assignments or {}).items()
        ]
        request = sync_group_request.SyncGroupRequest(
            **{
                "group_id": group,
                "generation_id": joined.generation_id,
                "member_id": joined.member_id,
                "protocol_type": joined.protocol_type,
                "protocol_name": joined.protocol_name,
                "assignments": given,
                **fields,
            }
        )
        return self.call(self.groups.classic.sync_group, request)

    def stable(self, group: str, **fields: Any) -> Any:
        """A group of one member that has its assignment."""
        joined = self.member(group, **fields)
        self.sync(group, joined, {joined.member_id: b"a"})
        return joined

    def beat(self, group: str, joined: Any, **fields: Any) -> Any:
        request = heartbeat_request.HeartbeatRequest(
            **{"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id, **fields}
        )
        return self.call(self.groups.classic.heartbeat, request)

    def leave(self, group: str, *member_ids: str, instance_id: str | None = None) -> Any:
        members = [
            leave_group_request.MemberIdentity(member_id=each, group_instance_id=instance_id) for each in member_ids
        ]
        return self.call(
            self.groups.classic.leave_group, leave_group_request.LeaveGroupRequest(group_id=group, members=members)
        )

    def modern(self, group: str, member_id: str, epoch: int = 0, **fields: Any) -> Any:
        """ConsumerGroupHeartbeat; epoch 0 joins."""
        if epoch == 0:
            fields = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": [], **fields}
        owned = fields.get("topic_partitions")
        if isinstance(owned, dict):
            fields["topic_partitions"] = [
                consumer_group_heartbeat_request.TopicPartitions(topic_id=topic_id, partitions=list(found))
                for topic_id, found in owned.items()
            ]
        request = consumer_group_heartbeat_request.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch, **fields
        )
        return self.call(self.groups.consumer.heartbeat, request, 1, Client("c", "/127.0.0.1"))

    def streams(self, group: str, member_id: str, epoch: int = 0, **fields: Any) -> Any:
        """StreamsGroupHeartbeat; epoch 0 joins with the plain values of a topology. `client` is the client's id."""
        if epoch == 0:
            none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
            fields = {"rebalance_timeout_ms": REBALANCE_MS, "process_id": f"process-{member_id}", **none, **fields}
        client = Client(fields.pop("client", "c"), "/127.0.0.1")
        fields = {"group_id": group, "member_id": member_id, "member_epoch": epoch, **fields}
        request = struct(
            streams_group_heartbeat_request, streams_group_heartbeat_request.StreamsGroupHeartbeatRequest, fields
        )
        outcome, self.missing_topics = self.groups.streams.heartbeat(request, client)
        return outcome.response

    def commit(
        self, group: str, topic: str, offset: int, member_id: str = "", epoch: int = -1, version: int = 9, **fields: Any
    ) -> int:
        """OffsetCommit of partition 0; its code."""
        part = offset_commit_request.OffsetCommitRequestPartition(
            committed_offset=offset, committed_metadata=fields.pop("metadata", "m")
        )
        topic_id = self.metadata.image.topics[topic].topic_id
        request = offset_commit_request.OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[offset_commit_request.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[part])],
            **fields,
        )
        return self.call(self.groups.offsets.commit, request, version).topics[0].partitions[0].error_code

    def commit_in_transaction(
        self, group: str, topic: str, offset: int, producer: tuple[int, int], generation: int = -1, member_id: str = ""
    ) -> int:
        """TxnOffsetCommit of partition 0; its code."""
        part = txn_offset_commit_request.TxnOffsetCommitRequestPartition(committed_offset=offset)
        request = txn_offset_commit_request.TxnOffsetCommitRequest(
            transactional_id="app",
            group_id=group,
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id=generation,
            member_id=member_id,
            topics=[txn_offset_commit_request.TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        answer = self.call(self.groups.offsets.commit_transactional, request)
        return answer.topics[0].partitions[0].error_code

    def end_transaction(self, group: str, producer: tuple[int, int], commit: bool) -> None:
        """The marker on the group's partition."""
        log = self.logs.get(TOPIC, self.groups.partition_for(group))
        log.append_marker(*producer, 0, commit, 1, self.clock.now_ms())

    def committed(self, group: str, topic: str, stable: bool = False, named: bool = True) -> Any:
        """What OffsetFetch says of partition 0: (offset, code), or None when it is absent."""
        topics = [offset_fetch_request.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])] if named else None
        request = offset_fetch_request.OffsetFetchRequestGroup(group_id=group, topics=topics)
        answer = self.call(self.groups.offsets.fetch, request, stable)
        for each in answer.topics:
            for part in each.partitions:
                if (each.name, part.partition_index) == (topic, 0):
                    return part.committed_offset, part.error_code
        return None

    @property
    def loader(self) -> CoordinatorLoader:
        """What has been read of the log."""
        return self.groups._runtime.loader

    @property
    def timers(self) -> Timers:
        return self.groups._runtime.timers

    def state(self, group: str) -> str:
        found = self.groups.find(group)
        return "none" if found is None else found.state_name

    def all_groups(self) -> list[Any]:
        return at_once(self.groups.all_groups())

    def listed(self, states: list[str], types: list[str]) -> list[ListedGroup]:
        """What ListGroups says of all groups, with these filters."""
        return at_once(listed(self.all_groups(), states, types))


class Later:
    """A request that waits."""

    def __init__(self, node: Node, delayed: DelayedResponse) -> None:
        self._delayed = delayed
        self.is_done = False
        delayed.then(self._go_on, node.clock.soon())

    def _go_on(self) -> None:
        self.is_done = True

    @property
    def response(self) -> Any:
        """Its answer, which must be there."""
        assert self.is_done, "still waiting"
        return self._delayed.result().response


def code_of(call: Callable[..., Any], *arguments: Any, **fields: Any) -> ErrorCode | None:
    """The code of an answer, raised or given; None while it waits."""
    try:
        answer = call(*arguments, **fields)
    except KafkaError as error:
        return error.code
    if isinstance(answer, Later):
        return None
    return ErrorCode(answer if isinstance(answer, int) else answer.error_code)


def refused(call: Callable[..., Any], *arguments: Any, **fields: Any) -> ErrorCode:
    """The code of the error that the call raises."""
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **fields)
    return caught.value.code
