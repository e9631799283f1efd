"""The share coordinator: state of share partitions, fencing, records, replay, pruning."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Generator
from struct import unpack_from

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.share.coordinator import TOMBSTONE_RETRY_MS
from kafka_shim.share.records import RecordError, ShareRecord, decode
from kafka_shim.share.state import ShareGroupOffset, StateBatch, combine
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.share.harness import Node

SNAPSHOT, UPDATE = 0, 1
G = "g"


def types(log: PartitionLog) -> list[int]:
    """The types of the stored records from the log's start; -1 for a tombstone."""
    return [
        unpack_from(">h", record.key)[0] if record.value is not None else -1
        for buffer, _ in log.batches()
        for record in cext_records.iterate(buffer)
        if record.offset >= log.log_start_offset and record.key is not None
    ]


def begun(node: Node, start_offset: int = 0) -> bytes:
    topic_id = node.topic("t")
    node.state.initialize_state(G, topic_id, 0, 1, start_offset)
    node.state.read_state(G, topic_id, 0, 0)
    return topic_id


def write(node: Node, topic_id: bytes, *batches: tuple[int, int, int, int], start: int = -1, epoch: int = 1) -> None:
    node.state.write_state(G, topic_id, 0, epoch, 0, start, 0, [StateBatch(*batch) for batch in batches])


def test_written_batches_are_merged_and_survive_a_crash(node: Node) -> None:
    topic_id = begun(node)
    write(node, topic_id, (0, 9, 0, 1), (20, 29, 2, 1))
    write(node, topic_id, (5, 14, 2, 2))
    expected = (1, 0, 0, [StateBatch(0, 4, 0, 1), StateBatch(5, 14, 2, 2), StateBatch(20, 29, 2, 1)])
    assert node.state.read_state(G, topic_id, 0, 0) == expected
    node.crash()
    assert node.state.read_state(G, topic_id, 0, 0) == expected
    write(node, topic_id, start=12)
    assert node.state.read_state(G, topic_id, 0, 0) == (1, 12, 0, [StateBatch(12, 14, 2, 2), StateBatch(20, 29, 2, 1)])


def test_states_stay_where_they_are_when_partitions_are_added(node: Node) -> None:
    topic_ids = [node.topic(f"t{number}") for number in range(8)]
    for topic_id in topic_ids:
        node.state.initialize_state(G, topic_id, 0, 1, 7)
    count = len(node.metadata.image.topics[SHARE_GROUP_STATE_TOPIC].partitions)
    node.metadata.create_partitions(SHARE_GROUP_STATE_TOPIC, count + 3)
    for topic_id in topic_ids:
        assert node.state.read_state(G, topic_id, 0, 0) == (1, 7, 0, [])
        write(node, topic_id, (7, 9, 2, 1))
    node.metadata.delete_topic(SHARE_GROUP_STATE_TOPIC)
    node.metadata.create_topic(SHARE_GROUP_STATE_TOPIC, 1, 1)
    assert {node.state.coordinator.partition_for((G, topic_id, 0)) for topic_id in topic_ids} == {0}


def test_batches_have_the_base_sequence_that_kafka_gives_them(node: Node) -> None:
    topic_id = begun(node)
    write(node, topic_id, (0, 9, 0, 1))
    log = node.state_log(G, topic_id, 0)
    assert [(batch.producer_id, batch.base_sequence) for _, batch in log.batches()] == [(-1, 0)] * 2


def test_reads_and_writes_need_an_initialised_partition_of_a_known_topic(node: Node) -> None:
    topic_id = node.topic("t")
    for call in (
        lambda: node.state.read_state(G, topic_id, 0, 0),
        lambda: write(node, topic_id, (0, 1, 2, 1)),
        lambda: node.state.initialize_state(G, topic_id, -1, 1, 0),
    ):
        with pytest.raises(KafkaError) as caught:
            call()
        assert caught.value.code is ErrorCode.INVALID_REQUEST
    for unknown_id, partition in ((b"x" * 16, 0), (topic_id, 2)):
        with pytest.raises(KafkaError) as caught:
            node.state.initialize_state(G, unknown_id, partition, 1, 0)
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.state.read_summary(G, topic_id, 0) == (0, 0, -1, -1)


