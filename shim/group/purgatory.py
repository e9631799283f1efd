"""The purgatory of JoinGroup and SyncGroup: requests that wait until a rule answers them (DelayedJoin, DelayedSync)."""

from __future__ import annotations

import asyncio

from kafka_shim.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.errors import ErrorCode
    from kafka_shim.outcome import Flushes


class DelayedResponse:
    """One request: rules hold it as a `Token`, its handler awaits it. The first answer counts. When its connection is
    gone nobody awaits it; its member stays in the group until its session ends, as if the answer were on its way."""

    __slots__ = ("_failure", "_future", "outcome")

    def __init__(self, failure: Callable[[ErrorCode], Any]) -> None:
        self._failure = failure
        self._future: asyncio.Future[None] | None = None
        self.outcome: Outcome[Any] | None = None

    def answer(self, response: Any, flushes: Flushes = ()) -> None:
        """The response, given by rules, and what must be flushed before it is sent."""
        if self.outcome is not None:
            return
        self.outcome = Outcome(response, flushes)
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def fail(self, code: ErrorCode) -> None:
        """The response could not be recorded, or the broker stops."""
        self.answer(self._failure(code))

    async def wait(self) -> Outcome[Any]:
        """The outcome, as soon as it is there."""
        if self.outcome is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        assert self.outcome is not None
        return self.outcome
