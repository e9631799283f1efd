"""The outcome of a request: the response, the fsyncs that must finish before it is sent, and the work that follows it.

Coordinators return an outcome to handlers, handlers return it to `dispatch`, and `dispatch` makes a reply of it. A
function that appends returns the pending fsyncs, and its caller passes them on to the response that depends on them. A
timer that appends has no response: it drops the value, and a failed fsync takes the partition offline without an error
for any client.
"""

from __future__ import annotations

import logging

from kafka_shim.cext import replies
from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future as AsyncFuture
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Generic, TypeVar

    from kafka_shim.metrics import Metrics

    # Done when the appended data is on the disk. Carries the OSError of a failed fsync.
    Flush = Future[None]
    Flushes = Sequence[Flush]

    T = TypeVar("T")

    class Outcome(Generic[T]):
        """`flushes` must be done before the response may be sent. `follow_up` runs once the response is passed to the
        transport (with flushes: at once), before any other request is served."""

        response: T
        flushes: Flushes
        follow_up: Callable[[], None] | None

        def __init__(self, response: T, flushes: Flushes = (), follow_up: Callable[[], None] | None = None) -> None: ...

else:  # most requests make one
    Outcome = replies.Outcome

logger = logging.getLogger("kafka_shim.request")

# How often a wait for an fsync looks at it without being told.
LOOK_AGAIN_S = 1.0


def run_follow_up(follow_up: Callable[[], None] | None, metrics: Metrics) -> None:
    """Run the work that follows a response. An error is logged and fails no request."""
    if follow_up is None:
        return
    try:
        follow_up()
    except Exception:
        metrics.errors_unexpected += 1
        logger.exception("the work after a response failed")


def block_on(flushes: Flushes) -> None:
    """As `wait_for`, without an event loop. Blocks, and raises NOT_COORDINATOR."""
    try:
        for flush in flushes:
            flush.result()
    except OSError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the records may not be on the disk: {error}") from error


async def wait_for_one(flush: Flush) -> None:
    """Return when this fsync is done. Raises its OSError. Cancelling the wait does not cancel the fsync."""
    import asyncio

    told = asyncio.wrap_future(flush)
    told.add_done_callback(_seen)
    while not flush.done():  # the thread that did it may find no memory to tell the loop
        await asyncio.wait((told,), timeout=LOOK_AGAIN_S)
    flush.result()


def _seen(told: AsyncFuture[None]) -> None:
    """The loop warns of an error that nobody has taken: it is that of the fsync."""
    if not told.cancelled():
        told.exception()


async def wait_for(flushes: Flushes) -> None:
    """Return when all of these fsyncs are done. Raises NOT_COORDINATOR if one failed: it is then unknown whether the
    data is on the disk, and the partition is offline. Cancelling the wait does not cancel an fsync."""
    try:
        for flush in flushes:
            await wait_for_one(flush)
    except OSError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the records may not be on the disk: {error}") from error