def test_older_epochs_are_fenced(node: Node) -> None:
    topic_id = begun(node)
    node.state.read_state(G, topic_id, 0, 3)
    with pytest.raises(KafkaError) as caught:
        node.state.read_state(G, topic_id, 0, 2)
    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError) as caught:
        write(node, topic_id, (0, 1, 2, 1))
    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH
    node.state.initialize_state(G, topic_id, 0, 2, 7)
    with pytest.raises(KafkaError) as caught:
        node.state.write_state(G, topic_id, 0, 1, 3, -1, 0, [])
    assert caught.value.code is ErrorCode.FENCED_STATE_EPOCH
    with pytest.raises(KafkaError) as caught:
        node.state.initialize_state(G, topic_id, 0, 1, 0)
    assert caught.value.code is ErrorCode.FENCED_STATE_EPOCH
    assert node.state.read_summary(G, topic_id, 0) == (2, 0, 7, 0)
    # The leader epoch fences on after a restart only as far as a record says it.
    node.crash()
    with pytest.raises(KafkaError) as caught:
        node.state.read_state(G, topic_id, 0, 2)
    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.option("share.coordinator.snapshot.update.records.per.snapshot")
def test_a_snapshot_follows_so_many_updates(make_node: Callable[..., Node]) -> None:
    node = make_node(share_coordinator_snapshot_update_records_per_snapshot=2)
    topic_id = node.topic("t")
    node.state.initialize_state(G, topic_id, 0, 1, 0)
    for offset in range(6):
        write(node, topic_id, (offset, offset, 2, 1))
    log = node.state_log(G, topic_id, 0)
    assert types(log) == [SNAPSHOT, UPDATE, UPDATE, SNAPSHOT, UPDATE, UPDATE, SNAPSHOT]
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 5, 2, 1)]


def test_a_snapshot_keeps_the_start_offset_that_its_write_leaves_as_it_is(make_node: Callable[..., Node]) -> None:
    node = make_node(share_coordinator_snapshot_update_records_per_snapshot=1)
    topic_id = node.topic("t")
    node.state.initialize_state(G, topic_id, 0, 1, 5)
    for offset in range(5, 9):
        node.state.write_state(G, topic_id, 0, 1, 0, -1, 0, [StateBatch(offset, offset, 2, 1)])
    assert types(node.state_log(G, topic_id, 0)) == [SNAPSHOT, UPDATE, SNAPSHOT, UPDATE, SNAPSHOT]
    node.crash()
    assert node.state.read_state(G, topic_id, 0, 0) == (1, 5, 0, [StateBatch(5, 8, 2, 1)])


@pytest.mark.option("share.coordinator.state.topic.prune.interval.ms")
def test_records_before_the_oldest_snapshot_are_pruned(make_node: Callable[..., Node]) -> None:
    node = make_node(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_state_topic_prune_interval_ms=1000,
        share_coordinator_state_topic_num_partitions=1,
    )
    topic_id = begun(node)
    node.state.initialize_state("other", topic_id, 1, 1, 5)
    for offset in range(4):
        write(node, topic_id, (offset, offset, 2, 1))
    log = node.state_log(G, topic_id, 0)
    node.clock.advance(1000)
    kept = log.log_start_offset
    assert kept > 0
    node.crash()
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 3, 2, 1)]
    assert node.state.read_summary("other", topic_id, 1) == (1, 0, 5, 0)
    # The record that `other` needs keeps all after it, until it gets a snapshot of its own.
    for offset in range(4, 8):
        write(node, topic_id, (offset, offset, 2, 1))
    node.clock.advance(1000)
    assert node.state_log(G, topic_id, 0).log_start_offset == kept


def one_in_each_partition(node: Node, topic_id: bytes) -> dict[int, str]:
    """The names of groups by the partition that has their state, of four writes each."""
    coordinator = node.state.coordinator
    groups = {coordinator.partition_for((name, topic_id, 0)): name for name in map(str, range(50))}
    for group in groups.values():
        node.state.initialize_state(group, topic_id, 0, 1, 0)
        for offset in range(4):
            node.state.write_state(group, topic_id, 0, 1, 0, -1, 0, [StateBatch(offset, offset, 2, 1)])
    return groups


