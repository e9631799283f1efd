"""What a share session remembers between two requests, and what its end does."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Container, Iterator
from pathlib import Path
from types import CoroutineType
from typing import Any

import pytest

from kafka_shim.cext.segment import Walk
from kafka_shim.errors import ErrorCode
from kafka_shim.share import ended_locks, share_partitions
from kafka_shim.share.share_partition import PartitionState, SharePartition
from kafka_shim.share.share_partition_acquire import AcquireLimits, acquire
from kafka_shim.share.share_partitions import MOST_FREED_AT_ONCE, MOST_RELEASED_AT_ONCE
from kafka_shim.share.share_sessions import CachedSharePartition, ShareSession
from kafka_shim.storage.file_records import FileRecords
from kafka_shim.tests.produced import batch
from kafka_shim.tests.share.share_node import GROUP, ShareNode

TOPIC_ID = bytes(15) + b"t"
LOCK_MS = 30_000


def test_a_partition_that_is_added_is_in_the_next_response_once() -> None:
    session = ShareSession(("g", "m"), {}, None)
    one = CachedSharePartition(TOPIC_ID, 0, "t")
    session.update([one], [])
    assert session.must_respond(one.key, 0, ErrorCode.NONE)
    assert not session.must_respond(one.key, 0, ErrorCode.NONE)
    session.update([CachedSharePartition(TOPIC_ID, 0, "t")], [])
    assert not session.must_respond(one.key, 0, ErrorCode.NONE), "it was there"
    assert session.must_respond(one.key, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert session.must_respond(one.key, 0, ErrorCode.NONE), "that the error is over"
    assert session.must_respond(one.key, 10, ErrorCode.NONE)


def test_the_end_of_a_large_session_looks_at_what_is_in_flight_alone_and_frees_the_rest_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ShareNode(tmp_path, share_coordinator_state_topic_num_partitions=1)
    count = 2 * MOST_FREED_AT_ONCE
    topic_id = node.topic("large", count)
    keys = [node.key, *((GROUP, topic_id, number) for number in range(count))]
    for key in keys[1:]:
        node.state.initialize_state(*key, 0, 0)
    shares = [node.shares.get(key, "t" if key == node.key else "large") for key in keys]
    node.produce(2)
    assert node.acquire("m")
    parts = {key[1:]: CachedSharePartition(key[1], key[2], None) for key in keys}
    node.shares.sessions.open((GROUP, "m"), parts, "connection")
    released: list[Any] = []
    release = share_partitions.release_members

    def counted(share: SharePartition, member_ids: Any) -> Any:
        released.append(share.key)
        return release(share, member_ids)

    monkeypatch.setattr(share_partitions, "release_members", counted)

    async def main() -> None:
        node.shares.sessions.connection_closed("connection")
        assert released == [node.key]
        assert all(share.state is PartitionState.FENCED for share in shares)
        assert list(node.shares.loaded()) == []
        shares.clear()
        assert 0 < living() < count
        await node.clock.advance_and_drain(0)
        assert living() == 0

    def living() -> int:
        return sum(isinstance(one, SharePartition) and one.key[1] == topic_id for one in gc.get_objects())

    asyncio.run(main())
    assert node.acquire("later")
    node.stop()


def test_a_share_partition_is_looked_at_once_for_all_members_of_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 members with a record each held the event loop for more than a second."""
    node = ShareNode(tmp_path, share_coordinator_state_topic_num_partitions=1)
    node.shares.get(node.key, "t")
    members = [f"m{number}" for number in range(5)]
    part = CachedSharePartition(node.key[1], node.key[2], "t")
    for member in members:
        node.produce(1)
        assert node.acquire(member)
        node.shares.sessions.open((GROUP, member), {part.key: part}, "connection")
    looked: list[set[str]] = []
    release = share_partitions.release_members

    def counted(share: SharePartition, member_ids: Any) -> Any:
        looked.append(set(member_ids))
        return release(share, member_ids)

    monkeypatch.setattr(share_partitions, "release_members", counted)

    async def main() -> None:
        node.shares.sessions.connection_closed("connection")
        await node.clock.advance_and_drain(0)

    asyncio.run(main())
    assert looked == [{members[0]}, set(members[1:])]
    *_, stored = node.state.read_state(*node.key, 0)
    assert [(one.first_offset, one.last_offset, one.delivery_count) for one in stored] == [(0, 4, 1)]
    node.stop()


