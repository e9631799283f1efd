"""Accepts connections and limits their number (Kafka: SocketServer, Acceptor, ConnectionQuotas).

The partitions' share of the process limit of open files is reserved, so that a connection never takes a descriptor that
a partition needs. A connection beyond the remaining budget is closed right after it is accepted. One log line reports
many refused connections.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections import deque
from contextlib import suppress
from functools import partial

from kafka_shim.java_address import java_address
from kafka_shim.listeners import printable
from kafka_shim.plurals import counted
from kafka_shim.ports import stop_listening
from kafka_shim.storage.open_files import (
    FEWEST_CONNECTIONS,
    OUT_OF_RESOURCES,
    SPARE,
    OpenFiles,
    limit_of_process,
    open_descriptors,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.broker import Broker
    from kafka_shim.clock import Clock
    from kafka_shim.connection import Connection
    from kafka_shim.registry import Registry
    from kafka_shim.session import Listener
    from kafka_shim.tls_transport import TlsTransport

logger = logging.getLogger("kafka_shim.server")

# Sockets accepted per turn of the event loop, which is cheap: those that wait in the kernel beyond
# `socket.listen.backlog.size` are dropped, and their clients try again after a second.
ACCEPTS_PER_TURN = 16
# Accepted sockets made connections per turn. While connections arrived, sixteen made turns of 1.1 ms; two make turns of
# 0.3 ms, and serve as many in a second.
OPENS_PER_TURN = 2
# The interval between two log lines about refused connections, and the delay before a listener that cannot accept tries
# again.
REFUSAL_LOG_MS = 10_000
RETRY_MS = 1000


class AcceptedSocket(socket.socket):
    """Its family and type are numbers. Those of the base look up an enum's member each time, and who makes a connection
    of a socket asks five times: that was an eighth of what a connection cost."""

    __slots__ = ()

    family = socket.SocketType.family  # type: ignore[assignment]
    type = socket.SocketType.type  # type: ignore[assignment]


class ConnectionBudget:
    """The number of connections that the limit of open files leaves room for. Created before the listeners are
    bound."""

    def __init__(self, broker: Broker, files: OpenFiles, registry: Registry) -> None:
        """Raises OSError if the limit leaves room for fewer than FEWEST_CONNECTIONS connections."""
        self._broker = broker
        self._files = files
        self._registry = registry
        self.process_limit = limit_of_process()
        in_use = open_descriptors() - files.descriptors
        self.most_connections = self.process_limit - files.limit - SPARE - in_use
        if self.most_connections < FEWEST_CONNECTIONS:
            least = self.process_limit - self.most_connections + FEWEST_CONNECTIONS
            raise OSError(
                errno.EMFILE,
                f"the limit of open files is {self.process_limit}, at least {least} are needed: raise it (ulimit -n)",
            )
        # Accepted connections that are not in the registry yet.
        self.pending = 0
        self._refused = 0
        self._logged_ms: int | None = None

    def has_room(self, fd: int) -> bool:
        """Returns whether the connection accepted as descriptor `fd` may stay. The system assigns the lowest free
        number, so `fd` also reflects descriptors that other code in this process holds."""
        if len(self._registry.connections) + self.pending >= self.most_connections:
            return False
        return fd + self._files.unclaimed + SPARE // 2 < self.process_limit

    def refused(self, listener: Listener) -> None:
        """Count a connection that was closed because there was no room. Logs at most one line per `REFUSAL_LOG_MS`."""
        broker = self._broker
        broker.metrics.connections_refused += 1
        self._refused += 1
        now_ms = broker.clock.monotonic_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= REFUSAL_LOG_MS:
            logger.warning(
                "refused %s on %s: %d are open, the limit of open files (%d) leaves room for %d beside the "
                "%d of partitions: raise it (ulimit -n)",
                counted(self._refused, "connection"),
                printable(listener),
                len(self._registry.connections) + self.pending,
                self.process_limit,
                self.most_connections,
                self._files.limit,
            )
            self._logged_ms = now_ms
            self._refused = 0


class Acceptor:
    """Accepts the connections of one bound listener from `start` to `close`. Event-loop thread only."""

    def __init__(
        self,
        listener: Listener,
        sock: socket.socket,
        connect: Callable[[], Connection | TlsTransport],
        budget: ConnectionBudget,
        registry: Registry,
        clock: Clock,
    ) -> None:
        # Constant after construction.
        self._listener = listener
        self._socket = sock
        self._kind = int(sock.family), int(sock.type), sock.proto
        self._connect = connect
        self._budget = budget
        self._registry = registry
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        # Set from start to close. The spare descriptor is closed when no other is free, so that a connection can be
        # accepted and refused.
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._opening: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None
        # Accepted sockets that become connections on this turn or on later ones, and whether a later one is set.
        self._accepted: deque[socket.socket] = deque()
        self._will_open = False
        # An accepted connection that waits for its place or its time; no other is accepted meanwhile.
        self._waiting: socket.socket | None = None
        # Accepted connections that are over the quota of their address.
        self._held: set[socket.socket] = set()
        self._is_closed = False

    def start(self) -> None:
        """Start accepting connections."""
        self._retry = None
        if self._spare < 0:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._loop.add_reader(self._socket.fileno(), self._accept_some)

    def close(self) -> None:
        """Stop accepting connections and close the listening socket."""
        if self._socket.fileno() < 0:
            return
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        self._drop_waiting()
        for sock in list(self._held):
            self._release(sock)
        self._budget.pending -= len(self._accepted)
        while self._accepted:
            self._accepted.popleft().close()
        self._loop.remove_reader(self._socket.fileno())
        stop_listening(self._socket)
        self._socket.close()
        if self._spare >= 0:
            os.close(self._spare)

    async def opened(self) -> None:
        """Return once every socket that `close` left has become a connection. It takes several turns of the loop."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept_some(self) -> None:
        try:
            self._accept()
        finally:  # where that finds no memory, no other event comes for those before
            if not self._will_open:
                self._open_some()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                fd, peer = self._socket._accept()  # type: ignore[attr-defined]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as err:
                self._cannot_accept(err)
                return
            sock = self._socket_of(fd)
            try:
                if not self._takes(sock, peer[0]):
                    return
            except MemoryError:
                sock.close()  # its client would wait for as long as something has the frame of the error
                raise

    def _socket_of(self, fd: int) -> AcceptedSocket:
        try:
            return AcceptedSocket(*self._kind, fileno=fd)
        except BaseException:
            os.close(fd)
            raise

    def _takes(self, sock: socket.socket, peer_host: str) -> bool:
        """Take an accepted socket, or refuse it. Returns whether others may be accepted."""
        if not self._budget.has_room(sock.fileno()):
            sock.close()
            self._budget.refused(self._listener)
            return True
        hold_ms = self._registry.hold_ms(java_address(peer_host))
        if hold_ms:
            self._hold(sock, hold_ms)
            return True
        throttle_ms = self._registry.throttle_ms(self._listener)
        if throttle_ms > 0 or not self._has_place():
            # First what needs memory, here and below: a listener that nobody starts again would accept no more.
            self._waiting = sock
            try:
                self._clock.call_later(throttle_ms, self._serve_waiting)
            except MemoryError:
                self._drop_waiting()
                raise
            self._loop.remove_reader(self._socket.fileno())
            return False
        self._accepted.append(sock)
        self._budget.pending += 1
        return True

    def _open_some(self) -> None:
        self._will_open = False
        count = len(self._accepted)
        if count > OPENS_PER_TURN:
            with suppress(MemoryError):  # all in this turn then: nobody would open the others
                self._loop.call_soon(self._open_some)
                self._will_open = True
                count = OPENS_PER_TURN
        for _ in range(count):
            self._budget.pending -= 1
            self._open(self._accepted.popleft())

    def _hold(self, sock: socket.socket, hold_ms: int) -> None:
        """Keep a connection over the quota of its address for this time, then close it."""
        self._clock.call_later(hold_ms, self._release, sock)
        self._held.add(sock)
        self._budget.pending += 1

    def _release(self, sock: socket.socket) -> None:
        if sock in self._held:
            self._held.discard(sock)
            self._budget.pending -= 1
            sock.close()

    def _has_place(self) -> bool:
        return self._registry.has_place(self._listener, len(self._accepted) + len(self._opening))

    def _serve_waiting(self) -> None:
        """The waiting connection has its time; serve it once it has its place too (Kafka: waitForConnectionSlot)."""
        sock = self._waiting
        if sock is None or self._is_closed:
            return
        if not self._has_place():
            self._registry.call_when_freed(self._serve_waiting)
            return
        try:
            self._open(sock)
            self._waiting = None
        finally:
            self._drop_waiting()  # there was no memory for it
            self.start()

    def _drop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    def _open(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        task: asyncio.Task[object] | None = None
        try:
            opened = partial(self._opened, sock)
            task = self._loop.create_task(self._loop.connect_accepted_socket(self._connect, sock))
            self._opening.add(task)
            task.add_done_callback(opened)
        except MemoryError:  # not raised: others may wait for their turn
            if task is not None:
                task.cancel()  # it has not begun
                self._opening.discard(task)
            sock.close()
            return
        self._budget.pending += 1

    def _opened(self, sock: socket.socket, task: asyncio.Task[object]) -> None:
        self._opening.discard(task)
        self._budget.pending -= 1
        error = None if task.cancelled() else task.exception()
        if isinstance(error, MemoryError):
            with suppress(OSError):  # not closed: a transport may have it. uvloop keeps the frame, and told nobody
                sock.shutdown(socket.SHUT_RDWR)
        elif error is not None:
            logger.debug("a client closed its connection before it was served: %s", error)

    def _cannot_accept(self, err: OSError) -> None:
        """Handle a failed accept. EMFILE and similar errors mean that other code in this process, or another process,
        used up the reserved descriptors. Then one connection is accepted with the spare descriptor and closed, because
        the socket would otherwise stay readable. If that fails too, accepting pauses for `RETRY_MS`."""
        if err.errno not in OUT_OF_RESOURCES:
            logger.error("cannot accept on %s: %s", printable(self._listener), err)
            self._wait()
            return
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        try:
            self._socket.accept()[0].close()
            self._budget.refused(self._listener)
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._wait()

    def _wait(self) -> None:
        # Uses the loop's clock: the broker's clock may be virtual and stand still, but the kernel does not.
        self._retry = self._loop.call_later(RETRY_MS / 1000, self.start)
        self._loop.remove_reader(self._socket.fileno())


def budget_line(files: OpenFiles, budget: ConnectionBudget) -> str:
    """The log line about the limit of open files, written at start-up."""
    return (
        f"open files: the limit is {budget.process_limit}, of which partitions may hold {files.limit} and connections "
        f"{budget.most_connections}"
    )
