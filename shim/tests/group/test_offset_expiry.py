"""Offsets expire (KIP-211)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.tests.group.committed import DAY_MS, NO_OFFSET, PRODUCER, UNSTABLE
from kafka_shim.tests.group.harness import Node, subscription


def test_expiry_stops_every_now_and_then(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.offset_requests.GROUPS_PER_STEP", 5)
    for number in range(40):
        node.commit(f"g{number}", "t", 1)
    node.clock.set_wall(node.clock.now_ms() + 8 * DAY_MS)
    steps = node.groups.offsets.expire(node.groups._remove)
    left = [len(node.all_groups()) for _ in steps]
    assert left == sorted(left, reverse=True)
    assert len(left) >= 7
    assert not node.all_groups()


def test_expiry_stops_between_the_topics_of_a_group_and_spares_what_is_committed_meanwhile(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_shim.group.offset_requests.OFFSETS_PER_STEP", 200)
    parts = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(100)]
    for name in ("t0", "t1", "t2", "t3"):
        topic = OffsetCommitRequestTopic(name=name, topic_id=node.topic(name, 100), partitions=parts)
        node.call(node.groups.offsets.commit, OffsetCommitRequest(group_id="g", topics=[topic]), 9)
    node.clock.set_wall(node.clock.now_ms() + 8 * DAY_MS)
    steps = node.groups.offsets.expire(node.groups._remove)
    next(steps)
    offsets = node.loader.groups(node.groups.partition_for("g")).offsets
    assert sum(map(len, offsets.of_group("g").values())) == 200
    node.commit("g", "t3", 9)
    list(steps)
    assert {topic: len(found) for topic, found in offsets.of_group("g").items()} == {"t3": 1}
    assert (node.state("g"), node.committed("g", "t3")) == ("Empty", (9, 0))


def test_offsets_without_a_group_expire_after_their_commit(node: Node) -> None:
    node.commit("g", "t", 5)
    node.advance(7 * DAY_MS - 1)
    assert node.committed("g", "t") == (5, 0)
    node.advance(600_000)
    assert node.committed("g", "t") == NO_OFFSET
    assert node.state("g") == "none"
    node.crash()
    assert node.state("g") == "none"


def test_offsets_of_a_group_expire_after_it_became_empty(node: Node) -> None:
    me = node.stable("g")
    node.commit("g", "t", 5, me.member_id, me.generation_id)
    node.advance(5000)
    node.leave("g", me.member_id)
    node.advance(7 * DAY_MS - 5000)
    assert node.committed("g", "t") == (5, 0)
    node.advance(600_000)
    assert node.state("g") == "none"


def test_a_live_group_keeps_what_it_is_subscribed_to(tmp_path: Path) -> None:
    node = Node(tmp_path, offsets_retention_minutes=1, group_max_session_timeout_ms=2**31 - 1)
    try:
        node.topic("t")
        node.topic("u")
        me = node.stable("g", protocols=(("range", subscription("t")),), session_timeout_ms=2**31 - 1)
        node.commit("g", "t", 5, me.member_id, me.generation_id)
        node.commit("g", "u", 5, me.member_id, me.generation_id)
        node.advance(600_000)
        assert node.committed("g", "t") == (5, 0)
        assert node.committed("g", "u") == NO_OFFSET
        assert node.state("g") == "Stable"
    finally:
        node.close()


def test_a_commit_may_bring_its_own_retention(node: Node) -> None:
    node.commit("g", "t", 5, version=4, retention_time_ms=1000)
    node.crash()
    node.advance(599_000)
    assert node.committed("g", "t") == (5, 0)
    node.advance(601_000)
    assert node.committed("g", "t") == NO_OFFSET


def test_a_retention_that_no_time_can_hold_has_passed_as_in_java(node: Node) -> None:
    assert node.commit("g", "t", 5, version=4, retention_time_ms=2**63 - 1) == ErrorCode.NONE
    assert node.committed("g", "t") == (5, 0)
    node.crash()
    node.advance(601_000)
    assert node.committed("g", "t") == NO_OFFSET


def test_a_pending_commit_keeps_the_group(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.advance(8 * DAY_MS)
    assert node.committed("g", "t", stable=True) == UNSTABLE
