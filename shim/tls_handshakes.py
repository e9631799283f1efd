"""TLS handshakes in a thread of their own: a signature by RSA takes a millisecond, in which the loop serves others.

One thread takes the steps of all handshakes in the order in which they came, without the GIL while OpenSSL computes.
At most `MOST_UNDELIVERED` results wait for the loop, so that a crowd that shakes hands takes of each turn of the loop
what a few connections take, and has the thread wait for the loop, not the loop for the thread.
"""

from __future__ import annotations

import asyncio
import threading
from itertools import cycle
from queue import SimpleQueue

from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLObject
    from typing import Protocol

    from kafka_shim.clock import Clock

    class Step(Protocol):
        """Whose handshake it is. Its buffers are the thread's from `take_step` until `step_taken` is called."""

        def is_closing(self) -> bool:
            """Whether nobody waits for the handshake any more."""

        def step_taken(self, error: Exception | None) -> None:
            """The step is taken: `do_handshake` returned, or raised this. Called on the loop."""


MOST_UNDELIVERED = 2


class TlsHandshakes:
    """Owned by the server. Event-loop thread only, except for `_run`."""

    __slots__ = ("_clock", "_is_stopped", "_loop", "_rooms", "_steps", "_thread")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._steps: SimpleQueue[tuple[SSLObject, Step] | None] = SimpleQueue()
        # Each step holds one, in turn, until its result is delivered. Not a semaphore: its release needs memory, and
        # where that fails the thread waits for ever, so that no client can begin TLS any more.
        self._rooms = [threading.Lock() for _ in range(MOST_UNDELIVERED)]
        self._thread: Thread | None = None
        self._is_stopped = False

    def take_step(self, tls: SSLObject, step: Step) -> None:
        """Have the thread take a handshake as far as what has arrived allows."""
        if self._thread is None:
            thread = Thread(target=self._run, name="tls-handshakes", daemon=True)
            thread.start()  # RuntimeError where none can be started: the next handshake tries again
            self._thread = thread
        self._clock.begin_work()
        self._steps.put((tls, step))

    def stop(self) -> None:
        """End the thread. Handshakes that it has not begun are left out."""
        self._is_stopped = True
        self._steps.put(None)
        for room in self._rooms:
            _leave(room)

    def _run(self) -> None:
        rooms = cycle(self._rooms)
        while (taken := self._steps.get()) is not None:
            tls, step = taken
            room = next(rooms)
            room.acquire()
            if self._is_stopped:
                _leave(room)
            else:
                self._take(tls, step, room)
            del taken, tls, step  # else the thread keeps the last connection until the next
            self._clock.end_work()

    def _take(self, tls: SSLObject, step: Step, room: threading.Lock) -> None:
        error: Exception | None = None
        try:
            if not step.is_closing():
                tls.do_handshake()
        except Exception as err:  # what OpenSSL refuses, that it waits for the client, or that memory is short
            error = err.with_traceback(None)  # whose frame has the error: a cycle
        try:
            self._loop.call_soon_threadsafe(self._deliver, step, error, room)
        except (RuntimeError, MemoryError):
            # The loop is closed, or there is no memory to tell it: the client has no answer then, and is closed when
            # its time to log in is over.
            _leave(room)

    def _deliver(self, step: Step, error: Exception | None, room: threading.Lock) -> None:
        _leave(room)
        step.step_taken(error)


def _leave(room: threading.Lock) -> None:
    try:  # noqa: SIM105 `suppress` needs memory
        room.release()
    except RuntimeError:  # a stop has let the thread in
        pass
