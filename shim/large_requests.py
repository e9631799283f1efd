"""Decodes requests with very many entries, and encodes their responses, in a thread: the C code of the codec cannot
stop half-way, but lets other threads work in between (docs/adr/0045-large-requests.md)."""

from __future__ import annotations

import asyncio
import mmap

from kafka_shim.cext.messages import decode_patiently, dismantle, encode_response_frame
from kafka_shim.places import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.clock import Clock


# Requests whose objects are held at a time: each may hold sixteen times its bytes.
MOST_AT_A_TIME = 4


def copied(frame: memoryview) -> memoryview:
    """Returns a copy that outlives the receive buffer. It is mapped, because 10 MB that are free again on the heap stay
    with the process."""
    copy = memoryview(mmap.mmap(-1, len(frame)))
    copy[:] = frame
    return copy


class LargeRequests:
    """Those of one broker: one is decoded or encoded at a time. `places` are for those that end without waiting for
    other clients. Event-loop thread only."""

    __slots__ = ("_clock", "_thread", "places")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread = Places(1)
        self.places = Places(MOST_AT_A_TIME)

    async def decode(self, cls: type[Any], version: int, frame: memoryview, start: int) -> Any:
        """Returns the request. Raises the errors of `decode_request`."""
        return await self._in_thread(decode_patiently, cls, version, frame, start)

    async def encode(self, correlation_id: int, response: Any, version: int) -> list[Any]:
        """Returns the parts of the frame. Nobody may change the response meanwhile."""
        parts: list[Any] = await self._in_thread(encode_response_frame, correlation_id, response, version, True)
        return parts

    async def dismantle(self, *messages: Any) -> None:
        """Free what the messages hold. Nobody uses them any more."""
        for message in messages:
            await self._in_thread(dismantle, message)

    async def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        claim = [function]
        await self._thread.take()
        self._clock.begin_work()
        try:
            work = asyncio.get_running_loop().run_in_executor(None, _claimed, claim, args)
        except BaseException as error:
            self._clock.end_work()
            self._thread.leave()
            if not isinstance(error, RuntimeError) or not claim:
                raise
            return _claimed(claim, args)  # no thread can be started: the loop waits for it
        try:
            return await asyncio.shield(work)
        finally:
            if work.done():
                self._end(work)
            else:
                work.add_done_callback(self._end)  # the client is gone, but its thread goes on
            # It keeps an error, whose traceback would keep it and the frame until the next full collection.
            del work

    def _end(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # of a client that is gone nobody else asks for it
        self._clock.end_work()
        self._thread.leave()


def _claimed(claim: list[Callable[..., Any]], args: tuple[Any, ...]) -> Any:
    """Call the function that only one takes: the executor keeps work for which it could start no thread."""
    return claim.pop()(*args) if claim else None
