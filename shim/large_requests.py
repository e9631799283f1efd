"""Decodes requests with very many entries, and encodes their responses, in a thread: the C code of the codec cannot
stop half-way, but lets other threads work in between (docs/adr/0045-large-requests.md)."""

from __future__ import annotations

import mmap

from kafka_shim.cext.messages import decode_patiently, dismantle, encode_response_frame
from kafka_shim.places import Places
from kafka_shim.workers import Workers

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

    __slots__ = ("_worker", "places")

    def __init__(self, clock: Clock) -> None:
        self._worker = Workers(clock, "kafka-shim-large", 1)
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
        try:
            done = self._worker.begin(function, *args)
        except RuntimeError:  # no thread can be started: the loop waits for it
            return function(*args)
        try:
            return await done  # if the client goes away the thread goes on, and begins no other until it ends
        finally:
            # It keeps an error, whose traceback would keep it and the frame until the next full collection.
            del done

    def stop(self) -> None:
        """End the thread, after what it has begun."""
        self._worker.stop()
