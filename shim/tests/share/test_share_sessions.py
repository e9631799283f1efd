"""What a share session remembers between two requests, and what its end does."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.share import share_partitions
from kafka_shim.share.share_partition import PartitionState, SharePartition
from kafka_shim.share.share_partitions import MOST_FREED_AT_ONCE
from kafka_shim.share.share_sessions import CachedSharePartition, ShareSession
from kafka_shim.tests.share.share_node import GROUP, ShareNode

TOPIC_ID = bytes(15) + b"t"


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
    release = share_partitions.release_member

    def counted(share: SharePartition, member_id: str) -> Any:
        released.append(share.key)
        return release(share, member_id)

    monkeypatch.setattr(share_partitions, "release_member", counted)

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
