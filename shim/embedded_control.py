"""What a test moves of an embedded broker: its clock, and its fault points."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import wraps
from inspect import isbuiltin
from weakref import WeakSet

from kafka_shim.clock import VirtualClock
from kafka_shim.durations import UNITS_MS
from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from kafka_shim.clock import Clock
    from kafka_shim.embedded import Broker
    from kafka_shim.server import Server

    Given = ParamSpec("Given")
    Outcome = TypeVar("Outcome")

CALL_SECONDS = 30.0
OF_PARENT = "this broker runs in the process from which this one was forked: call this there, or start a Broker here"
OWN_THREAD = "the broker's own thread cannot wait for itself: call this on another one"
LAST_STANDARD = 2  # the descriptor of stderr
# How long a fork waits for log lines of a broker's thread that are being written.
LOG_SECONDS = 1.0
# Who writes to stderr beside the log holds its lock, which logging replaces in a forked child.
STDERR = logging.Handler()


class _Forking(threading.local):
    """The locks that a thread holds which forks."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_forking = _Forking()
# A thread that a forked child does not have may hold the lock of one.
_brokers: WeakSet[Broker] = WeakSet()
# In a forked child: the loops of its parent's brokers. Nobody runs them here.
_inherited: list[asyncio.AbstractEventLoop] = []


class ClockControl:
    """The clock of an embedded broker, for tests."""

    __slots__ = ("_broker", "_clock")

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock

    def now_ms(self) -> int:
        """Returns the broker's current time in milliseconds since the Unix epoch."""
        return self._clock.now_ms()

    def advance(self, duration: float | str, *, silent: bool = False) -> None:
        """Advance a virtual clock by milliseconds or by "61s", "5m", "2h", "7d", "250ms". Due work runs first, in
        order, including the work of threads.

        Clients use the machine's time and can send nothing during the advance. Connected clients count as alive: their
        connections stay open and their group members stay members, as with heartbeats. With `silent` they count as
        silent: sessions expire and idle connections are closed. A stopped broker is told of the time at its next start.
        Raises TypeError for a clock that is not virtual, ValueError for a duration that is negative or has no end.
        """
        if not isinstance(self._clock, VirtualClock):
            raise TypeError("only a virtual clock can be moved: Broker(clock='virtual')")
        clock, delay_ms = self._clock, milliseconds(duration)
        if delay_ms < 0:
            raise ValueError(f"{duration!r} is negative: a clock cannot go back")
        if not math.isfinite(delay_ms):
            raise ValueError(f"{duration!r} has no end: the clock would never be there")
        loop = self._broker._loop
        if loop is None:  # it is stopped, and has no timers
            clock.advance(delay_ms)
            return
        call_on(loop, lambda: clock.advance_and_drain(delay_ms, clients_alive=not silent), moves=clock.monotonic_ms)


def call_on(
    loop: asyncio.AbstractEventLoop,
    function: Callable[..., Any],
    *arguments: Any,
    moves: Callable[[], object] = lambda: None,
) -> Any:
    """Run `function(*arguments)` on the thread of `loop`. Returns or raises what it returns or raises. A coroutine is
    awaited there. Raises TimeoutError if the thread is held up for 30 s in which `moves` returns the same, RuntimeError
    if the broker is stopped meanwhile, in a process that was forked from the broker's, and for a coroutine if it is the
    thread of the caller, as of a function that a fault point calls: it cannot wait for itself."""
    if loop in _inherited:
        raise RuntimeError(OF_PARENT)
    if _is_of_caller(loop):
        outcome = function(*arguments)
        if asyncio.iscoroutine(outcome):
            outcome.close()
            raise RuntimeError(OWN_THREAD)
        return outcome

    async def run() -> Any:
        outcome = function(*arguments)
        return await outcome if asyncio.iscoroutine(outcome) else outcome

    coroutine: Coroutine[Any, Any, Any] = run()
    seen = moves()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        while True:
            try:
                return future.result(CALL_SECONDS)
            except CancelledError:
                raise RuntimeError("the broker was stopped meanwhile") from None
            except TimeoutError as error:
                if future.done():
                    raise  # its own
                before, seen = seen, moves()
                if seen == before:
                    raise TimeoutError(f"the broker's thread did not answer within {CALL_SECONDS:g} s") from error
    finally:
        future.cancel()  # what nobody waits for any more, as after Ctrl-C, does not go on


