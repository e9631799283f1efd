"""Offsets of deleted topics are removed, and are not those of the next topic of the name (B16)."""

from __future__ import annotations

import pytest

from kafka_shim.group.deleted_offsets import REMOVAL, REMOVAL_RETRY_MS
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_shim.tests.group.committed import NO_OFFSET, PRODUCER, fetch_all
from kafka_shim.tests.group.harness import Node


def test_offsets_of_a_topic_of_the_same_name_are_not_mixed_up(node: Node) -> None:
    node.commit("g", "t", 9)
    node.metadata.delete_topic("t")
    assert node.groups.offsets.fetch(fetch_all("g"), False).topics == []
    node.topic("t")
    assert node.committed("g", "t") == NO_OFFSET
    node.crash()
    assert node.committed("g", "t") == NO_OFFSET


@pytest.mark.parametrize("is_loaded", [True, False])
def test_offsets_that_a_full_disk_kept_are_not_those_of_the_next_topic_and_are_removed_later(
    node: Node, is_loaded: bool
) -> None:
    node.commit("g", "t", 9)
    node.topic("kept")
    node.commit("g", "kept", 5)
    if not is_loaded:
        node.crash()
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": TOPIC})
    node.metadata.delete_topic("t")
    node.advance(REMOVAL_RETRY_MS)
    node.faults.disarm()
    node.topic("t")
    assert node.committed("g", "t") == NO_OFFSET
    partition = node.groups.partition_for("g")
    assert node.loader.groups(partition).offsets.get("g", "t", 0) is not None
    node.commit("h", "t", 1)
    node.advance(REMOVAL_RETRY_MS)
    assert node.loader.groups(partition).offsets.get("g", "t", 0) is None
    assert (node.committed("h", "t"), node.committed("g", "kept")) == ((1, 0), (5, 0))
    node.advance(REMOVAL_RETRY_MS)
    assert not node.groups._runtime.scheduler.is_scheduled(REMOVAL)
    node.crash()
    assert node.committed("g", "t") == NO_OFFSET


@pytest.mark.parametrize("ends_with", ["nothing", "crash", "all offsets"])
def test_offsets_of_a_deleted_topic_are_removed_in_steps(
    node: Node, monkeypatch: pytest.MonkeyPatch, ends_with: str
) -> None:
    monkeypatch.setattr("kafka_shim.group.deleted_offsets.OFFSETS_PER_STEP", 50)
    parts = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(20)]
    topic = OffsetCommitRequestTopic(name="wide", topic_id=node.topic("wide", 20), partitions=parts)
    groups = [f"g{number}" for number in range(20)]
    for group in groups:
        node.call(node.groups.offsets.commit, OffsetCommitRequest(group_id=group, topics=[topic]), 9)

    async def on_one_turn() -> list[str]:
        node.metadata.delete_topic("wide")
        left = [group for number in (0, 1) for group in node.loader.groups(number).offsets.group_ids()]
        topic.topic_id, topic.partitions = node.topic("wide", 20), parts[:1]
        wanted = [OffsetFetchRequestTopics(name="wide", partition_indexes=[0])]
        found = node.groups.offsets.fetch(OffsetFetchRequestGroup(group_id=left[0], topics=wanted), False)
        assert found.topics[0].partitions[0].committed_offset == -1
        node.groups.offsets.commit(OffsetCommitRequest(group_id=left[-1], topics=[topic]), 9)
        return left

    async def begin_anew() -> None:
        node.metadata.delete_topic(TOPIC)
        node.metadata.ensure_internal_topic(TOPIC)

    left = node.loop.run_until_complete(on_one_turn())
    assert 0 < len(left) < 20
    if ends_with == "crash":
        node.crash()
    if ends_with == "all offsets":
        node.loop.run_until_complete(begin_anew())
    node.advance(2 * REMOVAL_RETRY_MS if ends_with == "crash" else 1)
    assert not node.groups.offsets.deleted.are_left
    kept = [group for group in groups if node.committed(group, "wide", named=False) is not None]
    assert kept == ([] if ends_with == "all offsets" else left[-1:])
    assert (ends_with == "all offsets") is not any(node.logs.get(TOPIC, number).log_end_offset for number in (0, 1))


def test_nothing_of_deleted_topics_is_left_to_do_when_all_offsets_go(node: Node) -> None:
    node.commit("g", "t", 9)
    _delete_on_a_full_disk(node, "t")
    deleted = node.groups.offsets.deleted
    assert deleted.are_left
    node.metadata.delete_topic(TOPIC)
    node.advance(0)
    assert not deleted.are_left
    assert not node.groups._runtime.scheduler.is_scheduled(REMOVAL)


