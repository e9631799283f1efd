"""The turns of the loop in which clients that have not authenticated have their requests handled: one request a turn.

A crowd whose requests arrive together would hold up everybody else for as long as all of them take. Each waits for its
turn instead, in the order in which they came. A client that is alone does not wait.
"""

from __future__ import annotations

import asyncio
from collections import deque


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
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._next)
        return True

    def next_turn(self) -> asyncio.Future[None]:
        """Return a future that is done in the first turn that nobody before has taken. Cancel it to leave the queue."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._next)
        return turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else the client has gone
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False
