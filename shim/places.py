"""A number of places for which coroutines wait."""

from __future__ import annotations

import asyncio
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class _Turn(asyncio.Future[None]):
    """One that waits, or has waited, for a place."""

    is_wanted: bool
    has_place: bool


class _Done:
    """Nothing is awaited."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_DONE = _Done()


class Places:
    """For so many at a time, in the order in which they came: `async with`. Event-loop thread only.

    Memory may end as the next one is woken. That one is lost then, and its place is the next one's: of asyncio's locks
    and semaphores nobody behind it has one any more. To leave needs no memory: who does may have found none.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[_Turn] = deque()

    async def __aenter__(self) -> None:
        await self.take()

    def __aexit__(self, kind: object, error: object, trace: object) -> Any:
        self.leave()  # not in a coroutine, which needs memory
        return _DONE

    async def take(self) -> None:
        """Wait for a place. Whoever has it leaves it."""
        if self._free:
            self._free -= 1
            return
        turn = _Turn(loop=asyncio.get_running_loop())
        turn.is_wanted, turn.has_place = True, False
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            turn.is_wanted = False
            if turn.has_place:  # of one who was lost it is another one's
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place to the next one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if turn.is_wanted and not turn.done():
                turn.has_place = True
                try:
                    turn.set_result(None)
                except MemoryError:
                    turn.has_place = False
                else:
                    return
        self._free += 1
