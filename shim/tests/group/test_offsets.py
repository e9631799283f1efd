"""Offsets: commits with and without a group, transactions (B8, B16, D14), expiry (KIP-211), deletion, restart."""

from __future__ import annotations

import errno
from collections.abc import Coroutine
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_shim.cext import messages, offset_records
from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import records
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.classic_state import State
from kafka_shim.group.client import Client
from kafka_shim.group.deleted_offsets import REMOVAL, REMOVAL_RETRY_MS
from kafka_shim.group.groups import Groups
from kafka_shim.group.replay import replay
from kafka_shim.group.runtime import CoordinatorRuntime
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_delete_request import OffsetDeleteRequest
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_shim.protocol.records.offset_commit_key import OffsetCommitKey
from kafka_shim.protocol.records.offset_commit_value import OffsetCommitValue
from kafka_shim.tests import descriptors
from kafka_shim.tests.appends import start_verification
from kafka_shim.tests.group.harness import SESSION_MS, Node, subscription

E = ErrorCode
DAY_MS = 24 * 3_600_000
NO_OFFSET = (-1, 0)
UNSTABLE = (-1, E.UNSTABLE_OFFSET_COMMIT)
PRODUCER = (1000, 0)


def refused(call, *arguments, **fields) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **fields)
    return caught.value.code


# --- records


@given(
    st.text(min_size=1, max_size=20),
    st.text(min_size=1, max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=300),
    st.integers(0, 2**62),
    st.sampled_from((-1, 5, 2**62)),
    st.binary(min_size=16, max_size=16),
)
def test_offsets_are_encoded_as_the_generated_classes_do(
    group, topic, partition, offset, epoch, metadata, commit_ms, expire_ms, topic_id
) -> None:
    key = offset_records.encode_offset_key(group, topic, partition)
    generated = OffsetCommitKey(group=group, topic=topic, partition=partition)
    assert key == b"\0\1" + messages.encode(generated, 0)
    assert records.decode_offset_key(key) == (group, topic, partition)
    version = 4 if expire_ms == -1 else 1
    committed = offset_records.Committed(offset, epoch, metadata, commit_ms, expire_ms, topic_id)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=commit_ms,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )
    encoded = offset_records.encode_offset(committed)
    assert encoded == version.to_bytes(2, "big") + messages.encode(value, version)
    back = records.decode_offset(encoded, 7)
    assert (back.offset, back.metadata, back.commit_ms, back.record_offset) == (offset, metadata, commit_ms, 7)
    if version == 4:
        assert (back.leader_epoch, back.topic_id) == (epoch, topic_id)


@pytest.mark.parametrize(
    ("group", "topic", "metadata", "expire_ms"),
    [
        ("g" * 0x8000, "t", "", -1),
        ("g", "t" * 0x8000, "", -1),
        ("g", "t", "m" * 0x8000, -1),
        ("g", "t", "\u00e9" * 0x4000, 5),
        ("\ud800", "t", "", -1),
    ],
    ids=["group", "topic", "metadata", "UTF-8", "surrogate"],
)
def test_an_offset_that_no_record_can_hold_is_refused(group: str, topic: str, metadata: str, expire_ms: int) -> None:
    committed = offset_records.Committed(1, 0, metadata, 0, expire_ms)
    with pytest.raises(KafkaError) as caught:
        records.offset_entries(group, [(topic, 0, committed)], 1)
    assert caught.value.code == E.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="topic id of 15 bytes"):
        offset_records.Committed(1, 0, "", 0, -1, bytes(15))
    # Whoever could leave these out would have bytes of other objects written.
    with pytest.raises(TypeError):
        offset_records.Committed.__new__(offset_records.Committed)
    with pytest.raises(AttributeError):
        committed.topic_id = b""


KEY, VALUE = b"\0\1\0\1g\0\1t\0\0\0\2", b"\0\0" + (5).to_bytes(8, "big") + b"\0\1m" + bytes(8)


def test_record_that_parses_is_taken() -> None:
    found = records.decode_offset(VALUE, 0)
    assert (found.offset, found.metadata) == (5, "m")
    assert records.record_type_of(KEY) == records.OFFSET_COMMIT
    assert tuple(records.decode_offset_key(KEY)) == ("g", "t", 2)


@given(st.binary(max_size=60), st.binary(max_size=60))
@example(KEY[:-1], VALUE)
@example(KEY, VALUE[:-1])
@example(b"\0\2\0\1g", b"\0\4\xff")
def test_records_that_do_not_parse_are_refused(key: bytes, value: bytes) -> None:
    is_cut = (key, value) in {(KEY[:-1], VALUE), (KEY, VALUE[:-1]), (b"\0\2\0\1g", b"\0\4\xff")}
    try:
        kind = records.record_type_of(key)
        if 0 <= kind <= records.OFFSET_COMMIT:
            records.decode_offset_key(key)
            records.decode_offset(value, 0)
        else:
            records.decode(key, value)
    except records.RecordError:
        return
    assert not is_cut


