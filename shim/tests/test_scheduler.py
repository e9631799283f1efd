from __future__ import annotations

import asyncio
import gc

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.scheduler import IDLE_TURN_US, MOST_REST_US, SLICE_US, Rest, Scheduler, Slice
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.turns import Turns


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start_ms=0)


def test_periodic_work_runs_at_each_interval_until_it_is_stopped(clock: VirtualClock):
    scheduler = Scheduler(clock)
    runs = []
    scheduler.every("a", 10, lambda: runs.append(("a", clock.now_ms())))
    scheduler.every("b", 15, lambda: runs.append(("b", clock.now_ms())))
    clock.advance(30)
    assert runs == [("a", 10), ("b", 15), ("a", 20), ("b", 30), ("a", 30)]
    scheduler.stop()
    clock.advance(30)
    assert len(runs) == 5


def test_a_task_takes_the_place_of_what_has_its_name(clock: VirtualClock):
    scheduler = Scheduler(clock)
    runs = []
    scheduler.after("a", 10, runs.append, "first")
    scheduler.after("a", 20, runs.append, "second")
    assert scheduler.is_scheduled("a")
    clock.advance(100)
    assert runs == ["second"]
    assert not scheduler.is_scheduled("a")
    scheduler.every("a", 10, lambda: runs.append("third"))
    scheduler.cancel("a")
    scheduler.cancel("a")
    clock.advance(100)
    assert runs == ["second"]


def test_slices_leave_the_loop_to_others_in_between(clock: VirtualClock, loop_factory):
    scheduler = Scheduler(clock)
    seen = []

    def slices():
        for number in range(3):
            seen.append(number)
            asyncio.get_running_loop().call_soon(seen.append, "another")
            yield

    async def main():
        scheduler.in_slices("work", slices())
        assert seen == [0]
        await clock.advance_and_drain(0)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert seen == [0, "another", 1, "another", 2, "another"]
    assert not scheduler.is_scheduled("work")


def test_slices_with_a_pause_take_that_time_each(clock: VirtualClock):
    scheduler = Scheduler(clock)
    seen = []

    def slices():
        for _ in range(3):
            seen.append(clock.now_ms())
            yield

    scheduler.in_slices("work", slices(), pause_ms=5)
    clock.advance(100)
    assert seen == [0, 5, 10]


def test_slices_go_on_although_there_is_no_memory_for_a_timer(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch):
    scheduler = Scheduler(clock)
    seen = []

    def slices():
        for number in range(5):
            if number == 1:
                monkeypatch.setattr(clock, "call_later", no_memory_left)
            if number == 3:
                monkeypatch.undo()
            seen.append((number, clock.now_ms()))
            yield

    scheduler.in_slices("work", slices(), pause_ms=5)
    clock.advance(100)
    assert seen == [(0, 0), (1, 5), (2, 5), (3, 5), (4, 10)]
    assert not scheduler.is_scheduled("work")


def failing(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("method", ["after", "every"])
def test_what_there_was_no_memory_to_keep_never_runs(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, method: str):
    """A timer that nobody has could not be cancelled, and would take the place of the next one of its name."""

    class NoMemory(dict):
        __setitem__ = failing

    scheduler = Scheduler(clock)
    runs = []
    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "_tasks", NoMemory())
        with pytest.raises(MemoryError):
            getattr(scheduler, method)("a", 10, lambda: runs.append("refused"))
    scheduler.after("a", 20, runs.append, "kept")
    clock.advance(100)
    assert runs == ["kept"]


class _BusyClock(VirtualClock):
    """Its time passes also while something runs."""

    spent_us = 0

    def monotonic_us(self) -> int:
        return super().monotonic_us() + self.spent_us


def test_a_pause_is_as_long_as_a_slow_slice():
    clock = _BusyClock(start_ms=0)
    scheduler = Scheduler(clock)
    seen = []

    def slices():
        for _ in range(3):
            seen.append(clock.now_ms())
            clock.spent_us += 40_000
            yield

    scheduler.in_slices("work", slices(), pause_ms=5)
    clock.advance(100)
    assert seen == [0, 40, 80]


def _rest_us(turns_us: list[int], took_us: int) -> tuple[int, list[int]]:
    """What a rest after such a slice takes of turns that take so long each, and what it waits before each."""
    clock = _BusyClock(start_ms=0)
    rest = Rest(clock, took_us)
    waits_ms = []
    for turn_us in turns_us:
        clock.spent_us += turn_us
        if (wait_ms := rest.wait_ms()) < 0:
            return clock.spent_us, waits_ms
        waits_ms.append(wait_ms)
    raise AssertionError("it is not over")


def test_others_get_as_much_time_as_a_slice_took_if_they_want_it():
    idle_us, used_us = IDLE_TURN_US - 1, IDLE_TURN_US
    assert _rest_us([idle_us], 400) == (idle_us, [])
    assert _rest_us([used_us], used_us) == (used_us, [])
    # After a first turn that was used, also the time in which a client makes its next request.
    assert _rest_us([60, 5, 60, 5, 60], 190) == (190, [0, 0, 0, 0])
    assert _rest_us([60, 2000, 840], 2900) == (2900, [2, 0])
    assert _rest_us([60, MOST_REST_US - 60], 1_000_000) == (MOST_REST_US, [(MOST_REST_US - 60) // 1000])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("scheduler", "srrrsrrrsrrrsrrrsrrrs"), ("turns", "ssrrrssrrrrrrss")],
    ids=["task", "request"],
)
def test_slices_rest_while_others_use_the_loop(loop_factory, kind: str, expected: str):
    """Each step takes 300 us, and somebody's request 100 us of each turn. Of a request, a share that ends is two steps;
    how long the first share took is not measured."""
    clock = _BusyClock(start_ms=0)
    seen = []

    def steps():
        for _ in range(6):
            clock.spent_us += 300
            seen.append("s")
            yield

    def request():
        clock.spent_us += 100
        seen.append("r")
        if len(seen) < 30:
            asyncio.get_running_loop().call_soon(request)

    async def main():
        asyncio.get_running_loop().call_soon(request)
        if kind == "scheduler":
            await Scheduler(clock).finish("work", steps())
        else:
            await Turns(clock).run(steps(), None)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert "".join(seen).rstrip("r") == expected


def test_who_waits_for_slices_is_let_go_when_all_work_stops(clock: VirtualClock):
    scheduler = Scheduler(clock)

    def slices():
        while True:
            yield

    async def main():
        waiting = asyncio.ensure_future(scheduler.finish("work", slices()))
        await asyncio.sleep(0)
        scheduler.stop()
        gc.collect()  # the slices end when nobody holds them
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 60)

    asyncio.run(main())


class SlowClock(VirtualClock):
    """Each look at it takes a time."""

    look_us = 0
    looked = 0

    def monotonic_us(self) -> int:
        self.looked += 1
        return self.looked * self.look_us


@pytest.mark.parametrize(("look_us", "parts"), [(0, 20), (63, 4), (125, 2), (250, 1), (12500, 1)])
def test_a_slice_ends_by_its_time_and_by_its_parts(look_us: int, parts: int):
    assert SLICE_US == 250
    clock = SlowClock()
    clock.look_us = look_us
    part = Slice(clock, 20)
    for _ in range(3):
        assert [part.is_over() for _ in range(parts)] == [False] * (parts - 1) + [True]
        part.begin()
