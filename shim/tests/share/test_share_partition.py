"""Cases of a share partition that the model meets too rarely: gaps, full windows, fencing, sizes of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.share import acquisition_locks
from kafka_shim.share.record_state import TERMINAL, TRANSITIONS, RecordState
from kafka_shim.share.share_partition import PartitionState
from kafka_shim.share.share_partition_acknowledge import release_members
from kafka_shim.share.share_sessions import CachedSharePartition
from kafka_shim.share.state import StateBatch
from kafka_shim.tests.share.share_node import GROUP, ShareNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ShareNode]:
    node = ShareNode(tmp_path, share_coordinator_state_topic_num_partitions=1)
    yield node
    node.faults.disarm()
    node.stop()


def test_no_event_follows_a_terminal_state():
    for event, row in TRANSITIONS.items():
        assert not TERMINAL & set(row), event


def test_what_was_acquired_before_a_stored_state_comes_back_after_a_crash(node: ShareNode):
    for _ in range(3):
        node.produce(2)
    assert node.acquire("a", 2) == [(0, 1, 1)]
    assert node.acquire("b", 4, 2) == [(2, 3, 1), (4, 5, 1)]
    assert node.acknowledge("b", (2, 3, [1])) is ErrorCode.NONE
    node.crash()
    assert node.acquire("a") == [(0, 1, 1), (4, 5, 1)]
    assert node.acknowledge("a", (0, 1, [1])) is ErrorCode.NONE
    assert node.share.start_offset == 4


def test_a_released_record_keeps_its_delivery_count_over_a_crash(node: ShareNode):
    node.produce(3)
    node.acquire("a")
    node.acknowledge("a", (0, 0, [2]))
    node.crash()
    assert node.acquire("a") == [(0, 0, 2), (1, 2, 1)]


def test_an_acknowledgement_wakes_who_waits_only_if_it_gives_somebody_a_record(node: ShareNode):
    looks: list[str] = []
    node.set_group_option(GROUP, "share.partition.max.record.locks", "100")
    node.produce(3)
    assert node.acquire("a") == [(0, 2, 1)]
    node.share.readers.add(lambda: looks.append("look"))
    for offset in (1, 0):
        assert node.acknowledge("a", (offset, offset, [1])) is ErrorCode.NONE
    assert looks == [], "nothing came back, and there was room"
    assert node.acknowledge("a", (2, 2, [2])) is ErrorCode.NONE
    assert looks == ["look"]
    assert node.acquire("a") == [(2, 2, 2)]
    for _ in range(21):
        node.produce(5)
    assert node.acquire("a")[-1] == (3, 102, 1)
    assert node.acknowledge("a", (50, 50, [1])) is ErrorCode.NONE
    assert looks == ["look"], "the window is full"
    assert node.acknowledge("a", (2, 3, [1, 1])) is ErrorCode.NONE
    assert looks == ["look"] * 2
    assert node.acquire("b") == [(103, 107, 1)]


def test_a_full_window_gives_what_is_available_in_it_alone(node: ShareNode):
    node.set_group_option(GROUP, "share.partition.max.record.locks", "100")
    for _ in range(30):
        node.produce(5)
    assert node.acquire("a", 95)[-1] == (0, 94, 1)
    assert node.acquire("a", 50) == [(95, 99, 1)]
    assert not node.share.can_acquire(), "a fetch waits"
    assert node.acknowledge("a", (10, 11, [2])) is ErrorCode.NONE
    assert node.acquire("b") == [(10, 11, 2)]
    assert node.acknowledge("a", (0, 9, [1])) is ErrorCode.NONE
    assert node.acquire("b") == [(100, 109, 1)]


def test_of_a_full_window_a_member_gets_nothing_that_was_not_read(node: ShareNode):
    node.set_group_option(GROUP, "share.partition.max.record.locks", "100")
    for _ in range(21):
        node.produce(5)
    assert node.acquire("a") == [(0, 99, 1)]
    assert node.acknowledge("a", (10, 11, [2]), (50, 51, [2])) is ErrorCode.NONE
    assert node.acquire("b", max_bytes=1) == [(10, 11, 2)]
    assert node.acquire("b") == [(50, 51, 2)]


def test_the_start_passes_all_that_was_done_before_a_crash(node: ShareNode):
    for _ in range(2):
        node.produce(5)
    assert node.acquire("a") == [(0, 9, 1)]
    assert node.acknowledge("a", (0, 4, [2]), (5, 9, [1])) is ErrorCode.NONE
    node.crash()
    assert node.acquire("b") == [(0, 4, 2)]
    assert node.acknowledge("b", (0, 4, [1])) is ErrorCode.NONE
    assert (node.share.start_offset, node.share.batches) == (10, [])


def test_nothing_is_acknowledged_that_cannot_be_stored(node: ShareNode):
    node.produce(2)
    node.acquire("a")

    def refuse(**facts: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")

    node.faults.arm("share.before_append", refuse)
    assert node.acknowledge("a", (0, 1, [1])) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.faults.disarm()
    assert node.share.delivery_complete_count == 0
    assert node.acknowledge("a", (0, 1, [1])) is ErrorCode.NONE
    assert node.share.start_offset == 2


def test_an_older_state_epoch_is_fenced_and_read_anew(node: ShareNode):
    node.produce(4)
    node.acquire("a")
    fenced = node.share
    node.state.initialize_state(GROUP, node.topic_id, 0, 5, 2)  # the group's offsets were altered
    assert node.acknowledge("a", (0, 3, [1])) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fenced.state is PartitionState.FENCED
    assert node.acknowledge("a", (0, 3, [1])) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.acquire("a") == [(2, 3, 1)]


def test_each_part_of_a_request_counts_once(node: ShareNode):
    node.produce(4)
    node.acquire("a")
    assert node.acknowledge("a", (0, 1, [1]), (1, 2, [2])) is ErrorCode.INVALID_RECORD_STATE
    assert node.share.batches[0].state_at(0).state is RecordState.ACQUIRED
    assert node.acknowledge("a", (0, 1, [1]), (2, 3, [1])) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ((0, 5, [1]), ErrorCode.INVALID_REQUEST),
        ((9, 9, [1]), ErrorCode.INVALID_REQUEST),
        ((1, 2, [1]), ErrorCode.NONE),
    ],
)
def test_offsets_that_were_never_acquired(node: ShareNode, acks: tuple[int, int, list[int]], code: ErrorCode):
    node.produce(4)
    node.acquire("a")
    assert node.acknowledge("a", acks) is code


def test_records_that_another_has(node: ShareNode):
    node.produce(4)
    node.acquire("a", 2, strict=True)
    node.acquire("b", 2, strict=True)
    assert node.acknowledge("a", (0, 3, [1])) is ErrorCode.INVALID_RECORD_STATE
    assert node.acknowledge("b", (2, 3, [1])) is ErrorCode.NONE
    assert node.acknowledge("b", (2, 3, [1])) is ErrorCode.INVALID_RECORD_STATE


def test_records_that_were_never_stored_cannot_be_acknowledged(node: ShareNode):
    node.produce(1)
    assert node.share.batches == []
    assert node.acknowledge("a", (0, 0, [1])) is ErrorCode.INVALID_RECORD_STATE


def test_a_renewal_may_be_forbidden(node: ShareNode):
    node.set_group_option(GROUP, "share.renew.acknowledge.enable", "false")
    node.produce(1)
    node.acquire("a")
    assert node.acknowledge("a", (0, 0, [4])) is ErrorCode.INVALID_RECORD_STATE


def test_the_end_of_a_lock_counts_though_it_cannot_be_stored(node: ShareNode):
    node.produce(2)
    node.acquire("a")

    def refuse(**facts: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")

    node.faults.arm("share.before_append", refuse)
    node.clock.advance(30_000)
    node.faults.disarm()
    assert node.acquire("b") == [(0, 1, 2)]


def test_the_lock_lasts_as_long_as_the_group_says(node: ShareNode):
    node.set_group_option(GROUP, "share.record.lock.duration.ms", "20000")
    node.produce(1)
    node.acquire("a")
    node.clock.advance(19_999)
    assert node.acquire("b") == []
    node.clock.advance(1)
    assert node.acquire("b") == [(0, 0, 2)]


def test_a_lock_that_began_later_may_end_first(node: ShareNode):
    node.produce(1)
    node.acquire("a")  # for 30 s
    node.set_group_option(GROUP, "share.record.lock.duration.ms", "15000")
    node.produce(1)
    assert node.acquire("a") == [(1, 1, 1)]
    node.clock.advance(14_999)
    assert node.acquire("b") == []
    node.clock.advance(1)
    assert node.acquire("b") == [(1, 1, 2)]
    node.clock.advance(15_000)
    assert node.acquire("c") == [(0, 0, 2), (1, 1, 3)]


@pytest.mark.parametrize(
    ("reset", "offset"),
    [
        ("earliest", 0),
        ("latest", 4),
        ("by_duration:PT10M", 2),
        ("by_duration:PT+1H-50M", 2),
        ("by_duration:P106751991167300D", 0),
        ("by_duration:PT0S", -1),
    ],
)
def test_where_a_group_begins(node: ShareNode, reset: str, offset: int):
    node.state.initialize_state(GROUP, node.topic_id, 0, 9, -1)
    node.set_group_option(GROUP, "share.auto.offset.reset", reset)
    node.produce(2)
    node.clock.advance(3_600_000)
    node.produce(2)
    node.clock.advance(60_000)
    if offset < 0:
        with pytest.raises(KafkaError) as caught:
            _ = node.share
        assert caught.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    else:
        assert node.share.start_offset == offset


def test_compacted_records_are_skipped(node: ShareNode):
    for _ in range(3):
        node.produce(2)
    node.acquire("a")
    node.acknowledge("a", (0, 5, [2]))
    share = node.share
    # The log lost the batches before offset 4 to compaction: the next read begins there.
    from kafka_shim.cext.segment import Walk
    from kafka_shim.share.share_partition_acquire import AcquireLimits, acquire

    segment = share.log.active
    batches = [one for one in Walk(segment.fd, 0, segment.size_bytes) if one.base_offset >= 4]
    got = acquire(share, "b", batches, 0, AcquireLimits(10, 10, False))
    assert [(one.first_offset, one.last_offset, one.delivery_count) for one in got] == [(4, 5, 2)]
    assert share.batches[0].state_at(0).state is RecordState.ARCHIVED
    assert share.delivery_complete_count == 4


def test_ends_of_locks_that_were_renewed_are_forgotten(node: ShareNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(acquisition_locks, "MOST_STALE_LOCKS", 50)
    node.produce(10)
    assert node.acquire("a") == [(0, 9, 1)]
    for _ in range(100):
        assert node.acknowledge("a", (0, 9, [4] * 10)) is ErrorCode.NONE
        node.clock.advance(100)
        assert len(node.share.locks) <= 60
    # The locks are those of the last renewal.
    node.clock.advance(29_000)
    assert node.acquire("b") == []
    node.clock.advance(1_000)
    assert node.acquire("b") == [(0, 9, 2)]


def test_a_stored_state_that_is_none_is_refused_each_time(node: ShareNode):
    node.produce(10)
    node.state.write_state(*node.key, 0, 0, 0, 0, [StateBatch(0, 3, 2, 1), StateBatch(5, 6, 9, 1)])
    for _ in range(2):
        with pytest.raises(KafkaError, match="inconsistent") as caught:
            _ = node.share
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_was_done_before_a_raised_start_is_no_longer_counted(node: ShareNode):
    node.produce(6)
    node.acquire("a")
    assert node.acknowledge("a", (2, 5, [1])) is ErrorCode.NONE
    assert node.share.delivery_complete_count == 4
    node.share.raise_start_offset(4)
    assert (node.share.start_offset, node.share.delivery_complete_count) == (4, 2)


def test_what_was_deleted_is_not_delivered_once_all_before_it_is_done(node: ShareNode):
    """The stored batch begins before the start of the log. As in Kafka, it is delivered from there unless older records
    are still with a member."""
    node.produce(4)
    assert node.acquire("a") == [(0, 3, 1)]
    node.produce(10)
    node.share.log.delete_records_before(8)
    assert node.acquire("b") == []
    node.clock.advance(30_000)
    assert (node.share.start_offset, node.share.batches) == (8, [])
    assert node.acknowledge("a", (10, 11, [1])) is ErrorCode.INVALID_RECORD_STATE
    assert node.acquire("b") == [(8, 13, 1)]


def test_deleted_records_of_a_batch_that_is_delivered_in_parts_hold_up_no_member(node: ShareNode):
    """The stored batch begins before the start of the log, and an older record is still with a member."""
    node.produce(2)
    assert node.acquire("a") == [(0, 1, 1)]
    node.produce(4)
    node.share.log.delete_records_before(4)
    assert node.acquire("b", 1, strict=True) == []  # it has learnt where the log begins
    assert node.acquire("b", 1, strict=True) == [(2, 2, 1)]
    assert node.acquire("b", 1, strict=True) == [(4, 4, 1)]
    assert node.acquire("b", 1, strict=True) == [(5, 5, 1)]
    assert node.acknowledge("b", (4, 5, [1])) is ErrorCode.NONE
    node.clock.advance(30_000)
    assert (node.share.start_offset, node.share.batches) == (6, [])


@pytest.mark.parametrize("by", ["lock", "session"])
def test_of_a_batch_in_which_the_log_begins_now_the_rest_alone_comes_back(node: ShareNode, by: str):
    """A member had all of it when its first records were deleted, and its lock or its share session ends."""
    node.produce(6)
    assert node.acquire("a") == [(0, 5, 1)]
    node.share.log.delete_records_before(3)
    node.share.raise_start_offset(3)
    if by == "lock":
        node.clock.advance(30_000)
    else:
        release_members(node.share, {"a"})
    assert node.acquire("b") == [(3, 5, 2)]
    node.crash()
    assert node.acquire("c") == [(3, 5, 2)], "the delivery to b is in memory alone"
    assert node.acknowledge("c", (3, 5, [1])) is ErrorCode.NONE
    assert (node.share.start_offset, node.share.batches) == (6, [])


def test_a_gap_before_the_start_of_the_log_holds_up_no_member(node: ShareNode):
    """What a member had when the broker was killed is looked for again; by then it was deleted."""
    node.produce(3)
    assert node.acquire("a") == [(0, 2, 1)]
    node.share.log.delete_records_before(1)
    assert node.acknowledge("a", (1, 1, [1])) is ErrorCode.NONE
    node.crash()
    assert node.acquire("b") == []  # it has learnt where the log begins
    assert node.acquire("b") == [(2, 2, 1)]
    node.produce(1)
    assert node.acquire("b") == [(3, 3, 1)]


def test_what_happens_alike_to_offsets_of_a_batch_that_was_split_is_stored_as_one_piece(
    node: ShareNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.produce(1000)
    node.acquire("a", 1000)
    assert node.acknowledge("a", (500, 500, [1])) is ErrorCode.NONE
    stored: list[list[StateBatch]] = []
    write = node.state.write_state

    def seen(*args: Any) -> Any:
        stored.append(list(args[-1]))
        return write(*args)

    monkeypatch.setattr(node.state, "write_state", seen)
    node.acknowledge("a", (100, 102, [1, 1, 3]), (104, 104, [3]))
    node.shares.sessions.open((GROUP, "a"), {node.key[1:]: CachedSharePartition(*node.key[1:], None)}, "connection")
    node.shares.end_session(GROUP, "a")
    assert stored == [
        [StateBatch(100, 101, 2, 1), StateBatch(102, 102, 4, 1), StateBatch(104, 104, 4, 1)],
        [
            StateBatch(0, 99, 0, 1),
            StateBatch(103, 103, 0, 1),
            StateBatch(105, 499, 0, 1),
            StateBatch(501, 999, 0, 1),
        ],
    ]
    node.crash()
    assert [one[:2] for one in node.acquire("b", 1000)] == [(0, 99), (103, 103), (105, 499), (501, 999)]


def test_a_start_offset_before_all_records_is_no_reset(node: ShareNode) -> None:
    node.state.initialize_state(GROUP, node.topic_id, 0, 1, -5)
    node.produce(2)
    assert node.share.start_offset == -5
    assert node.acquire("a") == [], "the log begins later"
    assert node.acquire("a") == [(0, 1, 1)]


class Counting(list[Any]):
    """Counts how often an entry is looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("is_released", [False, True])