class Large:
    """A session of many share partitions, each with a record in flight."""

    def __init__(self, path: Path) -> None:
        self.node = ShareNode(path, share_coordinator_state_topic_num_partitions=1)
        count = 3 * MOST_RELEASED_AT_ONCE
        topic_id = self.node.topic("large", count)
        self.keys = [(GROUP, topic_id, number) for number in range(count)]
        for key in self.keys:
            self.node.state.initialize_state(*key, 0, 0)
            records = bytearray(batch(b"v", timestamp_ms=self.node.clock.now_ms()))
            self.node.logs.get("large", key[2]).append_batch(records, now_ms=self.node.clock.now_ms())
            assert self.acquire(key, "m") == [1]
        parts = {key[1:]: CachedSharePartition(key[1], key[2], None) for key in self.keys}
        self.node.shares.sessions.open((GROUP, "m"), parts, "connection")

    def acquire(self, key: tuple[str, bytes, int], member_id: str) -> list[int]:
        """The delivery counts of what the member gets."""
        share = self.node.shares.get(key, "large")
        if not share.can_acquire():
            return []
        (found,) = share.log.read(share.next_fetch_offset(), 1 << 20, copy_bytes=-1).records
        assert isinstance(found, FileRecords)
        batches = list(Walk(found.segment.fd, found.position, found.position + found.size_bytes))
        got = acquire(share, member_id, batches, 0, AcquireLimits(500, 500, False))
        return [one.delivery_count for one in got]

    def stored(self) -> list[int]:
        """The delivery counts of what is stored as available."""
        states = [self.node.state.read_state(*key, 0) for key in self.keys]
        return [one.delivery_count for *_, batches in states for one in batches]


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Large]:
    made = Large(tmp_path)
    yield made
    made.node.stop()


@pytest.mark.parametrize("is_closed_by_its_member", [True, False])
def test_what_a_large_session_has_in_flight_is_released_in_slices_and_at_once_for_who_uses_it(
    large: Large, is_closed_by_its_member: bool
) -> None:
    node, keys = large.node, large.keys

    async def main() -> None:
        waiting = None
        if is_closed_by_its_member:
            released = node.shares.end_session(GROUP, "m")
            assert isinstance(released, CoroutineType)
            waiting = asyncio.ensure_future(released)
        else:
            node.shares.sessions.connection_closed("connection")
        assert 0 < len(large.stored()) <= MOST_RELEASED_AT_ONCE
        await asyncio.sleep(0)
        assert waiting is None or not waiting.done()
        assert large.acquire(keys[-1], "other") == [2]
        await node.clock.advance_and_drain(0)
        assert large.stored() == [1] * len(keys)
        assert waiting is None or list(await waiting) == []

    asyncio.run(main())
    assert len(list(node.shares.loaded())) == (len(keys) if is_closed_by_its_member else 0)
    assert large.acquire(keys[0], "other") == [2]


def test_what_is_left_of_a_large_session_is_released_in_slices_before_a_stop(large: Large) -> None:
    async def main() -> None:
        large.node.shares.sessions.connection_closed("connection")
        begun = len(large.stored())
        released = asyncio.ensure_future(large.node.shares.release_ended())
        await asyncio.sleep(0)
        assert begun < len(large.stored()) < len(large.keys)
        await large.node.clock.advance_and_drain(0)
        await released
        assert large.stored() == [1] * len(large.keys)

    asyncio.run(main())


