"""Accepting connections, and how many (Kafka: SocketServer, Acceptor, ConnectionQuotas).

A connection never takes a descriptor that partitions may still need: their share of the limit of open files is set
aside, and what is accepted beyond the rest is closed in the same call, with one log line for many."""

from __future__ import annotations

import asyncio
import errno
import logging
import os

from kafka_shim.listeners import printable
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
    import socket
    from collections.abc import Callable

    from kafka_shim.broker import Broker
    from kafka_shim.connection import Connection, Registry
    from kafka_shim.session import Listener

logger = logging.getLogger("kafka_shim.server")

# The loop gets its turn after so many.
ACCEPTS_PER_TURN = 16
# Between two lines about refused connections, and before a listener that cannot accept tries again.
REFUSAL_LOG_MS = 10_000
RETRY_MS = 1000


class ConnectionBudget:
    """How many connections the limit of open files leaves room for. Made before the listeners are bound."""

    def __init__(self, broker: Broker, files: OpenFiles, registry: Registry) -> None:
        """Raises OSError when the limit leaves room for too few."""
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
        # Accepted, and not yet known to the registry.
        self.pending = 0
        self._refused = 0
        self._logged_ms: int | None = None

    def has_room(self, fd: int) -> bool:
        """Whether the connection that was accepted as `fd` may stay. The system gives the lowest free number, so `fd`
        also tells of descriptors that others of this process hold."""
        if len(self._registry.connections) + self.pending >= self.most_connections:
            return False
        return fd + self._files.unclaimed + SPARE // 2 < self.process_limit

    def refused(self, listener: Listener) -> None:
        """Count a connection that was closed for want of room; one log line in `REFUSAL_LOG_MS`."""
        broker = self._broker
        broker.metrics.connections_refused += 1
        self._refused += 1
        now_ms = broker.clock.monotonic_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= REFUSAL_LOG_MS:
            logger.warning(
                "refused %d connections on %s: %d are open, the limit of open files (%d) leaves room for %d beside the "
                "%d of partitions: raise it (ulimit -n)",
                self._refused,
                printable(listener),
                len(self._registry.connections),
                self.process_limit,
                self.most_connections,
                self._files.limit,
            )
            self._logged_ms = now_ms
            self._refused = 0


class Acceptor:
    """Accepts the connections of one bound listener from `start` to `close`. Event-loop thread only."""

    def __init__(
        self, listener: Listener, sock: socket.socket, connect: Callable[[], Connection], budget: ConnectionBudget
    ) -> None:
        # Fixed.
        self._listener = listener
        self._socket = sock
        self._connect = connect
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        # From start to close. The spare descriptor is what a connection is accepted with, to be refused, when there is
        # no other.
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._opening: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Accept from now on."""
        self._retry = None
        self._loop.add_reader(self._socket.fileno(), self._accept_some)

    def close(self) -> None:
        """Accept nothing more."""
        if self._socket.fileno() < 0:
            return
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._spare >= 0:
            os.close(self._spare)

    def _accept_some(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as err:
                self._cannot_accept(err)
                return
            if not self._budget.has_room(sock.fileno()):
                sock.close()
                self._budget.refused(self._listener)
                continue
            self._open(sock)

    def _open(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._budget.pending += 1
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._connect, sock))
        self._opening.add(task)
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[object]) -> None:
        self._opening.discard(task)
        self._budget.pending -= 1
        if not task.cancelled() and task.exception() is not None:
            logger.debug("a connection was gone before it was served: %s", task.exception())

    def _cannot_accept(self, err: OSError) -> None:
        """Somebody else of this process, or of the machine, took what was set aside. One connection is refused by means
        of the spare descriptor, or the socket would stay readable; when that fails as well, accepting pauses."""
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
        self._loop.remove_reader(self._socket.fileno())
        # Not the broker's clock: a virtual one may stand still, and the kernel does not.
        self._retry = self._loop.call_later(RETRY_MS / 1000, self.start)


def budget_line(files: OpenFiles, budget: ConnectionBudget) -> str:
    """What the log says of the limit at a start."""
    return (
        f"open files: the limit is {budget.process_limit}, of which partitions may hold {files.limit} and connections "
        f"{budget.most_connections}"
    )
