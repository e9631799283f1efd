"""The HTTP listener: `/metrics` for Prometheus, `/health/live` and `/health/ready`.

It runs in threads of its own, so that `/health/live` can say that the event loop does not answer. What it tells is read
on the event loop, in slices. Without a host it is bound to loopback, and the metrics are open to whoever reaches it,
unless a bearer token or a client's certificate is asked for; the health is open to whoever may connect. On loopback a
site that leads a browser there, by a name of its own, reads no metrics.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from ssl import CERT_NONE

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector as RegistryCollector

from kafka_shim.config import ConfigError
from kafka_shim.http.hosts import host_name, is_local
from kafka_shim.http.server import HttpServer, Response, parse_address
from kafka_shim.monitoring.families import Family
from kafka_shim.monitoring.process import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from ssl import SSLContext
    from typing import Any, TypeVar

    from prometheus_client.metrics_core import Metric

    from kafka_shim.http.server import Handle, Request
    from kafka_shim.monitoring.collector import Collector

    Answer = TypeVar("Answer")

# How long an answer waits for the event loop.
PATIENCE_S = 5.0
PATHS = ("/metrics", "/health/live", "/health/ready")


class HttpListener:
    """Serves one broker. `address` is HOST:PORT, or :PORT for loopback; port 0 takes a free one; https:// before it
    needs `tls`. Raises ConfigError, OSError."""

    def __init__(
        self,
        address: str,
        collector: Collector,
        loop: asyncio.AbstractEventLoop,
        *,
        bearer_token: str = "",
        most_requests: int | None = None,
        tls: SSLContext | None = None,
    ) -> None:
        """`bearer_token`: what a reader of the metrics must send, if anything, unless it shows a certificate. Where
        `tls` asks for certificates and there is no token, it must show one."""
        try:
            bound = parse_address(address)
        except ValueError as error:
            raise ConfigError(f"kafka.shim.http.listener: {error}") from None
        self._collector = collector
        self._loop = loop
        self.is_ready = False
        # What answers requests for anything else, if something does.
        self.pages: Handle | None = None
        self._bearer = f"Bearer {bearer_token}".encode() if bearer_token else b""
        self._asks_for_certificates = tls is not None and tls.verify_mode != CERT_NONE
        try:
            self._server = HttpServer(bound, self._handle, most_requests=most_requests, tls=tls)
        except OSError as err:
            advice = "give kafka.shim.http.listener another address, port 0 for a free one"
            raise OSError(err.errno, f"{err.strerror}; {advice}") from err
        # By which people who gave a name reach it.
        self._name = bound[0].lower()
        self._is_loopback = ipaddress.ip_address(self._server.host).is_loopback

    @property
    def address(self) -> str:
        """http://HOST:PORT, or https://."""
        return self._server.address

    def use_tls(self, tls: SSLContext) -> None:
        """Take over changed stores, for further connections."""
        self._asks_for_certificates = tls.verify_mode != CERT_NONE
        self._server.use_tls(tls)

    def start(self) -> None:
        """Serve from now on."""
        self._server.start()

    def stop(self) -> None:
        """Serve no more, and close the port."""
        self._server.stop()

    # --- what is served, in a thread of the HTTP server

    def _handle(self, request: Request) -> Response:
        if self.pages is not None and request.path not in PATHS:
            return self.pages(request)
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"there is nothing to change here\n")
        try:
            if request.path == "/metrics":
                refusal = self._refusal(request) or self._refusal_of_host(request)
                return refusal or Response(200, self.metrics(), CONTENT_TYPE_LATEST)
            if request.path == "/health/live":
                return _told(self.is_live(), "live", "the event loop does not answer")
            if request.path == "/health/ready":
                return _told(self.is_ready and self.is_live(), "ready", "the broker does not serve")
        except TimeoutError:
            return Response(503, b"the event loop does not answer\n")
        return Response(404, b"there are /metrics, /health/live and /health/ready\n")

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to who may not read the metrics."""
        if request.has_certificate:
            return None
        if self._bearer:
            given = request.headers.get("Authorization", "").encode(errors="replace")
            if hmac.compare_digest(given, self._bearer):
                return None
            wanted = (("WWW-Authenticate", "Bearer"),)
            return Response(401, b"send Authorization: Bearer TOKEN\n", headers=wanted)
        if self._asks_for_certificates:
            return Response(403, b"show a certificate that the broker's truststore trusts\n")
        return None

    def _refusal_of_host(self, request: Request) -> Response | None:
        """Return the answer to a browser that another site has led here: who sends a token, or shows a certificate, is
        none."""
        name = host_name(request)
        if not self._is_loopback or self._bearer or request.has_certificate or is_local(name) or name == self._name:
            return None
        return Response(
            403,
            b"on loopback the metrics are for Host localhost, an address, or the name in kafka.shim.http.listener: a "
            b"proxy that passes on its own sends a token (kafka.shim.http.bearer.token)\n",
        )

    def may_read(self, request: Request) -> bool:
        """Returns whether the metrics are for whoever sends this request."""
        return self._refusal(request) is None

    def metrics(self) -> bytes:
        """Returns the metrics in the text format of Prometheus. Raises TimeoutError if the event loop does not
        answer."""
        families = self._ask(self._collect())
        own: list[Family] = []
        pushed: list[Metric] = []
        for one in families:
            if isinstance(one, Family):
                own.append(one)
            else:
                pushed.append(one)
        text = "".join([one.text() for one in (*own, *process())]).encode()
        return text + text_of(pushed) if pushed else text

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

    async def _collect(self) -> list[Family | Metric]:
        found: list[Family | Metric] = []
        for families in self._collector.slices():
            found += families
            await asyncio.sleep(0)
        return found


def text_of(families: list[Metric]) -> bytes:
    """Returns what the library writes of families."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry)


class _Families(RegistryCollector):
    """What was collected, as a registry takes it."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _told(is_well: bool, yes: str, no: str) -> Response:
    return Response(200 if is_well else 503, f"{yes if is_well else no}\n".encode())