def test_a_stop_releases_what_is_left_of_a_large_session(large: Large) -> None:
    async def main() -> None:
        large.node.shares.sessions.connection_closed("connection")
        large.node.shares.stop()

    asyncio.run(main())
    assert large.stored() == [1] * len(large.keys)


def test_a_stop_releases_the_rest_where_memory_ends_for_one(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    release = share_partitions.release_members
    failures = [MemoryError()]

    def fail_once(share: SharePartition, member_ids: Container[str]) -> object:
        if failures:
            raise failures.pop()
        return release(share, member_ids)

    async def main() -> None:
        large.node.shares.sessions.connection_closed("connection")
        monkeypatch.setattr(share_partitions, "release_members", fail_once)
        large.node.shares.stop()

    asyncio.run(main())
    assert large.stored() == [1] * (len(large.keys) - 1)


def test_few_share_partitions_are_released_on_several_turns_if_each_takes_long(large: Large) -> None:
    node = large.node
    some = {key[1:]: CachedSharePartition(key[1], key[2], None) for key in large.keys[:10]}
    node.shares.sessions.open((GROUP, "m"), some, "connection")
    takes_long(node)

    async def main() -> None:
        released = node.shares.end_session(GROUP, "m")
        assert isinstance(released, CoroutineType)
        assert 0 < len(large.stored()) < 5
        waiting = asyncio.ensure_future(released)
        await node.clock.advance_and_drain(0)
        assert list(await waiting) == []
        assert large.stored() == [1] * 10

    asyncio.run(main())


@pytest.mark.parametrize("is_slow", [True, False])
def test_locks_of_many_share_partitions_that_end_at_once_are_released_on_several_turns(
    large: Large, is_slow: bool
) -> None:
    node, keys = large.node, large.keys
    if is_slow:
        takes_long(node)
    node.acquire("m")

    async def main() -> None:
        node.clock.advance(LOCK_MS)
        assert 0 < len(large.stored()) < (5 if is_slow else len(keys) / 2)
        assert large.acquire(keys[0], "other") == [2]
        await node.clock.advance_and_drain(0)
        assert large.stored() == [1] * len(keys)
        assert large.acquire(keys[-1], "other") == [2]
        node.clock.advance(LOCK_MS)
        assert sorted(large.stored())[-2:] == [2, 2], "those that end later are released at once again"

    asyncio.run(main())


def test_of_locks_that_wait_for_their_release_those_of_a_deleted_topic_are_forgotten(large: Large) -> None:
    node = large.node
    node.produce(1)
    node.clock.advance(1)
    assert node.acquire("m")

    async def main() -> None:
        node.clock.advance(LOCK_MS)
        node.metadata.delete_topic("large")
        await node.clock.advance_and_drain(0)
        assert node.acquire("other") == [(0, 0, 2)]

    asyncio.run(main())


def test_an_error_on_one_share_partition_keeps_no_other_locked(
    large: Large, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node, keys = large.node, large.keys
    node.clock.advance(1)
    broken, release = keys[-2], ended_locks.release_expired

    def fails(share: SharePartition, locks: Any, now_ms: int) -> None:
        if share.key == broken:
            raise ValueError("a bug")
        release(share, locks, now_ms)

    monkeypatch.setattr(ended_locks, "release_expired", fails)

    async def main() -> None:
        node.clock.advance(LOCK_MS)
        await node.clock.advance_and_drain(0)

    asyncio.run(main())
    assert large.stored() == [1] * (len(keys) - 1)
    assert [line for line in caplog.messages if f"large-{broken[2]}" in line]
    assert large.acquire(keys[-1], "other") == [2]
    assert large.acquire(broken, "other") == [1], "it is read again, as it is stored"


def takes_long(node: ShareNode) -> None:
    """Each append takes a tenth of a millisecond of the clock."""

    def wait(**facts: object) -> None:
        node.clock._elapsed_ms += 0.1

    node.faults.arm("share.before_append", wait)
