"""A number of places for which coroutines wait."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class Places:
    """For so many at a time, in the order in which they came: `async with`. Event-loop thread only.

    Memory may end as the next one is woken. That one is lost then, and its place is the next one's: of asyncio's locks
    and semaphores nobody behind it has one any more.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def take(self) -> None:
        """Wait for a place. Whoever has it leaves it."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if not turn.cancelled():  # it had the place already
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place to the next one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                with suppress(MemoryError):
                    turn.set_result(None)
                    return
        self._free += 1
