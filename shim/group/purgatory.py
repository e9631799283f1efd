"""The purgatory of JoinGroup and SyncGroup: requests that wait for a response from a rule (DelayedJoin,
DelayedSync).
"""

from __future__ import annotations

import asyncio

from kafka_shim.cext.replies import DelayedBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from kafka_shim.outcome import Outcome


class DelayedResponse(DelayedBase):
    """One delayed request. Rules hold it as a `Token`; its handler returns it, and its connection goes on with `then`.
    Only the first response counts. If the connection is closed nobody reads it, and the member stays in the group until
    its session expires, as if the response were in flight.

    No task waits: all members of a group wait at once, and a task for each costs more than what is decided of it."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Outcome[Any]]:
        """Wait for the result, in a task that serves the request for another reason."""
        waiting = asyncio.get_running_loop().create_future()
        self.then(lambda: None if waiting.done() else waiting.set_result(None))
        yield from waiting
        outcome: Outcome[Any] = self.result()
        return outcome
