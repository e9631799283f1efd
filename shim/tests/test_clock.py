from __future__ import annotations

import asyncio
import time

import pytest

from kafka_shim.clock import Clock, RealClock, VirtualClock
from kafka_shim.waiters import Waiter


def test_timers_of_a_virtual_clock_fire_in_order_at_their_own_instants(loop_factory):
    clock = VirtualClock(start_ms=1000)
    fired = []
    clock.call_later(30, lambda: fired.append(("c", clock.now_ms())))
    clock.call_later(10, lambda: fired.append(("a", clock.now_ms())))
    clock.call_later(10, lambda: fired.append(("b", clock.now_ms())))
    clock.advance(29)
    assert fired == [("a", 1010), ("b", 1010)]
    clock.advance(1)
    assert fired[2:] == [("c", 1030)]
    assert clock.now_ms() == 1030
    assert clock.monotonic_ms() == 30


def test_a_cancelled_timer_does_not_fire_and_may_be_cancelled_again():
    clock = VirtualClock()
    fired = []
    timer = clock.call_later(5, fired.append, 1)
    timer.cancel()
    timer.cancel()
    clock.advance(100)
    assert fired == []


def test_a_timer_set_by_a_timer_fires_within_the_same_advance():
    clock = VirtualClock(start_ms=0)
    fired = []

    def again():
        fired.append(clock.now_ms())
        if len(fired) < 5:
            clock.call_later(10, again)

    clock.call_later(10, again)
    clock.advance(35)
    assert fired == [10, 20, 30]


def test_the_wall_of_a_virtual_clock_can_be_set_back_without_moving_timers():
    clock = VirtualClock(start_ms=50_000)
    fired = []
    clock.call_later(10, fired.append, 1)
    clock.set_wall(20_000)
    assert clock.now_ms() == 20_000
    assert clock.monotonic_ms() == 0
    clock.advance(10)
    assert fired == [1]
    assert clock.now_ms() == 20_010


def test_tasks_that_sleep_in_a_row_unroll_in_one_advance_and_settle(loop_factory):
    clock = VirtualClock(start_ms=0)
    seen = []

    async def sleeper():
        for _ in range(3):
            await clock.sleep_ms(10)
            seen.append(clock.now_ms())

    async def main():
        task = asyncio.ensure_future(sleeper())
        await clock.advance_and_settle(100)
        await task

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert seen == [10, 20, 30]


@pytest.mark.parametrize("delay_ms", [0, -5])
def test_a_timer_that_is_due_at_once_runs_on_the_next_turn(loop_factory, delay_ms):
    fired = []

    async def main(clock: Clock):
        clock.call_later(delay_ms, fired.append, 1)
        assert fired == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main(VirtualClock()))
        assert fired == [1]


def test_the_real_clock_tells_the_machines_time_and_fires(loop_factory):
    async def main():
        clock = RealClock()
        assert abs(clock.now_ms() - time.time() * 1000) < 1000
        before = clock.monotonic_ms()
        await clock.sleep_ms(5)
        assert clock.monotonic_ms() - before >= 4

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def test_a_waiter_tells_waking_from_time_running_out(loop_factory):
    async def main():
        clock = VirtualClock()
        waiter = Waiter(clock)
        waiting = asyncio.ensure_future(waiter.wait(100))
        await asyncio.sleep(0)
        waiter.wake()
        waiter.wake()
        assert await waiting is True
        waiting = asyncio.ensure_future(waiter.wait(100))
        await clock.advance_and_settle(99)
        assert not waiting.done()
        await clock.advance_and_settle(1)
        assert await waiting is False

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def test_a_waiter_keeps_a_wake_that_came_before_the_wait():
    async def main():
        waiter = Waiter(VirtualClock())
        waiter.wake()
        assert await waiter.wait(1000) is True
        assert await waiter.wait(0) is False

    asyncio.run(main())


def test_a_cancelled_wait_leaves_the_waiter_usable():
    async def main():
        clock = VirtualClock()
        waiter = Waiter(clock)
        waiting = asyncio.ensure_future(waiter.wait(100))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        waiter.wake()
        assert await waiter.wait(100) is True

    asyncio.run(main())
