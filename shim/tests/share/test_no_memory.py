"""Memory ends between the append of a share partition's state and what follows: what is then served is what the log
says, and no record is lost or locked for ever."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC as TOPIC
from kafka_shim.scheduler import Scheduler
from kafka_shim.share.records import ShareRecord
from kafka_shim.share.shard import ShareStateShard
from kafka_shim.share.state import StateBatch
from kafka_shim.tests.no_memory import no_memory_left, runs_out, runs_out_at
from kafka_shim.tests.share.harness import Node
from kafka_shim.tests.share.share_node import GROUP, ShareNode

# More calls than any request makes behind an append.
MOST_CALLS = 600
# A partition that went offline is opened again after this time.
REOPENED_MS = 1000
RECORDS = 4
LOCK_MS = 30_000


@pytest.fixture
def share_node(tmp_path: Path) -> Iterator[ShareNode]:
    made = ShareNode(tmp_path / "share", share_coordinator_state_topic_num_partitions=1)
    yield made
    made.stop()


def initialize(node: Node, topic_id: bytes, group: str) -> None:
    node.state.initialize_state(group, topic_id, 0, 1, 0)


def write(node: Node, topic_id: bytes, group: str) -> None:
    initialize(node, topic_id, group)
    node.state.write_state(group, topic_id, 0, 1, 0, 3, 0, [StateBatch(3, 4, 2, 1)])


def take_leadership(node: Node, topic_id: bytes, group: str) -> None:
    initialize(node, topic_id, group)
    node.state.read_state(group, topic_id, 0, 7)


def delete(node: Node, topic_id: bytes, group: str) -> None:
    initialize(node, topic_id, group)
    node.state.delete_state(group, topic_id, 0)


def test_records_do_not_stay_locked_if_memory_ended_when_a_lock_did(share_node: ShareNode) -> None:
    """The next lock found no memory for its timer."""
    node = share_node
    for _ in range(2):
        node.produce(2)
        assert node.acquire("m")
        node.clock.advance(10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            node.clock.advance(LOCK_MS)
    assert [(first, last) for first, last, _ in node.acquire("later")] == [(0, 3)]


def served(node: Node, topic_id: bytes, group: str) -> object:
    try:
        return node.state.read_summary(group, topic_id, 0), node.state.read_state(group, topic_id, 0, -1)
    except KafkaError as error:
        return error.code


@pytest.mark.parametrize(("change", "append"), [(initialize, 0), (write, 1), (take_leadership, 1), (delete, 1)])
def test_the_state_that_is_served_is_what_the_log_says(
    make_node: Callable[..., Node], change: Callable[[Node, bytes, str], None], append: int
) -> None:
    node = make_node(share_coordinator_state_topic_num_partitions=1)
    topic_id = node.topic("t")
    node.state.initialize_state("first", topic_id, 0, 1, 0)
    told = []
    for call in range(MOST_CALLS):
        group = f"{change.__name__}-{call}"
        arguments = node, topic_id, group
        is_reached = runs_out(change, *arguments, appends="append_batch", topic=TOPIC, append=append, call=call)
        node.clock.advance(REOPENED_MS)
        node.logs.reopen_offline()
        told.append((group, served(*arguments)))
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1
    node.crash()
    assert told == [(group, served(node, topic_id, group)) for group, _ in told]


def test_a_topic_that_is_deleted_when_memory_ends_loses_its_states_in_the_other_partitions_too(node: Node) -> None:
    topic_id = node.topic("t")
    groups = [f"g{number}" for number in range(8)]
    for group in groups:
        node.state.initialize_state(group, topic_id, 0, 1, 0)
    assert len({node.state.coordinator.partition_for((group, topic_id, 0)) for group in groups}) > 2
    with pytest.MonkeyPatch.context() as patch:
        apply, left = ShareStateShard.apply, [True]

        def apply_all_but_one(*arguments: Any) -> None:
            if left:
                left.clear()
                raise MemoryError
            apply(*arguments)

        patch.setattr(ShareStateShard, "apply", apply_all_but_one)
        node.metadata.delete_topic("t")
    assert not left
    assert [node.state.coordinator._shard_of((group, topic_id, 0))[1].states for group in groups] == [{}] * 8


def test_a_partition_is_read_again_if_memory_ended_while_it_lost_the_states_of_a_deleted_topic(
    make_node: Callable[..., Node],
) -> None:
    node = make_node(share_coordinator_state_topic_num_partitions=1)
    topic_id, kept_id = node.topic("t"), node.topic("kept")
    for one in (topic_id, kept_id):
        node.state.initialize_state("g", one, 0, 1, 7)
    node.restart()
    node.metadata.delete_topic("t")
    with pytest.MonkeyPatch.context() as patch:
        apply = ShareStateShard.apply

        def apply_states(shard: ShareStateShard, record: ShareRecord, offset: int) -> None:
            if record.state is None:
                raise MemoryError
            apply(shard, record, offset)

        patch.setattr(ShareStateShard, "apply", apply_states)
        with pytest.raises(MemoryError):
            node.state.read_summary("g", kept_id, 0)
    assert node.state.read_summary("g", kept_id, 0) == (1, 0, 7, 0)
    assert set(node.state.coordinator._shard_of(("g", kept_id, 0))[1].states) == {("g", kept_id, 0)}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a `__del__` that is such a call
@pytest.mark.parametrize("is_split", [False, True])
def test_records_that_found_no_memory_to_be_acquired_come_again(share_node: ShareNode, is_split: bool) -> None:
    """With `is_split` each of them has a state of its own, and all get their owner before any gets its lock."""
    node = share_node
    for call in range(MOST_CALLS):
        node.produce(RECORDS)
        first = node.logs.get("t", 0).log_end_offset - RECORDS
        if is_split:
            node.acquire("m", RECORDS - 1, strict=True)
            for offset in (first, first + 2):
                node.shares.acknowledge(node.key, "m", [(offset, offset, (2,))])
        is_reached = runs_out_at(call, node.acquire, "m")
        node.clock.advance(LOCK_MS)
        left: list[int] = []
        while got := node.acquire("later"):
            left += [offset for a, b, _ in got for offset in range(a, b + 1)]
        assert sorted(left) == list(range(first, first + RECORDS)), call
        node.shares.acknowledge(node.key, "later", [(offset, offset, (1,)) for offset in left])
        assert node.share.in_flight_count() == 0, call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
@pytest.mark.parametrize("is_release", [False, True])
def test_records_are_neither_lost_nor_locked_for_ever(share_node: ShareNode, is_release: bool) -> None:
    """The first two of four records are accepted, or all are released by the end of their locks."""
    node = share_node
    for call in range(MOST_CALLS):
        node.produce(RECORDS)
        first = node.logs.get("t", 0).log_end_offset - RECORDS
        with contextlib.suppress(KafkaError):
            node.acquire("m")

        def change(first: int = first) -> None:
            if is_release:
                node.clock.advance(60_000)
            else:
                node.shares.acknowledge(node.key, "m", [(first, first + 1, (1,))])

        is_reached = runs_out(change, appends="append_batch", topic=TOPIC, append=0, call=call)
        node.clock.advance(60_000)
        node.logs.reopen_offline()
        _, _, _, stored = node.state.read_state(GROUP, node.topic_id, 0, -1)
        accepted = {
            offset
            for one in stored
            if one.delivery_state == 2
            for offset in range(one.first_offset, one.last_offset + 1)
        }
        left = [offset for a, b, _ in node.acquire("later") for offset in range(a, b + 1)]
        # What was stored as accepted does not come again; all else does.
        assert not accepted.intersection(left), call
        assert {first + 2, first + 3} <= set(left), call
        node.shares.acknowledge(node.key, "later", [(offset, offset, (1,)) for offset in left])
        assert node.share.in_flight_count() == 0, call
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1
