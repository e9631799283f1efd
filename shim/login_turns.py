"""The turns of the loop in which clients that have not authenticated have their requests handled: one request a turn.

A crowd whose requests arrive together would hold up everybody else for as long as all of them take. Each waits for its
turn instead, in the order in which they came. A client that is alone does not wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class LoginTurns:
    """Owned by the registry. Event-loop thread only."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        # Whether a request has been handled in this turn, or others wait.
        self._is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take this turn of the loop. Returns False if another request has it: the caller awaits `next_turn` then."""
        if self._is_taken:
            return False
        self._begin(asyncio.get_running_loop())
        return True

    def next_turn(self) -> asyncio.Future[None]:
        """Return a future that is done in the first turn that nobody before has taken. Cancel it to leave the queue."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._is_taken:
            self._begin(loop)
        self._waiting.append(turn)
        return turn

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(self._next)  # first: a turn that nothing follows would be taken for good
        self._is_taken = True

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if turn.done():  # the client has gone
                continue
            has_next = False
            with suppress(MemoryError):
                asyncio.get_running_loop().call_soon(self._next)
                has_next = True
            with suppress(MemoryError):  # a client that is not told is closed when its time to log in is over
                turn.set_result(None)
            if has_next:
                return
            # Without another turn: nobody would have one any more.
        self._is_taken = False
