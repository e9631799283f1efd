"""The HTTP listener: `/metrics` for Prometheus, `/health/live` and `/health/ready`.

It runs in threads of its own, so that `/health/live` can say that the event loop does not answer. What it tells is read
on the event loop, in slices. It is open to whoever reaches it: bind it to loopback or a network of one's own.
"""

from __future__ import annotations

import asyncio
import threading
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
# How long a client may take for its request.
REQUEST_TIMEOUT_S = 10.0
# Requests that are answered at the same time; what comes beyond them is closed.
MOST_REQUESTS = 8
TEXT = "text/plain; charset=utf-8"


class HttpListener:
    """Serves one broker. `address` is HOST:PORT, and port 0 takes a free one. Raises ConfigError, OSError."""

    def __init__(self, address: str, collector: Collector, loop: asyncio.AbstractEventLoop) -> None:
        host, colon, port = address.removeprefix("http://").rpartition(":")
        if not (colon and port.isdecimal()):
            raise ConfigError(f"kafka.shim.http.listener: {address!r} is not HOST:PORT")
        self._collector = collector
        self._loop = loop
        self.is_ready = False
        self._server = _Server((host.strip("[]") or "0.0.0.0", int(port)), _Handler)
        self._server.listener = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """http://HOST:PORT."""
        return f"http://{self._server.server_address[0]!s}:{self.port}"

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

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away concerns nobody."""


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_TIMEOUT_S
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
