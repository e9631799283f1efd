"""What a share session remembers between two requests."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.share.share_sessions import CachedSharePartition, ShareSession

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
