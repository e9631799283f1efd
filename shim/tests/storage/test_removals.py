"""Files of deleted segments wait for their delay, whatever their number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.faults import Faults
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.removals import NO_MEMORY_RETRY_MS, REMOVALS_PER_TURN, Removals
from kafka_shim.tests.no_memory import no_memory_left


class Thread(Flusher):
    """A flusher that is asked and does at once."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(Faults(), clock)
        self.has_memory = True

    def run(self, task: Callable[[], None]) -> None:
        if not self.has_memory:
            raise MemoryError
        task()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def thread(clock: VirtualClock) -> Thread:
    return Thread(clock)


@pytest.fixture
def removals(clock: VirtualClock, thread: Thread) -> Removals:
    return Removals(clock, thread)


def test_each_is_removed_when_its_own_delay_has_passed(clock: VirtualClock, removals: Removals) -> None:
    done: list[str] = []
    removals.after(1000, lambda: done.append("first"))
    removals.after(3000, lambda: done.append("slow"))
    clock.advance(600)
    removals.after(1000, lambda: done.append("second"))
    clock.advance(399)
    assert done == []
    clock.advance(1)
    assert done == ["first"]
    clock.advance(599)
    assert done == ["first"]
    clock.advance(1)
    assert done == ["first", "second"]
    clock.advance(1400)
    assert done == ["first", "second", "slow"]
    removals.after(1000, lambda: done.append("again"))
    clock.advance(1000)
    assert done[3:] == ["again"]


def test_very_many_share_a_timer_and_pass_a_part_a_turn(
    clock: VirtualClock, removals: Removals, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[float] = []
    call_later = clock.call_later

    def counted(delay_ms: float, *rest: Any) -> Any:
        timers.append(delay_ms)
        return call_later(delay_ms, *rest)

    monkeypatch.setattr(clock, "call_later", counted)
    done: list[int] = []
    for number in range(3 * REMOVALS_PER_TURN):
        removals.after(60_000, lambda number=number: done.append(number))  # type: ignore[misc]
    assert timers == [60_000]

    async def in_turns() -> list[int]:
        clock.advance(60_000)
        lengths = [len(done)]
        for _ in range(2):
            await asyncio.sleep(0)
            lengths.append(len(done))
        return lengths

    assert asyncio.run(in_turns()) == [REMOVALS_PER_TURN, 2 * REMOVALS_PER_TURN, 3 * REMOVALS_PER_TURN]
    assert done == list(range(3 * REMOVALS_PER_TURN))
    assert timers == [60_000, 0, 0]


def test_without_memory_they_wait_and_none_is_lost(clock: VirtualClock, thread: Thread, removals: Removals) -> None:
    done: list[int] = []
    for number in range(3):
        removals.after(1000, lambda number=number: done.append(number))  # type: ignore[misc]
    thread.has_memory = False
    with pytest.raises(MemoryError):
        clock.advance(1000)
    thread.has_memory = True
    clock.advance(NO_MEMORY_RETRY_MS - 1)
    assert done == []
    clock.advance(1)
    assert done == [0, 1, 2]


@pytest.mark.parametrize("fails_at_first", [True, False])
def test_without_memory_for_their_timer_they_are_removed_later(
    clock: VirtualClock, thread: Thread, removals: Removals, monkeypatch: pytest.MonkeyPatch, fails_at_first: bool
) -> None:
    """There is none when they come, or when the first of them is removed."""

    done: list[int] = []
    if not fails_at_first:
        removals.after(1000, lambda: done.append(0))
        clock.advance(500)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "call_later", no_memory_left)
        if fails_at_first:
            with pytest.raises(MemoryError):
                removals.after(1000, lambda: done.append(0))
        else:
            removals.after(1000, lambda: done.append(1))
            with pytest.raises(MemoryError):
                clock.advance(500)
    clock.advance(10_000)
    known = len(done)
    removals.recover()
    assert done == list(range(known + 1))
    removals.recover()
    assert len(done) == known + 1


def test_a_stop_forgets_them(clock: VirtualClock, removals: Removals) -> None:
    done: list[int] = []
    removals.after(1000, lambda: done.append(1))
    removals.cancel_all()
    clock.advance(2000)
    assert done == []
