from __future__ import annotations

import asyncio
import threading
import time

import pytest

from kafka_shim import clock as clock_module
from kafka_shim.clock import Clock, RealClock, VirtualClock
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.timer_failures import MOST_TOLD
from kafka_shim.waiters import Waiter, deadline_ms


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


def test_tasks_that_sleep_in_a_row_unroll_in_one_advance_and_drain(loop_factory):
    clock = VirtualClock(start_ms=0)
    seen = []

    async def sleeper():
        for _ in range(3):
            await clock.sleep_ms(10)
            seen.append(clock.now_ms())

    async def main():
        task = asyncio.ensure_future(sleeper())
        await clock.advance_and_drain(100)
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
        began_ms, now_ms = time.time_ns() // 1_000_000, clock.now_ms()
        assert began_ms <= now_ms <= time.time_ns() // 1_000_000
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
        await clock.advance_and_drain(99)
        assert not waiting.done()
        await clock.advance_and_drain(1)
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


def test_advancing_waits_for_chains_of_any_length(loop_factory):
    """Eight turns of the loop were given once, and a longer chain went on in the next instant."""
    clock = VirtualClock(start_ms=0)
    seen = []

    async def link(depth):
        if depth:
            return await asyncio.ensure_future(link(depth - 1))
        await asyncio.sleep(0)
        return clock.now_ms()

    async def sleeper():
        for _ in range(2):
            await clock.sleep_ms(10)
            seen.append(await link(20))

    async def main():
        task = asyncio.ensure_future(sleeper())
        await clock.advance_and_drain(100)
        await task

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert seen == [10, 20]


def test_advancing_waits_for_work_in_threads_before_the_next_instant(loop_factory):
    clock = VirtualClock(start_ms=0)
    seen = []

    def hand_off():
        loop = asyncio.get_running_loop()
        begun = clock.now_ms()
        may_work = threading.Event()
        clock.begin_work()

        def work():
            assert may_work.wait(60)
            loop.call_soon_threadsafe(lambda: seen.append((begun, clock.now_ms())))
            clock.end_work()

        thread = threading.Thread(target=work)
        threads.append(thread)
        thread.start()
        # The thread goes on only when the loop has had many turns: hoping for some of them is not enough.
        turns = iter(range(50))

        def turn():
            if next(turns, None) is None:
                may_work.set()
            else:
                loop.call_soon(turn)

        turn()

    threads: list[threading.Thread] = []
    with asyncio.Runner(loop_factory=loop_factory) as runner:

        async def main():
            timer = clock.every(10, hand_off)
            await clock.advance_and_drain(35)
            timer.cancel()

        runner.run(main())
    for thread in threads:
        thread.join()
    assert seen == [(10, 10), (20, 20), (30, 30)]


def test_what_a_thread_gave_the_loop_is_not_missed_if_the_thread_has_ended(loop_factory):
    """The thread's work begins and ends within a timer, before the clock looks."""
    clock = VirtualClock(start_ms=0)
    seen = []

    async def main():
        loop = asyncio.get_running_loop()

        def work():
            loop.call_soon_threadsafe(clock.call_later, 500, lambda: seen.append(clock.now_ms()))
            clock.end_work()

        def hand_off():
            clock.begin_work()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        clock.call_later(1000, hand_off)
        await clock.advance_and_drain(2500)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert seen == [1500]


def test_a_thread_that_pauses_lets_the_clock_go_on_and_ends_at_its_instant(loop_factory):
    clock = VirtualClock(start_ms=0)
    seen = []

    async def main():
        pause = clock.pause()
        clock.begin_work()

        def work():
            for _ in range(3):
                pause.wait(1000)
                seen.append(clock.now_ms())
            clock.end_work()

        thread = threading.Thread(target=work, daemon=True)  # a failure below leaves it waiting
        thread.start()
        await clock.advance_and_drain(2500)
        assert seen == [1000, 2000]
        pause.stop()
        thread.join()
        pause.wait(1000)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert seen == [1000, 2000, 2500]


