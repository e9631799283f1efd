"""Threads for what would hold the event loop. An executor of the library waits for ever where a thread finds no memory
to begin, keeps the work for which it could start none, and loses a result that it finds no memory to pass on."""

from __future__ import annotations

import asyncio
import time
from queue import SimpleQueue

from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from kafka_shim.clock import Clock

    Queue = SimpleQueue["_Work | None"]
    Result = TypeVar("Result")

# How long a thread waits that finds no memory to go on.
NO_MEMORY_PAUSE_S = 0.1


class Workers:
    """At most so many threads, each from the first work that needs it to `stop`. The clock is told of their work.
    Event-loop thread only."""

    __slots__ = ("_begun", "_clock", "_given", "_is_stopped", "_most", "_name", "_queue")

    def __init__(self, clock: Clock, name: str, most: int) -> None:
        self._clock = clock
        self._name = name
        self._most = most
        self._queue: Queue = SimpleQueue()
        # How many threads there are, and what they have been given and not passed on.
        self._begun = 0
        self._given: set[_Work] = set()
        self._is_stopped = False

    def begin(self, function: Callable[..., Result], *args: Any) -> asyncio.Future[Result]:
        """Have a thread call `function`. Nobody does if the future is cancelled before a thread has come to it. Raises
        RuntimeError if there is no thread and none can be started, and MemoryError: nobody calls it then."""
        if self._is_stopped:
            raise RuntimeError("the threads have ended")
        loop = asyncio.get_running_loop()
        work = _Work(loop, self._ended, function, args)
        if len(self._given) >= self._begun < self._most:
            self._start_one()
        self._clock.begin_work()
        try:
            self._given.add(work)
            self._queue.put(work)
        except BaseException:
            self._given.discard(work)
            self._clock.end_work()
            raise
        return work.future

    def _ended(self, work: _Work) -> None:
        if work in self._given:  # a thread may have passed it on twice
            self._given.discard(work)
            self._clock.end_work()

    def _start_one(self) -> None:
        try:
            Thread(target=_serve, args=(self._queue,), name=self._name, daemon=True).start()
        except (RuntimeError, MemoryError):
            if not self._begun:
                raise
        else:
            self._begun += 1

    def stop(self) -> None:
        """End the threads, each after what it has begun. What none has begun is cancelled."""
        self._is_stopped = True
        for work in self._given:
            if not work.is_begun and not work.loop.is_closed():
                work.future.cancel()
        self._end_threads()

    def _end_threads(self) -> None:
        while self._begun:
            self._queue.put(None)
            self._begun -= 1

    __del__ = _end_threads


class _Work:
    """One call. The loop's thread makes it and takes its result, the other one does it."""

    __slots__ = ("_args", "_ended", "_error", "_function", "_result", "future", "is_begun", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[_Work], None],
        function: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        self.is_begun = False
        self.loop = loop
        self._ended = ended
        self._function: Callable[..., Any] | None = function
        self._args = args
        self._result: Any = None
        self._error: BaseException | None = None

    def do(self) -> None:
        self.is_begun = True
        function, args = self._function, self._args
        self._function, self._args = None, ()
        try:
            if function is not None and not self.future.done():
                self._result = function(*args)
        except BaseException as error:
            self._error = error
        finally:
            # The traceback of an error has this frame, and would keep what is here until the next full collection.
            del function, args, self

    def pass_on(self) -> None:
        """Have the loop take the result, as often as that needs."""
        while True:
            try:
                self.loop.call_soon_threadsafe(self._take)
            except MemoryError:  # perhaps as the loop was to be woken, which has it then
                time.sleep(NO_MEMORY_PAUSE_S)
            except RuntimeError:  # the loop is closed
                return
            else:
                return

    def _take(self) -> None:
        result, error = self._result, self._error
        self._result = self._error = None
        try:
            if self.future.done():  # nobody waits for it any more, or the thread has passed it on twice
                return
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)
        finally:
            del error
            self._ended(self)


def _serve(queue: Queue) -> None:
    work: _Work | None = None
    while True:
        try:
            if work is None:
                work = queue.get()
                if work is None:
                    return
            if not work.is_begun:
                work.do()
            work.pass_on()
            work = None
        except MemoryError:  # of a call alone: what `do` calls may raise what it likes
            time.sleep(NO_MEMORY_PAUSE_S)