def test_partitions_are_pruned_in_slices(make_node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is loaded again between two slices is left to the next time."""
    monkeypatch.setattr("kafka_shim.share.coordinator.MOST_AT_ONCE", 1)
    node = make_node(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_state_topic_prune_interval_ms=1000,
        share_coordinator_state_topic_num_partitions=3,
    )
    topic_id = node.topic("t")
    coordinator = node.state.coordinator
    groups = one_in_each_partition(node, topic_id)
    logs = [node.logs.get(SHARE_GROUP_STATE_TOPIC, number) for number in groups]

    def pruned() -> list[bool]:
        return [log.log_start_offset > 0 for log in logs]

    async def run() -> None:
        node.clock.advance(1000)
        assert pruned() == [True, False, False]
        second, third = list(groups)[1:]
        coordinator._loader._shards[second].is_current = False
        node.state.read_summary(groups[second], topic_id, 0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert pruned() == [True, False, True]
        assert coordinator._loader.loaded(third) is not None
        node.clock.advance(1000)
        for _ in range(3):
            await asyncio.sleep(0)
        assert pruned() == [True, True, True]

    asyncio.run(run())


def test_few_snapshots_of_states_in_many_pieces_are_written_at_once(make_node: Callable[..., Node]) -> None:
    """32 of them were one batch, which took a tenth of a second."""
    node = make_node(
        share_coordinator_cold_partition_snapshot_interval_ms=5000, share_coordinator_state_topic_num_partitions=1
    )
    topic_id = node.topic("t", 5)
    pieces = [StateBatch(offset, offset, 2 * (offset % 2), 1) for offset in range(2000)]
    for partition in range(5):
        node.state.initialize_state(G, topic_id, partition, 1, 0)
        if partition < 2:
            node.state.write_state(G, topic_id, partition, 1, 0, 0, 0, pieces)
    log = node.state_log(G, topic_id, 0)
    before = log.log_end_offset
    node.clock.advance(5000)
    assert [batch.record_count for _, batch in log.batches(before)] == [1, 1, 3]


@pytest.mark.option("share.coordinator.cold.partition.snapshot.interval.ms")
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_cold_partition_gets_a_snapshot(make_node: Callable[..., Node], is_restarted: bool) -> None:
    node = make_node(share_coordinator_cold_partition_snapshot_interval_ms=5000)
    topic_id = begun(node)
    write(node, topic_id, (0, 3, 2, 1))
    before = types(node.state_log(G, topic_id, 0))
    if is_restarted:
        node.restart()
        node.state.read_summary(G, topic_id, 0)
    node.clock.advance(5000)
    assert types(node.state_log(G, topic_id, 0)) == [*before, SNAPSHOT]
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 3, 2, 1)]
    # When all snapshots are such ones, nothing is written any more.
    if is_restarted:
        node.restart()
        node.state.read_summary(G, topic_id, 0)
    node.clock.advance(50_000)
    assert types(node.state_log(G, topic_id, 0)) == [*before, SNAPSHOT]


def test_partitions_of_the_topic_that_are_offline_are_pruned_later(make_node: Callable[..., Node]) -> None:
    node = make_node(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_state_topic_prune_interval_ms=1000,
        share_coordinator_state_topic_num_partitions=2,
    )
    topic_id = node.topic("t")
    coordinator = node.state.coordinator
    one_in_each_partition(node, topic_id)
    first, second = [node.logs.get(SHARE_GROUP_STATE_TOPIC, number) for number, _ in coordinator._loader.all_loaded()]
    first.fail(OSError(5, "Input/output error"))
    node.clock.advance(1000)
    assert (first.log_start_offset, second.log_start_offset > 0) == (0, True)
    assert node.logs.reopen_offline()
    node.clock.advance(1000)
    assert first.log_start_offset > 0


@pytest.mark.option("share.coordinator.cold.partition.snapshot.interval.ms")
def test_many_cold_partitions_get_their_snapshots_in_slices(
    make_node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is deleted, or initialised again, between two slices gets none."""
    monkeypatch.setattr("kafka_shim.share.coordinator.SNAPSHOTS_PER_BATCH", 1)
    monkeypatch.setattr("kafka_shim.share.coordinator.MOST_AT_ONCE", 2)
    node = make_node(
        share_coordinator_cold_partition_snapshot_interval_ms=5000, share_coordinator_state_topic_num_partitions=1
    )
    topic_id = node.topic("t")
    groups = [f"group-{number}" for number in range(6)]
    for group in groups:
        node.state.initialize_state(group, topic_id, 0, 1, 5)
    log = node.state_log(G, topic_id, 0)

    async def run() -> None:
        node.clock.advance(5000)
        assert log.log_end_offset == len(groups) + 2
        node.state.delete_state(groups[2], topic_id, 0)
        node.state.initialize_state(groups[3], topic_id, 0, 2, 7)
        for _ in range(len(groups)):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert types(log)[len(groups) :] == [SNAPSHOT, SNAPSHOT, -1, SNAPSHOT, SNAPSHOT, SNAPSHOT]
    starts = [node.state.read_summary(group, topic_id, 0)[2] for group in groups]
    assert starts == [5, 5, -1, 7, 5, 5]


@pytest.mark.option("share.coordinator.state.topic.num.partitions", "share.coordinator.state.topic.segment.bytes")
def test_the_topic_is_made_as_kafka_makes_it(make_node: Callable[..., Node]) -> None:
    node = make_node(
        share_coordinator_state_topic_num_partitions=3, share_coordinator_state_topic_segment_bytes=1 << 20
    )
    assert len(node.metadata.image.topics[SHARE_GROUP_STATE_TOPIC].partitions) == 3
    assert node.metadata.topic_config(SHARE_GROUP_STATE_TOPIC).segment_bytes == 1 << 20
    assert node.metadata.topic_config(SHARE_GROUP_STATE_TOPIC).retention_ms == -1


@pytest.mark.option("share.coordinator.state.topic.compression.codec")
def test_batches_have_the_codec(make_node: Callable[..., Node]) -> None:
    node = make_node(share_coordinator_state_topic_compression_codec=1)
    topic_id = begun(node)
    assert {batch.compression for _, batch in node.state_log(G, topic_id, 0).batches()} == {1}


def test_a_deleted_state_and_a_deleted_topic_leave_tombstones(node: Node) -> None:
    topic_id = begun(node)
    node.state.initialize_state("other", topic_id, 1, 1, 5)
    node.state.delete_state(G, topic_id, 0)
    node.state.delete_state(G, topic_id, 0)
    assert types(node.state_log(G, topic_id, 0))[-1] == -1
    assert node.state.read_summary(G, topic_id, 0) == (0, 0, -1, -1)
    log = node.state_log("other", topic_id, 1)
    node.metadata.delete_topic("t")
    assert types(log)[-1] == -1


def test_a_topic_deleted_before_its_state_was_read_leaves_tombstones_too(node: Node) -> None:
    topic_id = begun(node)
    log = node.state_log(G, topic_id, 0)
    number = log.partition
    node.restart()
    node.metadata.delete_topic("t")
    node.clock.advance(1000)
    assert types(node.logs.get(SHARE_GROUP_STATE_TOPIC, number))[-1] == -1


def test_a_topic_deleted_before_a_stop_whose_state_was_never_read_leaves_tombstones_too(node: Node) -> None:
    topic_id = begun(node)
    number = node.state_log(G, topic_id, 0).partition
    kept_id = node.topic("kept")
    node.state.initialize_state(G, kept_id, 0, 1, 7)
    node.restart()
    node.metadata.delete_topic("t")
    node.restart()
    node.clock.advance(1000)
    assert types(node.logs.get(SHARE_GROUP_STATE_TOPIC, number))[-1] == -1
    assert node.state.read_summary(G, kept_id, 0) == (1, 0, 7, 0)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_tombstones_that_a_full_disk_refused_are_written_later(node: Node, is_loaded: bool) -> None:
    topic_id = begun(node)
    number = node.state_log(G, topic_id, 0).partition
    kept_id = node.topic("kept")
    node.state.initialize_state(G, kept_id, 0, 1, 7)
    if not is_loaded:
        node.restart()
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": SHARE_GROUP_STATE_TOPIC})
    node.metadata.delete_topic("t")
    node.clock.advance(TOMBSTONE_RETRY_MS)
    node.faults.disarm()
    log = node.logs.get(SHARE_GROUP_STATE_TOPIC, number)
    assert -1 not in types(log)
    node.clock.advance(TOMBSTONE_RETRY_MS)
    assert types(log).count(-1) == 1
    assert node.state.read_summary(G, kept_id, 0) == (1, 0, 7, 0)
    node.clock.advance(2 * TOMBSTONE_RETRY_MS)
    assert types(log).count(-1) == 1
    assert not node.state.coordinator._scheduler.is_scheduled("tombstones")


def test_refused_tombstones_are_not_forgotten_when_another_topic_is_deleted(node: Node) -> None:
    topic_id = begun(node)
    log = node.state_log(G, topic_id, 0)
    node.topic("other")
    node.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": SHARE_GROUP_STATE_TOPIC})
    node.metadata.delete_topic("t")
    node.faults.disarm()
    node.metadata.delete_topic("other")
    node.clock.advance(2 * TOMBSTONE_RETRY_MS)
    assert types(log).count(-1) == 1


def test_a_failed_append_changes_nothing(node: Node) -> None:
    topic_id = begun(node)
    before = node.state.read_state(G, topic_id, 0, 0)
    node.faults.arm("share.before_append", "error", "NOT_ENOUGH_REPLICAS")
    with pytest.raises(KafkaError) as caught:
        write(node, topic_id, (0, 1, 2, 1))
    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.faults.disarm()
    assert node.state.read_state(G, topic_id, 0, 0) == before


def test_a_record_survives_its_encoding() -> None:
    state = ShareGroupOffset(3, 2, 1, 40, 7, [StateBatch(41, 42, 2, 3)], 1000, 2000)
    for is_update in (False, True):
        found = decode(*ShareRecord((G, b"i" * 16, 4), state, is_update).encode())
        assert found.key == (G, b"i" * 16, 4)
        assert found.is_update is is_update
        assert found.state is not None
        assert found.state.state_batches == state.state_batches
        assert (found.state.start_offset, found.state.delivery_complete_count) == (40, 7)
        assert found.state.state_epoch == (0 if is_update else 2)
    for key, value in ((b"", None), (b"\0\x09", None), (b"\0\0", b"")):
        with pytest.raises(RecordError):
            decode(key, value)


@pytest.mark.parametrize(
    ("so_far", "new", "start", "expected"),
    [
        ([(0, 9, 0, 1)], [(10, 19, 0, 1)], -1, [(0, 19, 0, 1)]),
        ([(0, 9, 0, 1)], [(10, 19, 0, 2)], -1, [(0, 9, 0, 1), (10, 19, 0, 2)]),
        ([(0, 9, 0, 1)], [(0, 9, 2, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 9, 2, 1)], [(0, 9, 0, 1)], -1, [(0, 9, 2, 1)]),
        ([(0, 9, 0, 2)], [(3, 5, 2, 1)], -1, [(0, 9, 0, 2)]),
        ([(0, 9, 0, 2)], [(5, 15, 2, 1)], -1, [(0, 9, 0, 2), (10, 15, 2, 1)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 2)], 4, [(4, 5, 2, 2), (6, 9, 0, 1)]),
        ([(0, 3, 0, 1)], [], 4, []),
        ([(0, 9, 0, 1)], [(5, 2, 2, 2), (7, -1, 2, 1)], -1, [(0, 9, 0, 1)]),
    ],
)
def test_batches_are_combined_as_kafka_combines_them(
    so_far: list[tuple[int, int, int, int]],
    new: list[tuple[int, int, int, int]],
    start: int,
    expected: list[tuple[int, int, int, int]],
) -> None:
    found = combine([StateBatch(*one) for one in so_far], [StateBatch(*one) for one in new], start)
    assert found == [StateBatch(*one) for one in expected]


