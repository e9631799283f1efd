"""Partitions of `__consumer_offsets` are loaded in steps, and say so meanwhile."""

from __future__ import annotations

import errno
from collections.abc import Coroutine, Generator
from functools import partial

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.classic_state import State
from kafka_shim.group.client import Client
from kafka_shim.group.groups import Groups
from kafka_shim.group.replay import replay
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
)
from kafka_shim.protocol.messages.offset_delete_request import OffsetDeleteRequest
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests import descriptors
from kafka_shim.tests.group.committed import NO_OFFSET, PRODUCER, fetch_all
from kafka_shim.tests.group.harness import SESSION_MS, Node, subscription


@pytest.mark.parametrize("commit", [True, False])
def test_a_large_partition_is_read_in_steps_and_says_so(
    node: Node, commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 20_000)
    me = node.stable("g")
    for offset in range(300):
        node.commit("g", "t", offset, me.member_id, me.generation_id)
    node.commit_in_transaction("g", "t", 900, PRODUCER)
    small = next(name for name in "abcdef" if node.groups.partition_for(name) != node.groups.partition_for("g"))
    node.commit(small, "t", 7)
    partition = node.groups.partition_for("g")
    node.crash()

    assert node.committed(small, "t") == (7, 0), "another partition is served"
    assert partition not in node.loader.by_partition
    for ask in (
        lambda: node.groups.find("g"),
        node.all_groups,
        lambda: node.groups.delete_group("g"),
        lambda: node.groups.offsets.fetch(fetch_all("g"), False),
        lambda: node.groups.offsets.delete(OffsetDeleteRequest(group_id="g")),
        lambda: node.groups.offsets.commit(OffsetCommitRequest(group_id="g"), 9),
        lambda: node.groups.classic.leave_group(LeaveGroupRequest(group_id="g")),
    ):
        assert _code_on_loop(node, ask) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    beat = node.loop.run_until_complete(_on_loop(lambda: node.groups.classic.heartbeat(HeartbeatRequest(group_id="g"))))
    assert beat.error_code == ErrorCode.NONE
    joined = node.loop.run_until_complete(_on_loop(lambda: _join(node)))
    assert joined.response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    node.end_transaction("g", PRODUCER, commit)
    assert partition not in node.loader.by_partition, "not all at once"

    node.advance(0)
    while partition not in node.loader.by_partition:
        node.advance(0)  # turns of the loop: no time has to pass
    expected = (900 if commit else 299, 0)
    assert node.committed("g", "t", stable=True) == expected
    assert node.beat("g", me).error_code == 0
    node.crash()
    node.advance(1000)
    assert partition in node.loader.by_partition, "also when nobody asks"
    assert node.committed("g", "t", stable=True) == expected
    node.advance(SESSION_MS)
    assert node.state("g") == "Empty", "its session began with the reading"


