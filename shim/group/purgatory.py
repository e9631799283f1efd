"""The purgatory of JoinGroup and SyncGroup: requests that wait for a response from a rule (DelayedJoin,
DelayedSync).
"""

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
    """One delayed request. Rules hold it as a `Token`; its handler awaits it. Only the first response counts. If its
    connection is closed nobody awaits it, and the member stays in the group until its session expires, as if the
    response were in flight."""

    __slots__ = ("_error", "_failure", "_future", "outcome")

    def __init__(self, failure: Callable[[ErrorCode], Any]) -> None:
        self._failure = failure
        self._future: asyncio.Future[None] | None = None
        self.outcome: Outcome[Any] | None = None
        self._error: Exception | None = None

    def answer(self, response: Any, flushes: Flushes = ()) -> None:
        """Complete the request with a response, and with the fsyncs that must finish before it is sent."""
        if self.complete(response, flushes):
            self.wake()

    def complete(self, response: Any, flushes: Flushes = ()) -> bool:
        """As `answer`, but the handler goes on at `wake`. Returns False if the request is complete already."""
        if self.outcome is not None:
            return False
        self.outcome = Outcome(response, flushes)
        return True

    def wake(self) -> None:
        """Let the handler of a complete request go on."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def fail(self, code: ErrorCode) -> None:
        """Complete the request with an error: the records could not be written, or the broker stops."""
        self.answer(self._failure(code))

    def fail_unexpectedly(self, error: Exception) -> None:
        """Have the handler, which waits, raise an error of this program."""
        if self.outcome is None and self._error is None:
            self._error = error
            self.wake()

    async def wait(self, purgatory: dict[DelayedResponse, str], group_id: str) -> Outcome[Any]:
        """Returns the outcome once the request is completed; until then it is in the purgatory. Raises what
        `fail_unexpectedly` was given."""
        if self.outcome is None and self._error is None:
            purgatory[self] = group_id
            try:
                self._future = asyncio.get_running_loop().create_future()
                await self._future
            finally:
                purgatory.pop(self, None)
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # its traceback has this frame: a cycle
        assert self.outcome is not None
        return self.outcome
