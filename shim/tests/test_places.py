"""Places for which coroutines wait."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from typing import Any

import pytest

from kafka_shim.places import Places

MOST = 2
PATIENCE_S = 60


def test_they_are_given_in_the_order_in_which_they_are_asked_for() -> None:
    async def run() -> tuple[list[int], int]:
        places, served, inside = Places(MOST), list[int](), [0, 0]

        async def use(number: int) -> None:
            async with places:
                inside[0] += 1
                inside[1] = max(inside)
                served.append(number)
                for _ in range(number % 3):
                    await asyncio.sleep(0)
                inside[0] -= 1

        await asyncio.gather(*(use(number) for number in range(20)))
        return served, inside[1]

    assert asyncio.run(run()) == (list(range(20)), MOST)


def test_one_that_is_cancelled_with_its_place_gives_it_to_the_next() -> None:
    async def run() -> None:
        places = Places(1)
        await places.take()
        cancelled, other = asyncio.create_task(places.take()), asyncio.create_task(places.take())
        await asyncio.sleep(0)
        places.leave()
        cancelled.cancel()
        await asyncio.wait_for(other, PATIENCE_S)
        assert cancelled.cancelled()

    asyncio.run(run())


def test_one_whose_waking_finds_no_memory_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a semaphore of asyncio its place is lost, or all behind it wait for it: nobody was served any more."""

    async def run() -> list[int]:
        loop, places, served = asyncio.get_running_loop(), Places(MOST), list[int]()
        call_soon, failures = loop.call_soon, [MemoryError()]

        def call_soon_but_once(*given: Any, **how: Any) -> asyncio.Handle:
            if failures:
                raise failures.pop()
            return call_soon(*given, **how)

        async def use(number: int) -> None:
            async with places:
                served.append(number)
                await asyncio.sleep(0)

        for _ in range(MOST):
            await places.take()
        lost, gone, *others = [loop.create_task(use(number)) for number in range(4)]
        await asyncio.sleep(0)
        gone.cancel()
        with monkeypatch.context() as patched:
            patched.setattr(loop, "call_soon", call_soon_but_once)
            places.leave()
        assert not failures
        try:
            await asyncio.wait_for(asyncio.gather(*others), PATIENCE_S)
            await asyncio.wait_for(places.take(), PATIENCE_S)
        finally:
            lost._log_destroy_pending = False  # type: ignore[attr-defined]
            asyncio.tasks._unregister_task(lost)
        del lost  # its end gives nobody a place that it never had
        gc.collect()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(use(4), 0.05)
        return served

    assert asyncio.run(run()) == [2, 3]


WITHOUT_MEMORY = """
import asyncio
import _testcapi
from kafka_shim.places import Places

async def main():
    places, served = Places(1), []

    async def fail():
        async with places:
            await asyncio.sleep(0)
            _testcapi.set_nomemory(0, 1)

    async def use(number):
        async with places:
            _testcapi.remove_mem_hooks()
            served.append(number)

    waiting = [asyncio.create_task(each) for each in (fail(), use(1), use(2), use(3))]
    await asyncio.wait(waiting[-1:], timeout=60)
    print(served[-1:])
    for task in waiting:
        task.cancel()
        task._log_destroy_pending = False
        asyncio.tasks._unregister_task(task)

asyncio.run(main())
"""


def test_a_place_is_left_where_memory_has_ended() -> None:
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "[3]\n"), ran.stderr