def test_a_pause_of_the_real_clock_ends_when_it_is_stopped():
    pause = RealClock().pause()
    pause.wait(1)
    thread = threading.Thread(target=pause.wait, args=(1_000_000,))
    thread.start()
    pause.stop()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("clock", [RealClock(), VirtualClock()], ids=["real", "virtual"])
def test_periodic_work_goes_on_after_it_raised(loop_factory, clock):
    runs = []

    def action():
        runs.append(clock.monotonic_ms())
        if len(runs) == 1:
            raise ValueError("once")

    async def main():
        errors = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        timer = clock.every(1, action)
        if isinstance(clock, VirtualClock):
            with pytest.raises(ValueError, match="once"):
                clock.advance(1)
            clock.advance(2)
        else:
            while len(runs) < 3:
                await clock.sleep_ms(1)
            assert str(errors[0]) == "once"
        timer.cancel()
        timer.cancel()
        count = len(runs)
        await clock.sleep_ms(0)
        assert len(runs) == count >= 3

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def test_periodic_work_goes_on_after_memory_ended_when_it_was_started_again(loop_factory):
    """Also when a spare timer found none."""
    clock, waits = RealClock(), RealClock()
    runs, refused = [], []
    patch = pytest.MonkeyPatch()

    def find_no_memory(*arguments):
        refused.append(arguments)
        if len(refused) == 2:
            # Here, not later: on a slow machine the last spare timer fires in the same turn of the loop.
            patch.undo()
        raise MemoryError

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        timer = clock.every(1, lambda: runs.append(1))
        patch.setattr(timer, "_call_later", find_no_memory)
        while len(refused) < 2:
            await waits.sleep_ms(1)
        count = len(runs)
        while len(runs) < count + 3:
            await waits.sleep_ms(1)
        assert None not in timer._timers
        timer.cancel()
        count = len(runs)
        await waits.sleep_ms(10)
        assert len(runs) == count

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(main(), PATIENCE_S))


def test_periodic_work_that_there_was_no_memory_to_begin_never_runs(loop_factory):
    clock, waits = RealClock(), RealClock()
    runs, begun = [], []

    def find_no_memory(delay_ms, *arguments):
        if begun:
            raise MemoryError
        begun.append(clock.__class__.call_later(clock, delay_ms, *arguments))
        return begun[0]

    async def main():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "call_later", find_no_memory, raising=False)
            with pytest.raises(MemoryError):
                clock.every(1, lambda: runs.append(1))
        await waits.sleep_ms(10)
        assert runs == []

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(main(), PATIENCE_S))


def test_what_never_rests_is_named():
    async def main(monkeypatch):
        monkeypatch.setattr(clock_module, "MOST_TURNS", 100)

        async def restless():
            while True:  # noqa: ASYNC110 it is what the clock complains of
                await asyncio.sleep(0)

        task = asyncio.ensure_future(restless())
        with pytest.raises(RuntimeError, match="restless"):
            await VirtualClock().advance_and_drain(1)
        task.cancel()

    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(main(monkeypatch))


def test_a_clock_is_advanced_by_one_at_a_time():
    async def main():
        clock = VirtualClock()
        first = asyncio.ensure_future(clock.advance_and_drain(10))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="being advanced"):
            await clock.advance_and_drain(10)
        await first
        assert clock.monotonic_ms() == 10

    asyncio.run(main())


def test_a_week_of_periodic_work_that_wakes_nobody_costs_no_turn_of_the_loop(loop_factory):
    clock = VirtualClock(start_ms=0)
    runs = []
    turns = []

    async def main():
        loop = asyncio.get_running_loop()

        def turn():
            turns.append(1)
            loop.call_soon(turn)

        timer = clock.every(60_000, lambda: runs.append(1))
        loop.call_soon(turn)
        await clock.advance_and_drain(7 * 86_400_000)
        timer.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert len(runs) == 7 * 24 * 60
    assert len(turns) < len(runs) / 100