def _is_of_caller(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the caller runs on the thread of `loop`."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class _BrokerThread(Thread):
    """A thread whose end can be waited for once more after Ctrl-C: before 3.13 Python takes one that runs for one that
    has ended as soon as a `join` is interrupted, and does not wait for one that Ctrl-C has interrupted the start of."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._over = threading.Event()
        self._over.set()
        self._pid = os.getpid()
        self._turn = threading.Lock()  # whoever takes it decides: `run`, or a `start` that has failed

    def start(self) -> None:
        self._over.clear()
        try:
            super().start()
        except BaseException:  # after Ctrl-C there may be a thread, which has not begun and does nothing any more
            if self._turn.acquire(blocking=False):
                self._over.set()
            raise

    def run(self) -> None:
        if not self._turn.acquire(blocking=False):
            return
        try:
            super().run()
        finally:
            self._over.set()

    def join(self, timeout: float | None = None) -> None:
        # At the end of the interpreter no such thread runs any more.
        if not sys.is_finalizing() and (os.getpid() != self._pid or self._over.wait(timeout)):
            super().join()

    def is_alive(self) -> bool:
        return os.getpid() == self._pid and not self._over.is_set() and not sys.is_finalizing()


def thread_of(function: Callable[..., None], *arguments: object) -> threading.Thread:
    """A broker's thread. Raises RuntimeError where gevent or eventlet has replaced threads: its loop would hold all of
    them, for ever. So it is where queues are replaced alone: no thread can wait there for another one."""
    import queue

    if not isbuiltin(threading.get_ident):
        raise RuntimeError(
            "gevent or eventlet has replaced threads, so that a broker in one would hold up all: Broker(process=True)"
        )
    if queue.SimpleQueue.__module__ not in ("_queue", "queue"):
        raise RuntimeError(
            "gevent has replaced queues, so that the threads of a broker would not hear of each other: "
            "monkey.patch_all(thread=False, queue=False)"
        )
    fill_standard_descriptors()
    return _BrokerThread(target=function, args=arguments, name="kafka-shim", daemon=True)


async def started_server(server: Server, started: Future[None]) -> Server:
    """Start the server and return it. Raises CancelledError if who waits for `started` cancels it meanwhile."""
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(server.start())

    def give_up(_: Future[None]) -> None:
        if started.cancelled():
            server.give_up()
            with suppress(RuntimeError):  # the start has failed, and the loop is closed
                loop.call_soon_threadsafe(starting.cancel)

    started.add_done_callback(give_up)
    await starting
    return server


def fill_standard_descriptors() -> None:
    """Open /dev/null as each of 0, 1 and 2 that the program has closed. libuv ends a process that closes a socket of
    such a number, and what is printed to stderr would go to a file of the broker. They stay open, as the numbers may be
    anybody's from now on."""
    while (descriptor := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= LAST_STANDARD:
        pass
    os.close(descriptor)


def in_turn(method: Callable[Concatenate[Broker, Given], Outcome]) -> Callable[Concatenate[Broker, Given], Outcome]:
    """A method that starts or ends the broker: those of other threads wait until it has returned. Raises RuntimeError
    on the broker's own thread, which would wait for its own end."""

    @wraps(method)
    def run(broker: Broker, /, *arguments: Given.args, **named: Given.kwargs) -> Outcome:
        if broker._thread is threading.current_thread():
            raise RuntimeError(OWN_THREAD)
        with broker._life:
            return method(broker, *arguments, **named)

    return run


def has_turns(broker: Broker) -> None:
    """Make the lock of `in_turn`; of a child that is forked while a thread holds it, another one."""
    broker._life = threading.RLock()
    _brokers.add(broker)


def require_own(broker: Broker) -> None:
    """Raises RuntimeError where the broker runs in the process from which this one was forked, or is a child of it."""
    if broker._loop in _inherited or (broker._process is not None and broker._process.is_of_parent):
        raise RuntimeError(OF_PARENT)


def _forked() -> None:
    for broker in list(_brokers):
        has_turns(broker)
        if broker._loop is not None:
            _inherited.append(broker._loop)


def _hold_log() -> None:
    """Have no thread write a log line during the fork. The stream's own lock would stay held in the child, which stands
    still as soon as it writes or flushes that stream, as a child of multiprocessing does at its end."""
    if not _brokers:
        return
    # Not for ever: nobody may read the stream, and a handler may call another one. Logging's own lock comes first, as
    # where logging is configured: this thread is about to wait for it, without an end.
    if not _hold(logging._lock):  # type: ignore[attr-defined]
        return
    for handler in _handlers():
        if handler.lock is not None:
            _hold(handler.lock)


def _hold(lock: Any) -> bool:
    _forking.locks.append(lock)  # first: a handler of a signal may raise once it is held
    if lock.acquire(timeout=LOG_SECONDS):
        return True
    _forking.locks.pop()
    return False


def _handlers() -> list[logging.Handler]:
    """What a broker's threads write to, each once."""
    found = list(logging.root.handlers)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in ("kafka_shim", "asyncio"):
            found += logger.handlers
    if logging.lastResort is not None:
        found.append(logging.lastResort)
    return list(dict.fromkeys([*found, STDERR]))


def _leave_log() -> None:
    while locks := _forking.locks:
        with suppress(RuntimeError):  # logging has made a new one, in a child
            locks[-1].release()
        locks.pop()


os.register_at_fork(before=_hold_log, after_in_parent=_leave_log, after_in_child=_leave_log)
# Once more: a handler of a signal, as that of Ctrl-C, may raise as soon as the first of them begins.
os.register_at_fork(after_in_parent=_leave_log, after_in_child=_leave_log)
os.register_at_fork(after_in_child=_forked)


class OnLoop:
    """An object of the broker whose methods run on the broker's thread."""

    def __init__(self, broker: Broker, target: object) -> None:
        self._broker = broker
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found
        return lambda *arguments, **keywords: self._broker.call(lambda: found(*arguments, **keywords))


def milliseconds(duration: float | str) -> float:
    """ "61s" is 61000; a bare number is milliseconds. Raises ValueError."""
    if not isinstance(duration, str):
        return duration
    number = duration.rstrip("msdh")
    unit = duration[len(number) :] or "ms"
    try:
        return float(number) * UNITS_MS[unit]
    except (KeyError, ValueError):
        raise ValueError(f"{duration!r} is not a duration such as 250ms, 61s, 5m, 2h or 7d") from None
