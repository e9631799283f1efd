"""The HTTP listener: `/metrics` for Prometheus, `/health/live` and `/health/ready`.

It runs in threads of its own, so that `/health/live` can say that the event loop does not answer. What it tells is read
on the event loop, in slices. It is open to whoever reaches it, so that without a host it is bound to loopback.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector as RegistryCollector

from kafka_shim.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Any, TypeVar

    from prometheus_client.metrics_core import Metric

    from kafka_shim.monitoring.collector import Collector

    Answer = TypeVar("Answer")

# How long an answer waits for the event loop.
PATIENCE_S = 5.0
# How long a client may be silent, and how long its request may take in all: one that sends a byte now and then must not
# hold a place.
SILENCE_S = 10.0
LONGEST_REQUEST_S = 20.0
# Requests that are answered at the same time; what comes beyond them is closed.
MOST_REQUESTS = 8
HIGHEST_PORT = 65535
LOOPBACK = "127.0.0.1"
TEXT = "text/plain; charset=utf-8"

logger = logging.getLogger(__name__)


class HttpListener:
    """Serves one broker. `address` is HOST:PORT, or :PORT for loopback; port 0 takes a free one. Raises ConfigError,
    OSError."""

    def __init__(self, address: str, collector: Collector, loop: asyncio.AbstractEventLoop) -> None:
        host, colon, port = address.removeprefix("http://").rpartition(":")
        if not (colon and port.isdecimal() and int(port) <= HIGHEST_PORT):
            raise ConfigError(f"kafka.shim.http.listener: {address!r} is not HOST:PORT")
        self._collector = collector
        self._loop = loop
        self.is_ready = False
        self._server = _Server((host.strip("[]") or LOOPBACK, int(port)), _Handler)
        self._server.listener = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """http://HOST:PORT."""
        host = str(self._server.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more, and close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # --- what is served, in a thread of the HTTP server

    def metrics(self) -> bytes:
        """Returns the metrics in the text format of Prometheus. Raises TimeoutError if the event loop does not
        answer."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self._ask(self._collect())))
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    def is_live(self) -> bool:
        """Returns whether the event loop turns."""
        try:
            self._ask(asyncio.sleep(0))
        except TimeoutError:
            return False
        return True

    def _ask(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(PATIENCE_S)
        except TimeoutError:
            future.cancel()
            raise

    async def _collect(self) -> list[Metric]:
        found: list[Metric] = []
        for families in self._collector.slices():
            found += families
            await asyncio.sleep(0)
        return found


class _Families(RegistryCollector):
    """What was collected, as a registry takes it."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    listener: HttpListener

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        # The requests under way, with when each must end.
        self._ends: dict[socket.socket, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            self._ends[request] = time.monotonic() + LONGEST_REQUEST_S
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._ends.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """End requests that take too long. Called twice in a second."""
        now_s = time.monotonic()
        for request in [one for one, end_s in list(self._ends.items()) if end_s <= now_s]:
            with suppress(OSError):  # its thread may close it now
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away concerns nobody; anything else is a bug."""
        if not isinstance(sys.exc_info()[1], OSError):
            logger.exception("a request to the HTTP listener failed")


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENCE_S
    server: _Server

    def do_GET(self) -> None:
        listener = self.server.listener
        path = self.path.partition("?")[0]
        try:
            if path == "/metrics":
                self._answer(200, listener.metrics(), CONTENT_TYPE_LATEST)
            elif path == "/health/live":
                self._tell(listener.is_live(), "live", "the event loop does not answer")
            elif path == "/health/ready":
                self._tell(listener.is_ready and listener.is_live(), "ready", "the broker does not serve")
            else:
                self._answer(404, b"there are /metrics, /health/live and /health/ready\n", TEXT)
        except TimeoutError:
            self._answer(503, b"the event loop does not answer\n", TEXT)

    do_HEAD = do_GET

    def _tell(self, is_well: bool, yes: str, no: str) -> None:
        self._answer(200 if is_well else 503, f"{yes if is_well else no}\n".encode(), TEXT)

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "kafka-shim"

    def log_message(self, format: str, *arguments: object) -> None:
        """A scrape each second is no line of the log."""
