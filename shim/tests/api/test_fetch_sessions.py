"""The session cache alone: slots, eviction, epochs."""

from __future__ import annotations

from kafka_shim.api.fetch_evictions import EVICTABLE_AFTER_MS
from kafka_shim.api.fetch_sessions import NO_SESSION, CachedPartition, FetchSessionCache
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kafka_shim.randomness import Randomness


def partitions(count: int) -> dict:
    return {("t", index): CachedPartition("t", FetchPartition(partition=index)) for index in range(count)}


def opened(sessions: FetchSessionCache, count: int, now_ms: int = 0) -> int:
    session = sessions.open(partitions(count), False, now_ms)
    assert session is not None
    return session.session_id


def test_a_full_cache_gives_no_session_while_all_are_young():
    sessions = FetchSessionCache(2, Randomness(1))
    assert sessions.open(partitions(1), False, 0) is not None
    assert sessions.open(partitions(1), False, 0) is not None
    assert sessions.open(partitions(9), False, EVICTABLE_AFTER_MS) is None
    assert len(sessions) == 2


def test_a_session_that_nobody_uses_gives_way():
    sessions = FetchSessionCache(1, Randomness(1))
    old = opened(sessions, 5)
    new = opened(sessions, 1, EVICTABLE_AFTER_MS + 1)
    assert new not in (old, NO_SESSION)
    assert (
        sessions.new_context(FetchRequest(session_id=old, session_epoch=1), 12, 0).error.name
        == "FETCH_SESSION_ID_NOT_FOUND"
    )


def test_a_larger_session_takes_the_slot_of_a_smaller_old_one_in_use():
    sessions = FetchSessionCache(1, Randomness(1))
    now_ms = EVICTABLE_AFTER_MS + 1
    old = opened(sessions, 2)
    assert not sessions.new_context(FetchRequest(session_id=old, session_epoch=1), 12, now_ms).error
    assert sessions.open(partitions(2), False, now_ms) is None
    assert sessions.open(partitions(3), False, now_ms) is not None


def test_the_session_that_was_used_least_recently_gives_way():
    """Of two that were used in the same millisecond that of the lesser id."""
    sessions = FetchSessionCache(3, Randomness(1))
    first, *others = [opened(sessions, 1) for _ in range(3)]
    assert not sessions.new_context(FetchRequest(session_id=first, session_epoch=1), 12, 1).error
    opened(sessions, 1, EVICTABLE_AFTER_MS + 2)
    assert set(sessions.sessions) & {first, *others} == {first, max(others)}


def test_of_old_sessions_the_smallest_gives_way_and_of_these_that_of_the_least_id():
    sessions = FetchSessionCache(3, Randomness(1))
    large, *small = [opened(sessions, size) for size in (2, 1, 1)]
    now_ms = EVICTABLE_AFTER_MS + 1
    for session_id in (*small, large):
        assert not sessions.new_context(FetchRequest(session_id=session_id, session_epoch=1), 12, now_ms).error
    opened(sessions, 3, now_ms)
    assert set(sessions.sessions) & {large, *small} == {large, max(small)}


def test_no_slots_means_no_sessions():
    sessions = FetchSessionCache(0, Randomness(1))
    assert sessions.open(partitions(1), False, 0) is None


def test_epochs_count_up_and_wrap_to_one():
    sessions = FetchSessionCache(1, Randomness(1))
    session_id = opened(sessions, 1)
    for epoch in range(1, 4):
        fetch = sessions.new_context(FetchRequest(session_id=session_id, session_epoch=epoch), 12, 0)
        assert fetch.session is not None
        assert fetch.epoch == epoch + 1
    fetch.session.epoch = 2**31 - 1
    fetch = sessions.new_context(FetchRequest(session_id=session_id, session_epoch=2**31 - 1), 12, 0)
    assert fetch.epoch == 1


def test_ids_are_seeded_for_who_wants_the_same_run_again():
    assert opened(FetchSessionCache(1, Randomness(5)), 1) == opened(FetchSessionCache(1, Randomness(5)), 1)