@pytest.mark.parametrize("level", ["broker", "group"])
@pytest.mark.option(
    "group.share.record.lock.duration.ms",
    "group.share.delivery.count.limit",
    "group.share.partition.max.record.locks",
)
def test_numbers_of_a_share_group(level: str, make_node: Callable[..., Node]) -> None:
    node = make_node(
        group_share_record_lock_duration_ms=20_000,
        group_share_delivery_count_limit=3,
        group_share_partition_max_record_locks=200,
    )
    state = node.state
    assert (state.record_lock_duration_ms(G), state.delivery_count_limit(G)) == (20_000, 3)
    assert state.partition_max_record_locks(G) == 200


@pytest.mark.option(
    "group:share.record.lock.duration.ms",
    "group:share.delivery.count.limit",
    "group:share.partition.max.record.locks",
)
def test_numbers_that_a_share_group_sets_stay_within_the_bounds_of_the_broker(node: Node) -> None:
    for name, value in (
        ("share.record.lock.duration.ms", "50000"),
        ("share.delivery.count.limit", "25"),
        ("share.partition.max.record.locks", "10"),
    ):
        node.set_group_option(G, name, value)
    state = node.state
    assert state.record_lock_duration_ms(G) == 50_000
    assert state.delivery_count_limit(G) == 10
    assert state.partition_max_record_locks(G) == 100


