"""An HTTP server whose every request is a call of one function, in a thread of the server's own.

Bounds: the requests answered at the same time, how long one may take and be silent, the size of its head and body.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from operator import itemgetter
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore

from kafka_shim.http.bugs import Bugs
from kafka_shim.http.heads import Head
from kafka_shim.ports import HIGHEST_PORT, is_listening, parse_port, stop_listening
from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from email.message import Message
    from typing import Any

    Handle = Callable[["Request"], "Response"]

logger = logging.getLogger(__name__)

# How long a client may be silent, and how long its request may take in all: one that sends a byte now and then must not
# hold a place.
SILENCE_S = 10.0
LONGEST_REQUEST_S = 20.0
# Requests that are answered at the same time. One more waits for a place, and takes that of the oldest whose client has
# not said for a while what it wants, or else of one whose client has taken nothing of its answer for a while; if there
# is none, it is closed.
MOST_REQUESTS = 8
HESITANT_S = 0.5
STALLED_S = 1.0
SILENT, STALLED = "it is silent", "its client takes nothing"
# What the system keeps of an answer, and what is written of one at once: whether its client takes it shows in whether
# the next part can be written, and in larger buffers it would not for long.
SEND_BUFFER_BYTES = 1 << 18
PART_BYTES = 1 << 14
# How long it takes at most until that place is free.
EVICTION_S = 1.0
LARGEST_BODY_BYTES = 1 << 16
# How long a server rests that cannot accept, as without a free descriptor: it would try again at once, and again.
ACCEPT_RETRY_S = 0.1
# What is dropped at most of a request that is refused before it was read.
MOST_DROPPED_BYTES = 1 << 20
# The digits of a Content-Length: Python refuses to convert thousands of digits, with an error of its own.
MOST_DIGITS = 19
LOOPBACK = "127.0.0.1"
TEXT = "text/plain; charset=utf-8"
# What a client gets that speaks HTTP where TLS is served.
NOT_TLS = b"this port speaks HTTPS: ask for https:// in place of http://\n"


class Request:
    """One request, whole."""

    __slots__ = ("body", "has_certificate", "headers", "is_secure", "method", "path", "query")

    def __init__(
        self,
        method: str,
        target: str,
        headers: Message[str, str],
        body: bytes = b"",
        *,
        is_secure: bool = False,
        has_certificate: bool = False,
    ) -> None:
        """`has_certificate`: the client has shown a certificate that the server trusts."""
        self.method = method
        self.path, _, self.query = target.partition("?")
        # Names are found in any case.
        self.headers = headers
        self.body = body
        self.is_secure = is_secure
        self.has_certificate = has_certificate


class Response:
    """An answer, whole. `headers` are those besides Content-Type and Content-Length."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, status: int, body: bytes, content_type: str = TEXT, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of HOST:PORT, [V6]:PORT, or :PORT for loopback. Raises ValueError."""
    host, colon, number = text.removeprefix("https://").removeprefix("http://").rpartition(":")
    port = parse_port(number)
    if not colon or port is None or port > HIGHEST_PORT:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or LOOPBACK, port


