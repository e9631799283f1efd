"""Offsets: commits with and without a group, deletion, what compaction leaves of them."""

from __future__ import annotations

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.runtime import CoordinatorRuntime
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.tests.appends import start_verification
from kafka_shim.tests.group.committed import NO_OFFSET, PRODUCER, UNSTABLE, stored_state
from kafka_shim.tests.group.harness import Node, refused


def test_offsets_survive_a_crash_and_the_newest_counts(node: Node) -> None:
    for offset in range(20):
        assert node.commit("g", "t", offset) == 0
    node.crash()
    assert node.committed("g", "t") == (19, 0)
    assert node.committed("g", "t", named=False) == (19, 0)
    assert node.state("g") == "Empty"


def test_batches_have_the_base_sequence_that_kafka_gives_them(node: Node) -> None:
    """0, as every batch of a CoordinatorRuntime: that of a transaction too, which DescribeProducers shows."""
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    assert node.commit("g", "t", 3) == 0
    node.stable("g")
    for offset in (4, 5):
        start_verification(log, PRODUCER[0], 0, PRODUCER[1], supports_epoch_bump=True)
        assert node.commit_in_transaction("g", "t", offset, PRODUCER) == 0
        assert [(one.producer_id, one.last_sequence) for one in log.producer_statuses()] == [(PRODUCER[0], 0)]
    batches = [batch for _, batch in log.batches()]
    assert len(batches) >= 4
    assert {batch.base_sequence for batch in batches} == {0}
    node.crash()
    (status,) = node.logs.get(TOPIC, log.partition).producer_statuses()
    assert (status.producer_id, status.last_sequence) == (PRODUCER[0], 0)


def test_metadata_has_a_limit_in_utf16_units(node: Node) -> None:
    assert node.commit("g", "t", 1, metadata="x" * 4096) == 0
    assert node.commit("g", "t", 1, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert node.commit("g", "t", 1, metadata="\U0001f600" * 2048) == 0
    assert node.commit("g", "t", 1, metadata="\U0001f600" * 2049) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert node.commit("g", "t", 1, metadata=None) == 0


def test_a_generation_without_a_group(node: Node) -> None:
    assert refused(node.commit, "g", "t", 1, "m", 3, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert refused(node.commit, "g", "t", 1, "m", 3, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert node.commit("g", "t", 1, "m", -1) == 0


def test_names_too_long_for_a_record_are_refused(node: Node) -> None:
    """A request's strings may be longer than a record's: 32,767 bytes."""
    name = "g" * 40_000
    assert refused(node.commit, name, "t", 1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.join(name).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.groups.find(name) is None
    assert not len(node.timers)


def test_compaction_keeps_the_newest_of_each_key_and_nothing_else(node: Node) -> None:
    node.topic("gone")
    me = node.stable("g")
    for offset in range(200):
        node.commit("g", "t", offset, me.member_id, me.generation_id)
    node.commit("g", "gone", 1, me.member_id, me.generation_id)
    node.metadata.delete_topic("gone")
    for step in range(30):
        node.modern("modern", f"m{step % 3}", subscribed_topic_names=["t"])
        node.advance(1000)
    node.modern("modern", "m2", -1)
    node.commit_in_transaction("g", "t", 900, PRODUCER)
    node.end_transaction("g", PRODUCER, True)
    for partition in range(2):  # nothing of a segment with an open transaction goes
        node.logs.get(TOPIC, partition).roll(node.clock.now_ms())
    node.commit_in_transaction("g", "t", 901, (2000, 0))
    before = {partition: stored_state(node.loader.groups(partition)) for partition in range(2)}

    for partition in range(2):
        log = node.logs.get(TOPIC, partition)
        log.roll(node.clock.now_ms())
        node.logs.cleaner.clean_now(log)
    left = [
        record.key
        for partition in range(2)
        for buffer, batch in node.logs.get(TOPIC, partition).batches()
        if not batch.is_control
        for record in cext_records.iterate(buffer)
    ]
    assert len(left) < 40, "300 and more were written"
    assert len(left) - len(set(left)) <= 1, "only the open transaction may repeat a key"
    node.crash()
    assert {partition: stored_state(node.loader.groups(partition)) for partition in range(2)} == before
    assert node.committed("g", "t", stable=True) == UNSTABLE
    node.end_transaction("g", (2000, 0), True)
    assert node.committed("g", "t", stable=True) == (901, 0)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_group_is_deleted_with_its_offsets_or_not_at_all(node: Node, crashes: bool) -> None:
    node.commit("g", "t", 9)
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": TOPIC})
    with pytest.raises(KafkaError):
        node.delete_group("g")
    node.faults.disarm()
    assert (node.state("g"), node.committed("g", "t")) == ("Empty", (9, 0))

    node.faults.arm("log.before_write", "oserror", "ENOSPC", nth=2, where={"topic": TOPIC})
    node.delete_group("g")
    node.faults.disarm()
    if crashes:
        node.crash()
    assert (node.state("g"), node.committed("g", "t")) == ("none", NO_OFFSET)


@pytest.mark.parametrize("one_batch", [False, True])
def test_more_offsets_than_a_batch_may_hold_are_deleted_before_their_group(
    node: Node, monkeypatch: pytest.MonkeyPatch, one_batch: bool
) -> None:
    topics = [f"t{number}" for number in range(40)]
    for topic in topics:
        node.topic(topic)
        node.commit("g", topic, 9)
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    before = len(list(log.batches()))
    if not one_batch:
        monkeypatch.setattr(CoordinatorRuntime, "max_batch_bytes", lambda self: 2000)
    node.delete_group("g")
    assert (len(list(log.batches())) - before == 1) is one_batch
    node.crash()
    assert node.state("g") == "none"
    assert {node.committed("g", topic) for topic in topics} == {NO_OFFSET}