@pytest.mark.option("group:share.isolation.level", "group:share.renew.acknowledge.enable")
def test_choices_of_a_share_group(node: Node) -> None:
    assert (node.state.is_read_committed(G), node.state.may_renew(G)) == (False, True)
    node.set_group_option(G, "share.isolation.level", "read_committed")
    node.set_group_option(G, "share.renew.acknowledge.enable", "FALSE")
    assert (node.state.is_read_committed(G), node.state.may_renew(G)) == (True, False)


@pytest.mark.option(
    "group:share.isolation.level", "group:share.renew.acknowledge.enable", "group:share.auto.offset.reset"
)
def test_blanks_around_an_option_of_a_share_group_do_not_count(node: Node) -> None:
    node.set_group_option(G, "share.isolation.level", " read_committed")
    node.set_group_option(G, "share.renew.acknowledge.enable", "true ")
    assert (node.state.is_read_committed(G), node.state.may_renew(G)) == (True, True)
    for text, expected in ((" earliest", "earliest"), ("by_duration:PT1S ", 1000), (" by_duration:pt2s", 2000)):
        node.set_group_option(G, "share.auto.offset.reset", text)
        assert node.state.auto_offset_reset(G) == expected


@pytest.mark.option("group:share.auto.offset.reset")
def test_where_a_share_group_begins(node: Node) -> None:
    assert node.state.auto_offset_reset(G) == "latest"
    for text, expected in (
        ("earliest", "earliest"),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:PT0.25S", 250),
    ):
        node.set_group_option(G, "share.auto.offset.reset", text)
        assert node.state.auto_offset_reset(G) == expected


