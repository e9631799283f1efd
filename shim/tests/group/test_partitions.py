"""Which partition of `__consumer_offsets` holds a group, also after the topic was given more."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.tests.group.harness import REBALANCE_MS, SESSION_MS, Node

DAY_MS = 24 * 3_600_000
BEFORE, AFTER = 2, 5
MOVED = next(
    name for name in map(str, range(100)) if internal_partition(name, AFTER) != internal_partition(name, BEFORE)
)
KEPT = next(
    name for name in map(str, range(100)) if internal_partition(name, AFTER) == internal_partition(name, BEFORE)
)


def test_groups_stay_where_they_are_when_partitions_are_added(node: Node) -> None:
    for group in (MOVED, KEPT):
        node.commit(group, "t", 5)
    node.metadata.create_partitions(TOPIC, AFTER)
    for group in (MOVED, KEPT):
        assert node.committed(group, "t") == (5, 0)
        assert node.groups.partition_for(group) == internal_partition(group, BEFORE)
    assert len(node.listed([], [])) == 2
    for number in range(3):  # nobody asks for a group there: what is to happen behind its load would be kept for ever
        node.logs.get(TOPIC, BEFORE).append_marker(number, 0, 0, True, 1, node.clock.now_ms())
    assert not node.groups._runtime.loader._afterwards
    node.groups._on_topic_deleted(node.metadata.image.topics[TOPIC])
    assert node.groups.partition_for(MOVED) == internal_partition(MOVED, AFTER)


def test_who_waits_in_a_group_is_answered_when_partitions_are_added(node: Node) -> None:
    first = node.stable(MOVED)
    second = node.member(MOVED)  # waits for the first
    node.metadata.create_partitions(TOPIC, AFTER)
    assert node.beat(MOVED, first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    node.advance(REBALANCE_MS)
    assert second.response.error_code == 0


def test_a_group_that_is_elsewhere_since_a_start_harms_none_of_its_id(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.commit(MOVED, "t", 5)
    node.commit(KEPT, "t", 6)
    node.commit_in_transaction(MOVED, "t", 7, (1000, 0))
    node.commit_in_transaction(KEPT, "t", 8, (1000, 0))
    before = node.groups.partition_for(MOVED)
    node.metadata.create_partitions(TOPIC, AFTER)
    with caplog.at_level(logging.WARNING, "kafka_shim.group"):
        node.crash()
        me = node.stable(MOVED)  # as in Kafka without its offsets
        node.advance(SESSION_MS - 1)
    assert f"groups that are elsewhere since the topic has 5 partitions: 1, such as {MOVED}" in caplog.text
    node.logs.get(TOPIC, before).append_marker(1000, 0, 0, True, 1, node.clock.now_ms())
    assert node.commit(MOVED, "t", 9, me.member_id, me.generation_id) == 0
    node.clock.set_wall(node.clock.now_ms() + 8 * DAY_MS)
    assert node.commit(MOVED, "t", 10, me.member_id, me.generation_id) == 0
    list(node.groups.offsets.expire(node.groups._remove))
    assert (node.state(MOVED), node.committed(MOVED, "t")) == ("Stable", (10, 0))
    assert node.beat(MOVED, me).error_code == 0
    assert [each.group_id for each in node.listed([], [])].count(MOVED) == 1
    node.crash()
    assert node.committed(MOVED, "t") == (10, 0)


def test_a_partition_count_is_asked_for_before_there_is_a_topic(tmp_path: Path) -> None:
    node = Node(tmp_path, offsets_topic_num_partitions=7)
    try:
        partitions = node.groups.partitions
        partitions.forget()
        topic = node.metadata.image.topics.pop(TOPIC)
        assert (partitions.count(), partitions.known) == (7, 0)
        node.metadata.image.topics[TOPIC] = topic
        assert (partitions.count(), partitions.known) == (len(topic.partitions),) * 2
    finally:
        node.close()