def test_a_log_with_foreign_records_is_read_around_them(node: Node) -> None:
    node.commit("g", "t", 5)
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    foreign = [(b"\0\x63what", b"\0\0", 1, ()), (b"\0\1\0\x7f", b"\0\4", 1, ()), (b"", b"", 1, ())]
    foreign += [(b"\0\x0b\0\1s", b"\0\0\0\0\0\1\0", 1, ())]
    log.append_batch(cext_records.build(foreign), now_ms=1)
    node.crash()
    assert node.committed("g", "t") == (5, 0)


@pytest.mark.parametrize("field", ["the length of a record", "its key"])
def test_a_corrupt_batch_costs_what_it_holds_and_nothing_else(node: Node, field: str) -> None:
    for offset in range(3):
        node.commit("g", "t", offset)
    node.commit("other", "t", 7)
    partition = node.groups.partition_for("g")
    batches = [(batch.position, batch.size_bytes) for _, batch in node.logs.get(TOPIC, partition).batches()]
    node.stop()
    (path,) = node.path.glob(f"{TOPIC}-{partition}/*.log")
    data = bytearray(path.read_bytes())
    position = batches[2][0] + (61 if field == "the length of a record" else 70)
    data[position] ^= 0xFF
    path.write_bytes(data)
    node.start()
    node.advance(1000)
    assert node.committed("g", "t") == (1, 0)
    assert node.committed("other", "t") == (7, 0)
    assert {group.group_id for group in node.all_groups()} == {"g", "other"}
    assert node.commit("g", "t", 3) == 0


# --- commits


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
    assert node.commit("g", "t", 1, metadata="x" * 4097) == E.OFFSET_METADATA_TOO_LARGE
    assert node.commit("g", "t", 1, metadata="\U0001f600" * 2048) == 0
    assert node.commit("g", "t", 1, metadata="\U0001f600" * 2049) == E.OFFSET_METADATA_TOO_LARGE
    assert node.commit("g", "t", 1, metadata=None) == 0


def test_a_generation_without_a_group(node: Node) -> None:
    assert refused(node.commit, "g", "t", 1, "m", 3, version=8) is E.ILLEGAL_GENERATION
    assert refused(node.commit, "g", "t", 1, "m", 3, version=9) is E.GROUP_ID_NOT_FOUND
    assert node.commit("g", "t", 1, "m", -1) == 0


def test_offsets_of_a_topic_of_the_same_name_are_not_mixed_up(node: Node) -> None:
    node.commit("g", "t", 9)
    node.metadata.delete_topic("t")
    assert node.groups.offsets.fetch(_fetch_all("g"), False).topics == []
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
    (one,) = node.groups.offsets.fetch(_fetch_all("g"), False).topics
    assert [each.committed_offset for each in one.partitions] == [-1]
    node.commit("h", "t", 1)
    node.advance(REMOVAL_RETRY_MS)
    assert node.groups.offsets.fetch(_fetch_all("g"), False).topics == []
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
    assert node.groups.offsets.fetch(_fetch_all("g"), False).topics == []


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
    assert node.groups.offsets.fetch(_fetch_all("g"), False).topics == []
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
    assert [each.name for each in node.groups.offsets.fetch(_fetch_all("g"), False).topics] == ["t"] * commit


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


def _fetch_all(group: str):
    return OffsetFetchRequestGroup(group_id=group, topics=None)


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
        lambda: node.groups.offsets.fetch(_fetch_all("g"), False),
        lambda: node.groups.offsets.delete(OffsetDeleteRequest(group_id="g")),
        lambda: node.groups.offsets.commit(OffsetCommitRequest(group_id="g"), 9),
        lambda: node.groups.classic.leave_group(LeaveGroupRequest(group_id="g")),
    ):
        assert _code_on_loop(node, ask) is E.COORDINATOR_LOAD_IN_PROGRESS
    beat = node.loop.run_until_complete(_on_loop(lambda: node.groups.classic.heartbeat(HeartbeatRequest(group_id="g"))))
    assert beat.error_code == E.NONE
    joined = node.loop.run_until_complete(_on_loop(lambda: _join(node)))
    assert joined.response.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
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
        assert _code_on_loop(node, partial(node.groups.find, group)) is E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1000)
    assert found == [node.groups.partition_for(other), node.groups.partition_for("g")]