@pytest.mark.parametrize("text", ["by_duration:P106751991167301D", "by_duration:PT\u0661S", "by_duration:", "soon"])
def test_a_share_group_with_a_stored_beginning_that_cannot_be_read_begins_at_the_end(
    text: str, node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.set_group_option(G, "share.auto.offset.reset", text)
    assert node.state.auto_offset_reset(G) == "latest"
    assert caplog.text.count("share group g begins at the latest offset, its share.auto.offset.reset: ") == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_a_partition_that_cannot_be_read_is_read_at_a_later_request(
    at_once: bool, node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic_id = begun(node, 7)
    node.crash()

    def broken(shard: object, log: PartitionLog) -> Generator[None, None, None]:
        raise OSError(errno.EIO, "the disk")
        yield

    def code() -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            node.state.read_state(G, topic_id, 0, 0)
        return caught.value.code

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.share.shard_loader._replay", broken)
        if at_once:
            assert [code(), code()] == [ErrorCode.NOT_COORDINATOR] * 2
        else:
            patch.setattr("kafka_shim.share.shard_loader.READ_AT_ONCE_BYTES", 0)
            assert code() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            node.clock.advance(1000)
            assert "cannot read __share_group_state-" in caplog.text
    assert node.state.read_state(G, topic_id, 0, 0) == (1, 7, 0, [])


def test_a_share_group_state_of_an_offline_partition_has_no_coordinator_here(node: Node) -> None:
    topic_id = begun(node, 7)
    node.crash()
    partition = node.state.coordinator.partition_for((G, topic_id, 0))
    node.logs.get(SHARE_GROUP_STATE_TOPIC, partition).fail(OSError(errno.EIO, "the disk"))
    with pytest.raises(KafkaError) as caught:
        node.state.read_state(G, topic_id, 0, 0)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


def test_a_large_partition_is_read_in_steps(make_node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(share_coordinator_state_topic_num_partitions=1)
    topic_id = begun(node)
    for offset in range(20):
        write(node, topic_id, (offset, offset, 2, 1))
    monkeypatch.setattr("kafka_shim.share.shard_loader.READ_AT_ONCE_BYTES", 100)
    monkeypatch.setattr("kafka_shim.share.shard_loader.STEP_RECORDS", 5)
    node.restart()
    with pytest.raises(KafkaError) as caught:
        node.state.read_state(G, topic_id, 0, 0)
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    node.clock.advance(1000)
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 19, 2, 1)]


def test_a_record_that_cannot_be_read_costs_only_itself(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    topic_id = begun(node)
    log = node.state_log(G, topic_id, 0)
    log.append_batch(cext_records.build([(b"\0\x09?", b"?", 1, ())]), now_ms=1)
    write(node, topic_id, (0, 3, 2, 1))
    node.crash()
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 3, 2, 1)]
    assert "record type 9 is unknown" in caplog.text


