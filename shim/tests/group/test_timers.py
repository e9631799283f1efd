"""Timers of groups: moved, cancelled, and called a few at a time when many are due together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.group.kinds import KINDS
from kafka_shim.group.runtime import RETRY_MS
from kafka_shim.group.timers import CALLS_PER_TURN, MOST_SPARE, Timers
from kafka_shim.line_limit import MAX_LINES
from kafka_shim.scheduler import SLICE_US
from kafka_shim.tests.group.harness import SESSION_MS, Node

Key = tuple[str, str, str]


def run(scenario: Callable[[VirtualClock, Timers, list[Key]], object]) -> None:
    async def inside() -> None:
        clock, called = VirtualClock(), list[Key]()
        outcome = scenario(clock, Timers(clock, called.append), called)
        if asyncio.iscoroutine(outcome):
            await outcome

    asyncio.run(inside())


class CountingClock(VirtualClock):
    """Counts the timers that are started."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def call_later(self, *given: Any) -> Any:
        self.started += 1
        return super().call_later(*given)


def sparing(clock: VirtualClock, called: list[Key]) -> Timers:
    """Timers that go on with timers of the clock, as with that of the machine."""
    timers = Timers(clock, called.append)
    assert timers._most_spare == 0
    timers._most_spare = MOST_SPARE
    return timers


def key(number: int) -> Key:
    return "g", "session", f"m{number}"


def test_a_timer_moved_later_is_called_once_and_then() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        timers.schedule(key(1), 100)
        clock.advance(50)
        timers.schedule(key(1), 100)
        clock.advance(99)
        assert (called, timers.due_in_ms(key(1))) == ([], 1)
        clock.advance(1)
        assert (called, len(timers), timers.due_in_ms(key(1))) == ([key(1)], 0, None)

    run(scenario)


def test_timers_that_are_moved_together_are_moved_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All members of a group are when it gets a generation."""

    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        looks: list[int] = []
        look = VirtualClock.monotonic_ms
        monkeypatch.setattr(VirtualClock, "monotonic_ms", lambda self: looks.append(1) or look(self))
        timers.move([(*key(number), 100, False) for number in range(20)])
        timers.move([(*key(number), 200, False) for number in range(20)])
        assert len(looks) == 2
        clock.advance(200)
        assert called == [key(number) for number in range(20)]

    run(scenario)


def test_a_timer_takes_over_the_clock_s_timer_of_one_that_was_stopped() -> None:
    """A member leaves, and another comes: nothing is taken from the loop, and nothing given to it."""

    async def inside() -> None:
        clock, called = CountingClock(), list[Key]()
        timers = sparing(clock, called)
        timers.schedule(key(1), 100)
        timers.cancel(key(1))
        assert (len(timers), timers.due_in_ms(key(1))) == (0, None)
        clock.advance(30)
        timers.schedule(key(2), 100)
        assert (clock.started, timers.due_in_ms(key(2))) == (1, 100)
        clock.advance(99)
        assert called == []
        clock.advance(1)
        assert called == [key(2)]
        timers.schedule(key(3), 100)
        timers.cancel(key(3))
        before = clock.started
        timers.schedule(key(4), 50)  # before that one
        assert clock.started == before + 1
        clock.advance(50)
        assert called == [key(2), key(4)]
        clock.advance(50)
        timers.schedule(key(5), 100)  # behind it: nobody has taken it over
        assert clock.started > before + 1
        clock.advance(100)
        assert called == [key(2), key(4), key(5)]

    asyncio.run(inside())


def test_few_timers_of_the_clock_outlive_those_that_were_stopped_and_none_the_broker() -> None:
    async def inside() -> None:
        clock, called = CountingClock(), list[Key]()
        timers = sparing(clock, called)
        count = MOST_SPARE + 10
        for number in range(count):
            timers.schedule(key(number), 100)
        for number in range(count):
            timers.cancel(key(number))
        assert clock.started == count
        for number in range(count):
            timers.schedule(key(number), 200)
        assert clock.started == count + 10
        clock.advance(199)
        assert called == []
        clock.advance(1)
        await clock.advance_and_drain(0)  # no more than some in a turn
        assert sorted(called) == sorted(map(key, range(count)))
        timers.schedule(key(1), 100)
        timers.cancel(key(1))
        timers.stop()
        before = clock.started
        timers.schedule(key(1), 200)
        assert clock.started == before + 1

    asyncio.run(inside())


def test_a_timer_moved_earlier_or_only_if_absent() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        timers.schedule(key(1), 100)
        timers.schedule(key(1), 10, only_if_absent=True)
        clock.advance(10)
        assert called == []
        timers.schedule(key(1), 10)
        clock.advance(10)
        assert called == [key(1)]

    run(scenario)


def test_many_that_are_due_together_are_called_some_a_turn() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        count = 3 * CALLS_PER_TURN
        for number in range(count):
            timers.schedule(key(number), 100)
        clock.advance(100)
        assert len(called) == CALLS_PER_TURN
        timers.cancel(key(count - 1))
        timers.schedule(key(count - 2), 50)
        await asyncio.sleep(0)
        assert len(called) == 2 * CALLS_PER_TURN
        await clock.advance_and_drain(0)
        assert called == [key(number) for number in range(count - 2)], "one was cancelled, one moved"
        await clock.advance_and_drain(50)
        assert called[-1] == key(count - 2)
        assert len(timers) == 0

    run(scenario)


def test_a_turn_ends_when_the_calls_have_taken_a_slice() -> None:
    async def inside() -> None:
        clock, called = VirtualClock(), list[Key]()
        took_us = 0

        def call(one: Key) -> None:
            nonlocal took_us
            called.append(one)
            took_us += SLICE_US // 2

        clock.is_virtual = False
        clock.monotonic_us = lambda: took_us  # type: ignore[method-assign]
        timers = Timers(clock, call)
        for number in range(5):
            timers.schedule(key(number), 100)
        clock.advance(100)
        counts = [len(called)]
        while len(called) < 5:
            await asyncio.sleep(0)
            counts.append(len(called))
        assert counts == [2, 4, 5]
        assert called == [key(number) for number in range(5)]

    asyncio.run(inside())


def test_a_turn_looks_at_no_more_than_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand members whose sessions end together would be looked at on each of a hundred turns."""

    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        for number in range(5 * CALLS_PER_TURN):
            timers.schedule(key(number), 100)
        clock.advance(100)
        looked: list[Key] = []
        look = Timers._call_due
        monkeypatch.setattr(Timers, "_call_due", lambda self, one, entry: (looked.append(one), look(self, one, entry)))
        await asyncio.sleep(0)
        assert (len(looked), len(called)) == (CALLS_PER_TURN, 2 * CALLS_PER_TURN)
        await clock.advance_and_drain(0)
        assert called == [key(number) for number in range(5 * CALLS_PER_TURN)]

    run(scenario)