def test_single_records_of_a_large_batch_cost_in_proportion_to_them(node: ShareNode, is_released: bool):
    """Each fetch and each acknowledgement looked at the batch from its beginning, several times."""
    node.produce(1000)
    assert node.acquire("a", 1, strict=True) == [(0, 0, 1)]
    states = node.share.batches[0].offset_states = Counting(node.share.batches[0].offset_states)
    for offset in range(1, 500):
        assert node.acquire("a", 1, strict=True) == [(offset, offset, 1)]
        if is_released:
            assert node.acknowledge("a", (offset, offset, [2])) is ErrorCode.NONE
            assert node.acquire("a", 1, strict=True) == [(offset, offset, 2)]
        assert node.acknowledge("a", (offset - 1, offset - 1, [1])) is ErrorCode.NONE
    assert node.share.start_offset == 499
    assert states.looks < 500 * 20


def test_a_record_that_comes_back_is_found_before_what_is_behind_it(node: ShareNode):
    node.produce(10)
    for offset in range(6):
        assert node.acquire("a", 1, strict=True) == [(offset, offset, 1)]
    assert node.acknowledge("a", (4, 4, [2]), (5, 5, [1])) is ErrorCode.NONE
    assert node.share.next_fetch_offset() == 4
    assert node.acknowledge("a", (1, 2, [2])) is ErrorCode.NONE
    assert node.acquire("a", 3, strict=True) == [(1, 2, 2), (4, 4, 2)]
    assert node.acquire("a", 9) == [(6, 9, 1)]
    assert node.acknowledge("a", (0, 0, [1]), (3, 3, [2])) is ErrorCode.NONE
    assert node.acquire("a", 9) == [(3, 3, 2)]
