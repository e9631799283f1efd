"""What administrators are told while a large partition of `__consumer_offsets` is read: a code for that group alone."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.api import (
    k09_offset_fetch,
    k12_heartbeat,
    k15_describe_groups,
    k16_list_groups,
    k42_delete_groups,
    k69_consumer_group_describe,
)
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_shim.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kafka_shim.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_shim.tests.group.harness import Node
from kafka_shim.turns import Turns

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Group "g" is being read, "other" is there."""
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 1)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 5_000)
    made = Node(tmp_path)
    made.topic("t")
    assert made.groups.partition_for("g") != made.groups.partition_for("other")
    made.commit("other", "t", 1)
    for offset in range(300):
        made.commit("g", "t", offset)
    made.crash()
    yield made
    made.close()


def handle(node: Node, module: Any, version: int, request: Any) -> Any:
    broker = SimpleNamespace(groups=node.groups, metadata=node.metadata, config=node.config, authorizer=None)
    context = SimpleNamespace(broker=broker, api_version=version, is_large=False, note_member=lambda *_: None)

    async def run() -> Any:
        answer = module.handle(context, request)
        if isinstance(answer, Generator):
            answer = Turns(node.clock).finish(answer)
        if isinstance(answer, Coroutine):
            answer = await answer
        return answer.response if isinstance(answer, Outcome) else answer

    return node.loop.run_until_complete(run())


def test_each_group_has_its_own_code(node: Node) -> None:
    described = handle(node, k15_describe_groups, 6, DescribeGroupsRequest(groups=["g", "other"])).groups
    assert [(each.group_id, each.error_code) for each in described] == [("g", LOADING), ("other", 0)]
    request = ConsumerGroupDescribeRequest(group_ids=["g", "other", ""])
    modern = handle(node, k69_consumer_group_describe, 1, request).groups
    codes = [LOADING, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
    assert [each.error_code for each in modern] == codes
    fetched = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "other")]
    groups = handle(node, k09_offset_fetch, 9, OffsetFetchRequest(groups=fetched)).groups
    assert [(each.group_id, each.error_code) for each in groups] == [("g", LOADING), ("other", 0)]
    deleted = handle(node, k42_delete_groups, 2, DeleteGroupsRequest(groups_names=["g", "other"])).results
    assert [each.error_code for each in deleted] == [LOADING, 0]


def test_the_list_waits_for_all(node: Node) -> None:
    with pytest.raises(KafkaError) as caught:
        handle(node, k16_list_groups, 5, ListGroupsRequest())
    assert caught.value.code is LOADING
    for _ in range(100):
        node.advance(0)
    listed = handle(node, k16_list_groups, 5, ListGroupsRequest()).groups
    assert {each.group_id for each in listed} == {"g", "other"}


def test_a_classic_heartbeat_hears_that_all_is_well(node: Node) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert handle(node, k12_heartbeat, 4, request).error_code == 0
    for _ in range(100):
        node.advance(0)
    with pytest.raises(KafkaError) as caught:
        handle(node, k12_heartbeat, 4, request)
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_many_deleted_groups_let_others_through_without_a_wait(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(delay_s: float) -> None:
        pauses.append(delay_s)

    monkeypatch.setattr(k42_delete_groups, "asyncio", SimpleNamespace(sleep=pause))
    names = [f"none-{number}" for number in range(2 * k42_delete_groups.GROUPS_PER_TURN)]
    handle(node, k42_delete_groups, 2, DeleteGroupsRequest(groups_names=names))
    assert pauses == [0, 0]