def test_an_advance_goes_to_its_end_and_raises_what_the_first_timer_raised_that_failed():
    """What a client waits for meanwhile would last to the end of an advance that was broken off."""

    def fail(what):
        raise ValueError(what)

    async def main():
        clock = VirtualClock()
        runs = []
        for is_drained in (True, False):
            clock.call_later(30, fail, "first")
            failing = clock.every(400, lambda: fail("again"))
            clock.call_later(500, lambda: runs.append(clock.monotonic_ms()))
            with pytest.raises(ValueError, match="first") as caught:
                await clock.advance_and_drain(1000, clients_alive=True) if is_drained else clock.advance(1000)
            failing.cancel()
            notes = caught.value.__notes__
            assert [note.splitlines()[-1] for note in notes] == ["ValueError: again"] * 2
            assert "in fail" in notes[0], "where it was raised"
        assert runs == [500, 1500]
        assert (clock.heard_until_ms(), clock.monotonic_ms()) == (1000, 2000)
        clock.advance(1000)

    asyncio.run(main())


def test_clients_were_heard_no_longer_than_an_advance_that_was_broken_off():
    async def main():
        clock = VirtualClock()
        advance = asyncio.ensure_future(clock.advance_and_drain(1000, clients_alive=True))
        clock.call_later(30, advance.cancel)
        clock.call_later(30, clock.call_later, 0, lambda: None)
        with pytest.raises(asyncio.CancelledError):
            await advance
        assert clock.heard_until_ms() == 30

    asyncio.run(main())


def test_of_many_timers_that_failed_a_few_are_told_and_the_others_counted():
    again = ValueError("again")

    def fail(error):
        raise error

    async def main():
        clock = VirtualClock()
        clock.every(1, lambda: fail(ValueError("anew")))
        with pytest.raises(ValueError, match="anew") as caught:
            clock.advance(1000)
        assert len(caught.value.__notes__) == MOST_TOLD + 1
        assert caught.value.__notes__[-1] == f"{999 - MOST_TOLD} more timers failed later."
        clock._timers.clear()
        clock.call_later(1, fail, again)
        clock.call_later(2, fail, again)
        with pytest.raises(ValueError, match="again") as caught:
            clock.advance(2)
        assert not hasattr(caught.value, "__notes__"), "it is the same"

    asyncio.run(main())


def test_what_failed_in_an_advance_that_was_broken_off_is_not_raised_by_the_next_one():
    async def main():
        clock = VirtualClock()
        advance = asyncio.ensure_future(clock.advance_and_drain(1000))
        clock.call_later(10, int, "no number")
        clock.call_later(30, advance.cancel)
        clock.call_later(30, clock.call_later, 0, lambda: None)
        with pytest.raises(asyncio.CancelledError):
            await advance
        assert clock.monotonic_ms() == 30
        await clock.advance_and_drain(1)
        clock.advance(1)

    asyncio.run(main())


def test_only_an_advance_for_living_clients_says_that_they_were_heard():
    async def main():
        clock = VirtualClock()
        await clock.advance_and_drain(10)
        assert clock.heard_until_ms() < 0
        await clock.advance_and_drain(10, clients_alive=True)
        assert clock.heard_until_ms() == 20
        await clock.advance_and_drain(10)
        assert clock.heard_until_ms() == 20

    asyncio.run(main())
    assert RealClock().heard_until_ms() < 0


def test_a_wait_that_a_client_begins_in_an_advance_lasts_to_its_end_or_an_hour():
    ends = []

    async def main():
        clock = VirtualClock()

        def wait():
            ends.append((clock.monotonic_ms(), deadline_ms(clock, 500)))

        for at_ms in (1, 5_000_000, 9_999_900):
            clock.call_later(at_ms, wait)
        await clock.advance_and_drain(10_000_000, clients_alive=True)
        wait()

    asyncio.run(main())
    assert ends == [(1, 3_600_001), (5_000_000, 8_600_000), (9_999_900, 10_000_400), (10_000_000, 10_000_500)]
    assert deadline_ms(VirtualClock(), 500) == 500
