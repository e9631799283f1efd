"""Which fetch session gives way: as a look at all of them would find, without one for each client that asks."""

from __future__ import annotations

from collections.abc import Iterator, ValuesView
from random import Random

import pytest

from kafka_shim.api.fetch_evictions import EVICTABLE_AFTER_MS, Evictions
from kafka_shim.api.fetch_sessions import CachedPartition, FetchSession, FetchSessionCache
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kafka_shim.randomness import Randomness
from kafka_shim.tests.no_memory import no_memory_left


class Counted(dict[int, FetchSession]):
    """Counts how often all sessions were looked at."""

    looks = 0

    def values(self) -> ValuesView[int, FetchSession]:  # type: ignore[override]
        self.looks += 1
        return super().values()

    def __iter__(self) -> Iterator[int]:
        self.looks += 1
        return super().__iter__()


def partitions(count: int) -> dict:
    return {("t", index): CachedPartition("t", FetchPartition(partition=index)) for index in range(count)}


def full(slots: int, size: int = 4) -> FetchSessionCache:
    cache = FetchSessionCache(slots, Randomness(1))
    cache.sessions = Counted()
    for _ in range(slots):
        assert cache.open(partitions(size), False, 0) is not None
    return cache


def expected(cache: FetchSessionCache, size: int, now_ms: int) -> int | None:
    """The id of the session that gives way."""
    sessions = list(dict.values(cache.sessions))
    oldest = min(sessions, key=lambda one: (one.used_ms, one.session_id))
    if now_ms - oldest.used_ms > EVICTABLE_AFTER_MS:
        return oldest.session_id
    old = [one for one in sessions if now_ms - one.created_ms > EVICTABLE_AFTER_MS]
    smallest = min(old, key=lambda one: (len(one.partitions), one.session_id), default=None)
    return smallest.session_id if smallest is not None and len(smallest.partitions) < size else None


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_one_that_a_look_at_all_of_them_finds(seed: int) -> None:
    random = Random(seed)
    cache = full(16)
    now_ms, evicted, refused = 0, 0, 0
    for _ in range(3000):
        now_ms += random.choice((0, 0, 1, 1000, 5000))
        sessions = list(cache.sessions.values())
        session = random.choice(sessions)
        request = FetchRequest(session_id=session.session_id, session_epoch=session.epoch)
        match random.randrange(8):
            case 0 | 1 | 2 | 3:
                cache.new_context(request, 12, now_ms)
            case 4:
                more = range(random.randrange(9))
                request.topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=each) for each in more])]
                cache.new_context(request, 12, now_ms)
            case 5:
                gone = random.sample([number for _, number in session.partitions], len(session.partitions) // 2)
                request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=gone)]
                cache.new_context(request, 12, now_ms)
            case 6:
                request.session_epoch = -1
                cache.new_context(request, 12, now_ms)
                assert cache.open(partitions(random.randrange(1, 9)), False, now_ms) is not None
            case 7:
                size = random.randrange(1, 9)
                gives_way, before = expected(cache, size, now_ms), set(cache.sessions)
                opened = cache.open(partitions(size), False, now_ms)
                assert (opened is None) == (gives_way is None)
                assert before - set(cache.sessions) == ({gives_way} - {None})
                evicted += opened is not None
                refused += opened is None
        assert len(cache) == 16
    assert min(evicted, refused) > 20


def test_clients_that_ask_in_vain_cost_no_look_at_all_sessions() -> None:
    """Each Fetch of a consumer without a session did: 0.3 ms where a thousand others have one."""
    cache = full(64)
    assert isinstance(cache.sessions, Counted)
    for now_ms in range(0, 3 * EVICTABLE_AFTER_MS, 500):
        for session in cache.sessions.copy().values():
            session.used_ms = now_ms
        before = cache.sessions.looks
        assert cache.open(partitions(4), False, now_ms) is None
        assert cache.sessions.looks - before <= (2 if now_ms == 0 else 0)


def test_sessions_that_give_way_cost_few_looks_at_all_of_them() -> None:
    cache = full(64)
    assert isinstance(cache.sessions, Counted)
    cache.sessions.looks = 0
    for turn in range(1, 65):
        assert cache.open(partitions(4 + turn), False, turn * (EVICTABLE_AFTER_MS + 1)) is not None
    assert cache.sessions.looks <= 2 * 3


def test_a_session_that_finds_no_memory_to_be_noted_gives_way_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = full(2)
    assert cache.open(partitions(4), False, 1) is None
    (first, _) = cache.sessions
    request = FetchRequest(session_id=first, session_epoch=1)
    request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    with monkeypatch.context() as patch:
        patch.setattr(Evictions, "shrunk", no_memory_left)
        assert not cache.new_context(request, 12, EVICTABLE_AFTER_MS + 1).error
    for session in dict.values(cache.sessions):
        session.used_ms = EVICTABLE_AFTER_MS + 1
    assert cache.open(partitions(4), False, EVICTABLE_AFTER_MS + 1) is not None
    assert first not in cache.sessions