def test_a_deleted_topic_is_not_read_any_further(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.replay.STEP_RECORDS", 10)
    monkeypatch.setattr("kafka_shim.group.loader.READ_AT_ONCE_BYTES", 20_000)
    for offset in range(300):
        node.commit("g", "t", offset)
    partition = node.groups.partition_for("g")
    node.crash()
    assert _code_on_loop(node, lambda: node.groups.find("g")) is E.COORDINATOR_LOAD_IN_PROGRESS
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
        assert _code_on_loop(node, lambda: node.groups.offsets.fetch(_fetch_all("g"), False)) is E.NOT_COORDINATOR
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
    assert _code_on_loop(node, lambda: node.groups.find("g")) is E.COORDINATOR_LOAD_IN_PROGRESS
    node.metadata.delete_topic("u")
    node.advance(1000)
    node.topic("u")
    assert node.committed("g", "u") == NO_OFFSET
    assert node.committed("g", "t") == (99, 0)
    assert len(steps) >= 10


def test_names_too_long_for_a_record_are_refused(node: Node) -> None:
    """A request's strings may be longer than a record's: 32,767 bytes."""
    name = "g" * 40_000
    assert refused(node.commit, name, "t", 1) is E.UNKNOWN_SERVER_ERROR
    assert node.join(name).error_code == E.UNKNOWN_SERVER_ERROR
    assert node.groups.find(name) is None
    assert not len(node.timers)


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


def stored_state(groups: Groups) -> dict[str, object]:
    """What is stored of each group."""
    found: dict[str, object] = {}
    for group_id, group in groups.by_id.items():
        offsets = {
            (topic, partition): (each.offset, each.metadata, each.commit_ms)
            for topic, by_partition in groups.offsets.of_group(group_id).items()
            for partition, each in by_partition.items()
        }
        if isinstance(group, ClassicGroup):
            members = {name: (each.assignment, each.protocols) for name, each in group.members.items()}
            found[group_id] = group.generation_id, group.protocol, group.leader_id, members, offsets
        else:
            found[group_id] = group.group_epoch, group.assignment_epoch, group.members, group.target, offsets
    return found


# --- transactions


def test_offsets_of_a_transaction_are_seen_when_it_commits(node: Node) -> None:
    assert node.commit_in_transaction("g", "t", 5, PRODUCER) == 0
    assert node.committed("g", "t") == NO_OFFSET
    assert node.committed("g", "t", stable=True) == UNSTABLE
    assert node.committed("g", "t", stable=True, named=False) is None, "only pending: absent from the all-topics form"
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == (5, 0)
    node.crash()
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_offsets_of_a_transaction_are_gone_when_it_aborts(node: Node) -> None:
    node.commit("g", "t", 3)
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    assert node.committed("g", "t") == (3, 0)
    assert node.committed("g", "t", stable=True) == UNSTABLE
    assert node.committed("g", "t", stable=True, named=False) == UNSTABLE
    node.end_transaction("g", PRODUCER, False)
    assert node.committed("g", "t", stable=True) == (3, 0)


def test_pending_offsets_are_pending_after_a_crash(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.crash()
    assert node.committed("g", "t", stable=True) == UNSTABLE
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_a_marker_on_a_partition_that_nobody_has_read_counts(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.crash()
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == (5, 0)


@pytest.mark.parametrize("crash", [False, True])
def test_of_a_plain_and_a_transactional_commit_the_later_record_wins(node: Node, crash: bool) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.commit("g", "t", 9)
    node.end_transaction("g", PRODUCER, True)
    if crash:
        node.crash()
    assert node.committed("g", "t") == (9, 0)


def test_two_transactions_on_one_partition(node: Node) -> None:
    other = (2000, 0)
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.commit_in_transaction("g", "t", 6, other)
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == UNSTABLE
    node.end_transaction("g", other, False)
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_a_transactional_commit_of_members_and_strangers(node: Node) -> None:
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 3, "m") == E.ILLEGAL_GENERATION
    me = node.stable("g")
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, me.generation_id, me.member_id) == 0
    assert node.commit_in_transaction("g", "t", 5, PRODUCER) == 0, "a producer that knows no group (before KIP-447)"
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 9, me.member_id) == E.ILLEGAL_GENERATION
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, me.generation_id, "x") == E.UNKNOWN_MEMBER_ID
    node.leave("g", me.member_id)
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 3, "x") == E.UNKNOWN_MEMBER_ID
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, -1, "x") == 0


def test_a_transactional_commit_without_a_producer_is_a_plain_one(node: Node) -> None:
    """Without `transaction.partition.verification.enable` nobody asks for the producer."""
    assert node.commit_in_transaction("g", "t", 5, (-1, -1)) == 0
    assert node.committed("g", "t", stable=True) == (5, 0)
    node.commit("g", "t", 9)
    node.crash()
    assert node.committed("g", "t", stable=True) == (9, 0)


def test_a_tombstone_takes_what_is_pending(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.delete_group("g")
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == NO_OFFSET
    node.crash()
    assert node.committed("g", "t") == NO_OFFSET


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


# --- expiry


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
    assert node.commit("g", "t", 5, version=4, retention_time_ms=2**63 - 1) == E.NONE
    assert node.committed("g", "t") == (5, 0)
    node.crash()
    node.advance(601_000)
    assert node.committed("g", "t") == NO_OFFSET


def test_a_pending_commit_keeps_the_group(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.advance(8 * DAY_MS)
    assert node.committed("g", "t", stable=True) == UNSTABLE


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