class HttpServer:
    """Serves from `start` to `stop`. `handle` is called in threads. Port 0 takes a free one. Raises OSError, whose
    message names the address."""

    def __init__(
        self,
        address: tuple[str, int],
        handle: Handle,
        *,
        most_requests: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._is_secure = tls is not None
        self._server = _Server(address, handle, most_requests or MOST_REQUESTS, tls)
        self._thread = Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def host(self) -> str:
        """The address that is bound."""
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """http://HOST:PORT, or https://."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._is_secure else 'http'}://{host}:{self.port}"

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Serve further connections with this context, on a server with TLS."""
        assert self._is_secure
        self._server.tls = tls

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more, and close the port."""
        stop_listening(self._server.socket)  # wakes the thread, too, which looks for its end but twice in a second
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.bugs.tell_left_out(is_end=True)


# No `HTTPServer`, which looks up the name of its host: a resolver may not answer for long.
class _Server(ThreadingMixIn, TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64  # a page asks for its parts at once

    def __init__(
        self, address: tuple[str, int], handle: Handle, most_requests: int, tls: ssl.SSLContext | None
    ) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        try:
            super().__init__(address, _Handler)
        except OSError as err:
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            scheme = "http" if tls is None else "https"
            raise OSError(err.errno, f"cannot listen on {scheme}://{host}:{address[1]}: {err.strerror}") from err
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # of each connection
        self.handle_one = handle
        self.tls = tls
        self._free = BoundedSemaphore(most_requests)
        # The requests under way, with when each must end, the oldest first; those that are not whole yet, with
        # when they came.
        self._deadlines_s: dict[socket.socket, float] = {}
        self._silent: dict[socket.socket, float] = {}
        # The requests that are being answered, with when their client last took a part, the longest ago first.
        self._taken_s: dict[socket.socket, float] = {}
        self.bugs = Bugs()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(ACCEPT_RETRY_S if is_listening(self.socket) else 0)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._take_place():
            self._silent[request] = now_s = time.monotonic()
            self._deadlines_s[request] = now_s + LONGEST_REQUEST_S
            try:
                Thread(target=self.process_request_thread, args=(request, client_address), daemon=True).start()
            except BaseException:  # no thread: the place must not stay taken
                self._let_go(request)
                raise
        else:
            logger.debug("closing the request of %s: no place is free", client_address)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._let_go(request)

    def _take_place(self) -> bool:
        """Take a free place, that of a client that sends nothing, or else of one that takes nothing. Waits for it until
        that is clear: of many that ask at once, each sends its request in a moment. Returns whether there is one."""
        until_s = time.monotonic() + STALLED_S
        while not self._free.acquire(blocking=False):
            now_s, next_s = time.monotonic(), until_s
            for clients, most_s, what in ((self._silent, HESITANT_S, SILENT), (self._taken_s, STALLED_S, STALLED)):
                # The oldest is not always the first: TLS has given another socket to some that came earlier.
                for request, since_s in sorted(clients.items(), key=itemgetter(1))[:1]:
                    if since_s + most_s <= now_s:
                        if clients.pop(request, None) is None:
                            next_s = now_s  # it was heard just now, or has got its socket of TLS: look again
                            break
                        with suppress(OSError):  # its thread may close it now
                            _end(request, f"{what}, and another one needs its place")
                        return self._free.acquire(timeout=EVICTION_S)
                    next_s = min(next_s, since_s + most_s)
            if now_s >= until_s:
                return False
            if self._free.acquire(timeout=max(0.0, next_s - now_s)):
                break
        return True

    def _let_go(self, request: Any) -> None:
        self.watch_no_more(request)
        self._free.release()

    def is_taken(self, request: socket.socket) -> None:
        """The client has taken a part of its answer, or is to take the first one."""
        self._taken_s.pop(request, None)
        self._taken_s[request] = time.monotonic()

    def is_heard(self, request: socket.socket) -> None:
        """The request is whole: it keeps its place until it is answered."""
        self._silent.pop(request, None)

    def watch_instead(self, before: socket.socket, after: socket.socket) -> None:
        """A request's socket is another one from now on."""
        self._deadlines_s[after] = self._deadlines_s.pop(before, time.monotonic())
        since_s = self._silent.pop(before, None)
        if since_s is not None:
            self._silent[after] = since_s
        else:  # its place was taken just now, when `before` may have had no descriptor any more
            with suppress(OSError):
                _end(after, f"{SILENT}, and another one needs its place")

    def watch_no_more(self, request: socket.socket) -> None:
        """A request's socket is being closed."""
        self._deadlines_s.pop(request, None)
        self._silent.pop(request, None)
        self._taken_s.pop(request, None)

    def service_actions(self) -> None:
        """End requests that take too long. Called twice in a second."""
        self.bugs.tell_left_out()
        now_s = time.monotonic()
        for request in [one for one, deadline_s in list(self._deadlines_s.items()) if deadline_s <= now_s]:
            with suppress(OSError):  # its thread may close it now
                _end(request, "it takes too long")

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away concerns only who looks for where its answer is; anything else is a bug."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            logger.debug("the request of %s has not got its whole answer: %s", client_address, error)
        else:
            self.bugs.report()


def _end(request: socket.socket, reason: str) -> None:
    """Wake the thread of a request, whose socket has ended then. That of TLS would take its session from the thread's
    next call, and let it go on as without TLS."""
    logger.debug("ending the request of %s: %s", request.getpeername(), reason)
    socket.socket.shutdown(request, socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENCE_S
    server: _Server
    raw_requestline: bytes

    def setup(self) -> None:
        if self.server.tls is not None:
            # In the request's thread: a client that is slow at it holds up nobody else.
            plain = self.request
            plain.settimeout(SILENCE_S)
            if plain.recv(1, socket.MSG_PEEK).isalpha():  # a method; TLS begins with the byte 22
                self._refuse_plain()
            self.request = self.server.tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            self.server.watch_instead(plain, self.request)
            try:
                self.request.do_handshake()
            except OSError:
                self.finish_tls()
                raise
        super().setup()

    def _refuse_plain(self) -> None:
        """Say that TLS is served here, whatever is asked for. Raises ConnectionAbortedError: the connection is done."""
        self.request.recv(PART_BYTES)  # what is not read when the socket is closed may cost the client the answer
        head = f"HTTP/1.0 400 Bad Request\r\nContent-Type: {TEXT}\r\nContent-Length: {len(NOT_TLS)}\r\n\r\n"
        self.request.sendall(head.encode() + NOT_TLS)
        raise ConnectionAbortedError

    def finish(self) -> None:
        super().finish()
        if self.server.tls is not None:
            self.finish_tls()

    def finish_tls(self) -> None:
        """Close the socket of TLS: the server closes the one that it accepted, which has no descriptor any more."""
        self.server.watch_no_more(self.request)
        with suppress(OSError):
            self.request.close()

    def parse_request(self) -> bool:
        whole = self.rfile
        self.rfile = Head(whole, len(self.raw_requestline))  # type: ignore[assignment]
        try:
            return super().parse_request()
        finally:
            self.rfile = whole

    def do_GET(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            self._refuse(Response(411, b"a request tells its length in Content-Length\n"))
            return
        if len(length) > MOST_DIGITS or int(length) > LARGEST_BODY_BYTES:
            self._refuse(Response(413, f"a request has at most {LARGEST_BODY_BYTES} bytes\n".encode()))
            return
        body = self.rfile.read(int(length))
        self.server.is_heard(self.request)
        is_secure = self.server.tls is not None
        has_certificate = is_secure and bool(self.request.getpeercert(binary_form=True))
        request = Request(
            self.command, self.path, self.headers, body, is_secure=is_secure, has_certificate=has_certificate
        )
        try:
            response = self.server.handle_one(request)
        except Exception:
            self.server.bugs.report()
            response = Response(500, b"the request failed: the log says why\n")
        self._send(response)

    do_HEAD = do_POST = do_DELETE = do_GET

    def send_error(self, *status: Any) -> None:
        super().send_error(*status)
        self._drop_rest()

    def _refuse(self, response: Response) -> None:
        self._send(response)
        self._drop_rest()

    def _drop_rest(self) -> None:
        """Take what the client still sends: a socket that is closed with unread bytes may cost it the answer."""
        left = MOST_DROPPED_BYTES
        with suppress(OSError):  # it has its answer, or has gone
            self.request.shutdown(socket.SHUT_WR)
            while left > 0 and (dropped := self.request.recv(PART_BYTES)):
                left -= len(dropped)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            body = memoryview(response.body)
            for start in range(0, len(body), PART_BYTES):
                self.server.is_taken(self.request)
                self.wfile.write(body[start : start + PART_BYTES])

    def version_string(self) -> str:
        return "kafka-shim"

    def log_message(self, format: str, *arguments: object) -> None:
        """A scrape each second is no line of the log."""