@pytest.mark.parametrize("groups", [1, 20])
def test_large_records_are_read_a_few_in_a_step(node: Node, groups: int) -> None:
    """Twenty of 60 KB, of which one is left or all."""
    log = node.logs.get(TOPIC, 0)
    names = [name for name in map(str, range(100)) if node.groups.partition_for(name) == 0][:groups]
    mine = {"version": 3, "protocols": (("range", subscription("t") + bytes(60_000)),)}
    for name in names:
        me = node.stable(name, **mine)
        for _ in range(20 // groups - 1):
            me = node.join(name, me.member_id, **mine)
            node.sync(name, me, {me.member_id: b"a"})
    assert 1_200_000 < log.size_bytes < 1_400_000
    assert sum(1 for _ in replay(log)) == (2 if groups == 1 else 8)


def test_offsets_of_open_transactions_are_applied_in_steps(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    for number in range(50):
        assert node.commit_in_transaction("g", "t", number, (PRODUCER[0] + number, 0)) == 0
    assert sum(1 for _ in replay(node.logs.get(TOPIC, node.groups.partition_for("g")))) == 10


def test_the_timers_of_groups_that_were_read_start_in_steps(node: Node) -> None:
    groups = Groups()
    for number in range(10):
        group = groups.by_id[f"g{number}"] = ClassicGroup(f"g{number}", 0, State.STABLE)
        for name in map(str, range(100)):
            mine = [("range", subscription("t"))]
            group.add(ClassicMember(name, None, Client("c", "/::1"), SESSION_MS, SESSION_MS, mine), "consumer")

    async def start() -> int:
        return sum(1 for _ in node.groups._runtime._resume(0, groups))

    assert node.loop.run_until_complete(start()) == 5
    assert len(node.timers) == 1000


def test_the_partition_that_was_asked_for_last_is_read_first(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 5_000)
    other = next(name for name in "abcdef" if node.groups.partition_for(name) != node.groups.partition_for("g"))
    for offset in range(100):
        for group in ("g", other):
            node.commit(group, "t", offset)
    node.crash()
    found: list[int] = []
    node.groups.call_after_steps(lambda: found.extend(one for one in node.loader.by_partition if one not in found))
    for group in ("g", other):
        assert _code_on_loop(node, partial(node.groups.find, group)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1000)
    assert found == [node.groups.partition_for(other), node.groups.partition_for("g")]


def test_a_deleted_topic_is_not_read_any_further(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 20_000)
    for offset in range(300):
        node.commit("g", "t", offset)
    partition = node.groups.partition_for("g")
    node.crash()
    assert _code_on_loop(node, lambda: node.groups.find("g")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert partition in node.loader.reading
    node.metadata.delete_topic(TOPIC)
    for _ in range(100):
        node.advance(1000)
    assert node.all_groups() == []
    assert node.loader.reading == {}


def test_groups_of_an_offline_partition_are_not_taken_for_empty(node: Node) -> None:
    small = next(name for name in "abcdef" if node.groups.partition_for(name) != node.groups.partition_for("g"))
    for group in ("g", small):
        node.commit(group, "t", 7)
    node.crash()
    node.logs.get(TOPIC, node.groups.partition_for("g")).fail(OSError(errno.EIO, "the disk"))
    for _ in range(2):
        assert (
            _code_on_loop(node, lambda: node.groups.offsets.fetch(fetch_all("g"), False)) is ErrorCode.NOT_COORDINATOR
        )
        assert [group.group_id for group in node.call(node.all_groups)] == [small]
        node.advance(10_000)  # nor by the background
    assert node.committed(small, "t") == (7, 0)


def _join(node: Node):
    request = JoinGroupRequest(group_id="g", session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS)
    return node.groups.classic.join_group(request, 9, Client("c", "/::1"))


async def _on_loop(call):
    answer = call()
    return await answer if isinstance(answer, Coroutine) else answer


def _code_on_loop(node: Node, call) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        node.loop.run_until_complete(_on_loop(call))
    return caught.value.code


def test_a_topic_deleted_while_a_partition_is_read_loses_its_offsets(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 5_000)
    node.topic("u")
    node.commit("g", "u", 1)
    for offset in range(100):
        node.commit("g", "t", offset)
    node.crash()
    steps: list[None] = []
    node.groups.call_after_steps(lambda: steps.append(None))
    assert _code_on_loop(node, lambda: node.groups.find("g")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    node.metadata.delete_topic("u")
    node.advance(1000)
    node.topic("u")
    assert node.committed("g", "u") == NO_OFFSET
    assert node.committed("g", "t") == (99, 0)
    assert len(steps) >= 10


@pytest.mark.parametrize("spare", range(3))
def test_offsets_that_cannot_be_read_now_are_not_missing_ones(node: Node, spare: int) -> None:
    node.commit("g", "t", 7)
    node.restart()
    with descriptors.none_left(spare):
        try:
            assert node.committed("g", "t") == (7, 0)
        except KafkaError as error:
            assert error.code is ErrorCode.NOT_COORDINATOR
    assert node.committed("g", "t") == (7, 0)


def test_groups_whose_records_cannot_be_read_have_no_coordinator_here(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.commit("g", "t", 7)
    node.restart()

    def broken(log: PartitionLog) -> Generator[None, None, Groups]:
        raise OSError(errno.EIO, "the disk")
        yield

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.group.replay.replay", broken)
        for _ in range(2):
            with pytest.raises(KafkaError, match="the disk") as caught:
                node.committed("g", "t")
            assert caught.value.code is ErrorCode.NOT_COORDINATOR
    assert node.committed("g", "t") == (7, 0)
