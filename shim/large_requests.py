"""Decodes requests with very many entries, and encodes their responses, in a thread: the C code of the codec cannot
stop half-way, but lets other threads work in between (docs/adr/0045-large-requests.md)."""

from __future__ import annotations

import asyncio
import mmap
import time

from kafka_shim.cext.messages import decode_patiently, dismantle, encode_response_frame
from kafka_shim.places import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.clock import Clock

    Passed = list[Any]
    Claim = tuple[Callable[..., Any], tuple[Any, ...], asyncio.Future[Any], Passed]

# Requests whose objects are held at a time: each may hold sixteen times its bytes.
MOST_AT_A_TIME = 4
# How long a thread waits that finds no memory to pass its result on.
NO_MEMORY_PAUSE_S = 0.1


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
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        # What is to be done, which only one takes; the result and the error, which are taken once.
        claim: list[Claim] = [(function, args, done, [None, None])]
        await self._thread.take()
        self._clock.begin_work()
        try:
            loop.run_in_executor(None, self._work, loop, claim)
        except BaseException as error:
            try:
                claim.pop()  # the executor keeps the work: nobody does it, or ends it once more
            except IndexError:  # a thread has it, and ends it
                raise error from None
            self._end()
            if not isinstance(error, RuntimeError):
                raise
            return function(*args)  # no thread can be started: the loop waits for it
        try:
            return await done  # if the client goes away the thread goes on, and has its place until it ends
        finally:
            # It keeps an error, whose traceback would keep it and the frame until the next full collection.
            del done

    def _work(self, loop: asyncio.AbstractEventLoop, claim: list[Claim]) -> None:
        """The thread's part. The result is passed on by this, not by the executor, which does not try again where that
        finds no memory: no large request would be served any more."""
        try:
            function, args, done, passed = claim.pop()  # the executor keeps work for which it could start no thread
        except IndexError:
            return
        try:
            passed[0] = function(*args)
        except BaseException as error:
            passed[1] = error
        try:
            while True:
                try:
                    loop.call_soon_threadsafe(self._take, done, passed)
                except MemoryError:  # perhaps as the loop was to be woken, which has it then
                    time.sleep(NO_MEMORY_PAUSE_S)
                except RuntimeError:  # the loop is closed
                    break
                else:
                    break
        finally:
            # The traceback of an error has this frame, and `done` the error: what is here, or in what the executor
            # holds, would stay until the next full collection.
            del passed, done, args

    def _take(self, done: asyncio.Future[Any], passed: Passed) -> None:
        if not passed:
            return  # the thread has passed it on twice
        result, error = passed
        passed.clear()
        try:
            if done.done():  # the client is gone
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)
        finally:
            self._end()

    def _end(self) -> None:
        self._thread.leave()
        self._clock.end_work()