def test_timers_that_are_deferred_start_a_part_at_a_time_and_are_due_as_if_they_had_started() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        timers.schedule(key(0), 1000)
        for number in range(6):
            timers.defer_sessions([(*key(number), 100, False)])
        assert (len(timers), timers.due_in_ms(key(0)), timers.due_in_ms(key(5))) == (6, 100, 100)
        timers.schedule(key(1), 50)
        timers.schedule(key(2), 10, only_if_absent=True)
        timers.cancel(key(3))
        clock.advance(30)
        assert [timers.schedule_deferred(3) for _ in range(3)] == [True, True, False]
        assert [timers.due_in_ms(key(number)) for number in range(6)] == [70, 20, 70, None, 70, 70]
        clock.advance(70)
        assert called == [key(1), key(0), key(2), key(4), key(5)]
        # One that is due before it was moved sees that it is.
        timers.schedule(key(7), 10)
        timers.defer_sessions([(*key(7), 100, False)])
        clock.advance(99)
        assert (called[5:], timers.schedule_deferred(1)) == ([], False)
        clock.advance(1)
        assert called[5:] == [key(7)]
        timers.defer_sessions([(*key(8), 100, False)])
        timers.cancel_those(lambda group_id: group_id == key(8)[0])
        assert timers.schedule_deferred(1) is False
        timers.defer_sessions([(*key(8), 100, False)])
        timers.stop()
        assert (timers.schedule_deferred(1), len(timers)) == (False, 0)

    run(scenario)


def test_stopped_timers_are_not_called() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        for number in range(2 * CALLS_PER_TURN):
            timers.schedule(key(number), 100)
        clock.advance(100)
        timers.stop()
        await clock.advance_and_drain(1000)
        assert len(called) == CALLS_PER_TURN

    run(scenario)


def test_who_is_connected_outlives_an_advance_for_living_clients_and_no_other() -> None:
    async def scenario(clock: VirtualClock, timers: Timers, called: list[Key]) -> None:
        timers.is_alive = lambda key: key[2] == "connected"
        timers.schedule(("g", "session", "connected"), 100)
        timers.schedule(("g", "session", "gone"), 100)
        await clock.advance_and_drain(1000, clients_alive=True)
        assert called == [("g", "session", "gone")]
        # A whole session from then on.
        await clock.advance_and_drain(99)
        assert called == [("g", "session", "gone")]
        await clock.advance_and_drain(1)
        assert called == [("g", "session", "gone"), ("g", "session", "connected")]

    run(scenario)


def test_a_timer_that_fails_does_not_keep_the_others_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    async def inside() -> None:
        clock, called, failed = VirtualClock(), list[Key](), list[Key]()
        count = 3 * CALLS_PER_TURN
        broken = {key(0), key(CALLS_PER_TURN)}

        def call(one: Key) -> None:
            called.append(one)
            if one in broken:
                raise RuntimeError("a bug")

        timers = Timers(clock, call)
        timers.on_error = failed.append
        for number in range(count):
            timers.schedule(key(number), 100)
        clock.advance(100)
        for _ in range(6):
            await asyncio.sleep(0)
        assert called == [key(number) for number in range(count)]
        assert failed == [key(0), key(CALLS_PER_TURN)]

    asyncio.run(inside())
    assert [record.message for record in caplog.records] == ["timer session of group g failed"] * 2


def test_a_timer_of_a_group_that_fails_is_counted_and_tried_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the member would be in its group for ever."""
    counted: list[int] = []
    node.groups.count_errors(lambda: counted.append(1))
    joined = node.member("g")
    node.sync("g", joined, {joined.member_id: b"a"})
    kind = KINDS["classic"]

    def broken(*arguments: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(type(kind), "on_timer", broken)
        node.advance(SESSION_MS + 1)
        assert counted == [1]
        assert node.groups.find("g").state_name == "Stable"
    node.advance(RETRY_MS)
    assert (counted, node.groups.find("g").state_name) == ([1], "Empty")


def test_a_full_disk_does_not_fill_the_log_with_the_sessions_that_end(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        node.modern("g", f"m{number}", subscribed_topic_names=["t"])
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    node.advance(50_000)  # sessions of 45 s
    assert sum("it is tried again" in line for line in caplog.messages) == MAX_LINES
    node.faults.disarm()
    node.advance(2 * RETRY_MS)
    assert node.state("g") == "Empty"