def test_a_deleted_topic_leaves_nothing_behind_for_partitions_that_nobody_uses(node: Node) -> None:
    """Most of the offsets topic's partitions are never asked about: what waits for their load waits for ever."""
    node.commit("g", "t", 9)
    assert len(node.loader.by_partition) == 1
    node.metadata.delete_topic("t")
    node.advance(1)
    assert len(node.loader.by_partition) == 1
    assert not node.loader._afterwards
    node.advance(REMOVAL_RETRY_MS)
    assert not node.groups._runtime.scheduler.is_scheduled(REMOVAL)


def test_offsets_of_a_topic_that_was_deleted_right_before_a_crash_are_not_those_of_the_next(node: Node) -> None:
    node.commit("g", "t", 9)
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": TOPIC})
    node.metadata.delete_topic("t")
    node.crash()
    node.faults.disarm()
    node.topic("t")
    assert node.committed("g", "t") == NO_OFFSET
    (one,) = node.groups.offsets.fetch(fetch_all("g"), False).topics
    assert [each.committed_offset for each in one.partitions] == [-1]
    node.commit("h", "t", 1)
    node.advance(REMOVAL_RETRY_MS)
    assert node.groups.offsets.fetch(fetch_all("g"), False).topics == []
    assert node.committed("h", "t") == (1, 0)


def test_offsets_without_a_topic_id_of_the_next_topic_are_kept(node: Node) -> None:
    """What is left of the deleted one is removed when the next has some already."""
    node.commit("g", "t", 9)
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": TOPIC})
    node.metadata.delete_topic("t")
    node.faults.disarm()
    node.topic("t")
    other = next(name for name in "abcdef" if node.groups.partition_for(name) == node.groups.partition_for("g"))
    part = OffsetCommitRequestPartition(committed_offset=3)
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    node.call(node.groups.offsets.commit, OffsetCommitRequest(group_id=other, topics=[topic]), 9)
    node.advance(REMOVAL_RETRY_MS)
    assert (node.committed("g", "t"), node.committed(other, "t")) == (NO_OFFSET, (3, 0))
    assert node.groups.offsets.fetch(fetch_all("g"), False).topics == []


def _delete_on_a_full_disk(node: Node, topic: str) -> None:
    """Delete a topic, whose offsets stay, and make the next of its name."""
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": TOPIC})
    node.metadata.delete_topic(topic)
    node.faults.disarm()
    node.topic(topic)


@pytest.mark.parametrize("is_ended_before", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_offsets_of_a_transaction_are_not_those_of_the_next_topic_of_the_name(
    node: Node, is_ended_before: bool, restarts: bool
) -> None:
    """TxnOffsetCommit names topics only; the offset may be committed after the deletion."""
    node.commit_in_transaction("g", "t", 9, PRODUCER)
    if is_ended_before:
        node.end_transaction("g", PRODUCER, True)
        assert node.committed("g", "t") == (9, 0)
    _delete_on_a_full_disk(node, "t")
    if restarts:
        node.crash()
    if not is_ended_before:
        assert node.committed("g", "t") == NO_OFFSET
        node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == NO_OFFSET
    node.advance(REMOVAL_RETRY_MS)
    assert node.groups.offsets.fetch(fetch_all("g"), False).topics == []
    node.commit_in_transaction("g", "t", 1, PRODUCER)
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == (1, 0)
    node.crash()
    assert node.committed("g", "t") == (1, 0)


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_not_lost_with_the_offset_of_a_deleted_topic(node: Node, restarts: bool, commit: bool) -> None:
    """A tombstone removes pending offsets too, and the transaction was already told that its offset is there."""
    node.commit("g", "t", 9)
    _delete_on_a_full_disk(node, "t")
    node.commit_in_transaction("g", "t", 3, PRODUCER)
    if restarts:
        node.crash()
        assert node.committed("g", "t") == NO_OFFSET
    node.advance(REMOVAL_RETRY_MS)
    assert node.committed("g", "t") == NO_OFFSET
    node.end_transaction("g", PRODUCER, commit)
    assert node.committed("g", "t") == ((3, 0) if commit else NO_OFFSET)
    node.advance(REMOVAL_RETRY_MS)
    assert node.committed("g", "t") == ((3, 0) if commit else NO_OFFSET)
    assert not node.groups._runtime.scheduler.is_scheduled(REMOVAL)
    assert [each.name for each in node.groups.offsets.fetch(fetch_all("g"), False).topics] == ["t"] * commit


def test_a_commit_is_not_lost_with_the_pending_offset_of_a_deleted_topic(node: Node) -> None:
    node.commit_in_transaction("g", "t", 9, PRODUCER)
    _delete_on_a_full_disk(node, "t")
    node.commit("g", "t", 3)
    node.advance(REMOVAL_RETRY_MS)
    assert node.committed("g", "t") == (3, 0)
    node.end_transaction("g", PRODUCER, True)
    node.advance(REMOVAL_RETRY_MS)
    assert node.committed("g", "t") == (3, 0)
    assert not node.groups._runtime.scheduler.is_scheduled(REMOVAL)
    node.crash()
    assert node.committed("g", "t") == (3, 0)
