"""The threads for what would hold the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_shim import workers
from kafka_shim.clock import VirtualClock
from kafka_shim.security.sasl.key_endpoint import KeyEndpoint
from kafka_shim.storage.batch_checks import BatchChecks
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.workers import Workers


def run(test: Callable[[Workers, VirtualClock], Awaitable[None]], most: int = 2) -> None:
    async def main() -> None:
        clock = VirtualClock()
        threads = Workers(clock, "kafka-shim-test", most)
        try:
            await test(threads, clock)
        finally:
            threads.stop()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    wait_until(lambda: not names(), "the threads to end")


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "kafka-shim-test"]


def no_memory(_: object) -> None:
    raise MemoryError


def fail(error: BaseException) -> None:
    raise error


def test_results_and_errors_come_back() -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        assert await threads.begin(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.begin(divmod, 7, 0)
        with pytest.raises(MemoryError):
            await threads.begin(fail, MemoryError())
        assert names() == ["kafka-shim-test"]  # one was enough

    run(test)


def test_there_are_so_many_threads_and_no_more() -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        both = threading.Barrier(2, timeout=PATIENCE_S)
        await asyncio.gather(*[threads.begin(both.wait) for _ in range(6)])
        assert len(names()) == 2

    run(test)


def test_a_virtual_clock_waits_for_them() -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        loop, began, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        work = threads.begin(lambda: (loop.call_soon_threadsafe(began.set), goes_on.wait(PATIENCE_S)))
        moved = asyncio.ensure_future(clock.advance_and_drain(1000))
        await began.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not moved.done()
        goes_on.set()
        await work
        await moved

    run(test)


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        goes_on, done = threading.Event(), []
        busy, unwanted = threads.begin(goes_on.wait, PATIENCE_S), threads.begin(done.append, 1)
        unwanted.cancel()
        goes_on.set()
        assert await busy
        await threads.begin(done.append, 2)
        assert done == [2]
        await clock.advance_and_drain(1000)

    run(test, most=1)


def test_threads_end_with_the_stop_and_with_the_owner() -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        loop, began, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        busy = threads.begin(lambda: (loop.call_soon_threadsafe(began.set), goes_on.wait(PATIENCE_S)))
        waits = threads.begin(int)
        await began.wait()
        threads.stop()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(RuntimeError, match="have ended"):
            threads.begin(int)
        goes_on.set()
        await busy
        forgotten = Workers(clock, "kafka-shim-test", 1)
        await forgotten.begin(int)

    run(test, most=1)


def test_a_loop_that_is_closed_takes_no_result_and_keeps_no_thread() -> None:
    goes_on = threading.Event()
    kept = []

    async def test() -> None:
        threads = Workers(VirtualClock(), "kafka-shim-test", 1)
        kept.append(threads)
        threads.begin(goes_on.wait, PATIENCE_S)

    asyncio.run(test())
    kept.pop().stop()
    goes_on.set()
    wait_until(lambda: not names(), "the thread to end")


@pytest.mark.parametrize("where", ["start", "_bootstrap"], ids=["none made", "ends before it runs"])
def test_work_for_which_there_is_no_thread_is_refused_and_done_by_nobody_later(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread") if where == "start" else MemoryError

    async def test(threads: Workers, clock: VirtualClock) -> None:
        done: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, where, refuse)
            patch.setattr(sys, "unraisablehook", lambda _: None)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                threads.begin(done.append, 1)
        await threads.begin(done.append, 2)
        goes_on = threading.Event()
        busy = threads.begin(goes_on.wait, PATIENCE_S)
        with monkeypatch.context() as patch:  # one thread is there, and does what would be another one's
            patch.setattr(threading.Thread, where, refuse)
            patch.setattr(sys, "unraisablehook", lambda _: None)
            later = threads.begin(done.append, 3)
        goes_on.set()
        await asyncio.gather(busy, later)
        assert done == [2, 3]
        await clock.advance_and_drain(1000)

    run(test)


def test_a_result_comes_as_soon_as_there_is_memory_to_pass_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(threads: Workers, clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        passed, failures = loop.call_soon_threadsafe, [MemoryError(), MemoryError()]

        def pass_on(*given: Any, **how: Any) -> asyncio.Handle:
            is_last = len(failures) == 1
            handle = passed(*given, **how) if is_last or not failures else None
            if failures:
                raise failures.pop()  # the last one as the loop is to be woken
            assert handle is not None
            return handle

        monkeypatch.setattr(workers, "NO_MEMORY_PAUSE_S", 0.001)
        monkeypatch.setattr(loop, "call_soon_threadsafe", pass_on)
        assert await threads.begin(divmod, 7, 2) == (3, 1)
        assert await threads.begin(divmod, 9, 2) == (4, 1)
        assert not failures
        await clock.advance_and_drain(1000)

    run(test, most=1)


def test_keys_and_batches_find_out_that_no_thread_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each held the event loop for ever."""

    async def main() -> None:
        clock = VirtualClock()
        keys, batches = KeyEndpoint("http://127.0.0.1:1/keys", {}, clock), BatchChecks(clock)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "_bootstrap", no_memory)
            patch.setattr(sys, "unraisablehook", lambda _: None)
            with pytest.raises(RuntimeError, match="no memory"):
                await keys.read(lambda document: [])
            assert await batches.begin(b"", "t-0", 12, 0, None) is None  # type: ignore[arg-type]
        with pytest.raises(OSError, match="refused"):
            await keys.read(lambda document: [])

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