def test_a_record_that_cannot_be_read_takes_no_other_of_its_batch_with_it(node: Node) -> None:
    topic_id = begun(node)
    write(node, topic_id, (0, 9, 2, 1))
    update = ShareGroupOffset(0, 0, 0, -1, 0, [StateBatch(20, 29, 2, 1)])
    key, value = ShareRecord((G, topic_id, 0), update, is_update=True).encode()
    entries = [(b"\x00\x63" + key[2:], value, 0, ()), (key, b"\x00\x07" + value[2:], 0, ()), (key, value, 0, ())]
    node.state_log(G, topic_id, 0).append_batch(cext_records.build(entries), now_ms=0)
    node.crash()
    assert node.state.read_state(G, topic_id, 0, 0)[3] == [StateBatch(0, 9, 2, 1), StateBatch(20, 29, 2, 1)]


def test_a_change_of_a_state_in_many_pieces_costs_in_proportion_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every acknowledgement comes here, and each is made again at a start: all pieces were sorted for each."""
    looked_at: list[StateBatch] = []

    def order(batch: StateBatch) -> tuple[int, int, int, int]:
        looked_at.append(batch)
        return batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state

    monkeypatch.setattr("kafka_shim.share.state._order", order)
    so_far = [StateBatch(offset, offset, 2, 1) for offset in range(0, 2000, 2)]
    found = combine(so_far, [StateBatch(1001, 1001, 2, 1)], -1)
    assert len(found) == 999
    assert StateBatch(1000, 1002, 2, 1) in found
    assert len(looked_at) < 10


def test_pieces_that_become_equal_are_one_at_once() -> None:
    so_far = [StateBatch(0, 4, 2, 2), StateBatch(5, 9, 0, 1)]
    assert combine(so_far, [StateBatch(5, 9, 2, 2)], -1) == [StateBatch(0, 9, 2, 2)]


def test_stored_pieces_that_are_not_in_order_are_combined() -> None:
    pieces = [StateBatch(20, 29, 2, 1), StateBatch(7, 3, 2, 1), StateBatch(0, 24, 0, 2)]
    record = ShareRecord((G, b"i" * 16, 0), ShareGroupOffset(0, 1, 0, 0, 0, pieces))
    found = decode(*record.encode()).state
    assert found is not None
    assert found.state_batches == [StateBatch(0, 24, 0, 2), StateBatch(25, 29, 2, 1)]


def test_a_load_counts_the_pieces_of_states(make_node: Callable[..., Node]) -> None:
    """A thousand records were one step, whatever their size."""
    node = make_node(share_coordinator_state_topic_num_partitions=1)
    topic_id = begun(node)
    pieces = [StateBatch(offset, offset, 2 * (offset % 2), 1) for offset in range(2000)]
    snapshot = ShareRecord((G, topic_id, 0), ShareGroupOffset(1, 1, 0, 0, 0, pieces))
    log = node.state_log(G, topic_id, 0)
    for _ in range(10):
        log.append_batch(cext_records.build([(*snapshot.encode(), 0, ())]), now_ms=0)
    steps = node.state.coordinator._loader._load(0, log)
    assert 3 <= sum(1 for _ in steps) <= 10
    assert node.state.read_state(G, topic_id, 0, 0)[3] == pieces
