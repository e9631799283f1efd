"""The outcome of a request: the response, the fsyncs that its answer waits for, and what follows the answer.

Coordinators return it, handlers return it, `dispatch` makes a reply of it. Whoever appends
gets what must be flushed as a return value and passes it on to the answer that depends on it. A timer that appends has
no answer: it drops the value, and a failed fsync takes the partition offline without an error for anybody else.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Generic, TypeVar

    # Done when what was appended is on the disk; carries the OSError of a failed fsync.
    Flush = Future[None]
    Flushes = Sequence[Flush]

    T = TypeVar("T")

else:  # importing typing costs start-up time
    T = None

    class Generic:
        def __class_getitem__(cls, parameter):
            return cls


class Outcome(Generic[T]):
    """`flushes` must be done before the response may be sent. `follow_up` runs when the response is on its way (or,
    with flushes, at once), before any other request is served."""

    __slots__ = ("flushes", "follow_up", "response")

    def __init__(self, response: T, flushes: Flushes = (), follow_up: Callable[[], None] | None = None) -> None:
        self.response = response
        self.flushes = flushes
        self.follow_up = follow_up


async def wait_for(flushes: Flushes) -> None:
    """Returns when all of these fsyncs are done. Raises NOT_COORDINATOR when one failed: whether what the answer would
    tell is on the disk is not known, and the partition is offline. A cancelled wait cancels no fsync."""
    import asyncio

    try:
        for flush in flushes:
            await asyncio.shield(asyncio.wrap_future(flush))
    except OSError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"cannot be flushed: {error}") from error
