"""The HTTP server over TLS, and what it refuses before it asks anybody. Its bounds without TLS: tests of monitoring."""

from __future__ import annotations

import errno
import http.client
import logging
import select
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from kafka_shim.http import bugs
from kafka_shim.http import server as module
from kafka_shim.http.heads import LARGEST_HEAD_BYTES
from kafka_shim.http.server import HttpServer, Request, Response, parse_address
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.security.tls.context import private_file
from kafka_shim.targets.waiting import PATIENCE_S, wait_until


def echo(request: Request) -> Response:
    return Response(
        200, f"{request.method} {request.path} {request.query} {request.is_secure} ".encode() + request.body
    )


@pytest.fixture
def plain() -> Iterator[HttpServer]:
    made = HttpServer(("127.0.0.1", 0), echo)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def secure() -> Iterator[tuple[HttpServer, ssl.SSLContext]]:
    authority = CertificateAuthority()
    key, certificate = authority.issue("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with private_file((key + certificate).encode()) as path:
        context.load_cert_chain(path)
    made = HttpServer(("127.0.0.1", 0), echo, tls=context)
    made.start()
    yield made, ssl.create_default_context(cadata=authority.certificate)
    made.stop()


def test_a_start_asks_no_resolver_for_the_name_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer held a start of a broker on 0.0.0.0 for ten seconds."""
    asked_for: list[str] = []
    monkeypatch.setattr(socket, "getfqdn", lambda host="": asked_for.append(host) or "a.name")
    HttpServer(("0.0.0.0", 0), echo)._server.server_close()
    assert asked_for == []


def asked(server: HttpServer, trust: ssl.SSLContext) -> bytes:
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trust, timeout=60)
    connection.request("POST", "/a?b", b"body")
    body = connection.getresponse().read()
    connection.close()
    return body


def test_a_process_forked_meanwhile_does_not_listen_after_the_stop() -> None:
    server = HttpServer(("127.0.0.1", 0), echo)
    server.start()
    inherited = server._server.socket.dup()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=60)
    inherited.close()


def test_a_stop_does_not_wait_to_accept_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread, which the end of the listening wakes, found nothing to accept, and slept."""
    waits: list[float] = []
    ended = threading.Event()

    def stop_listening(listening: socket.socket) -> None:
        listening.shutdown(socket.SHUT_RDWR)
        assert ended.wait(60)  # the thread is quicker than its end is told

    def accept(server: socketserver.TCPServer) -> None:
        ended.set()
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(module, "stop_listening", stop_listening)
    monkeypatch.setattr(socketserver.TCPServer, "get_request", accept)
    monkeypatch.setattr(module.time, "sleep", waits.append)
    server = HttpServer(("127.0.0.1", 0), echo)
    server.start()
    server.stop()
    assert not any(waits)


def test_requests_are_answered_by_tls(secure: tuple[HttpServer, ssl.SSLContext]) -> None:
    server, trust = secure
    assert server.address == f"https://127.0.0.1:{server.port}"
    assert asked(server, trust) == b"POST /a b True body"


def test_over_tls_a_client_that_never_greets_is_ended(
    secure: tuple[HttpServer, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, trust = secure
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as other:
        assert asked(server, trust)  # meanwhile others are served
        other.close()
    monkeypatch.setattr(module, "LONGEST_REQUEST_S", 0.0)
    monkeypatch.setattr(module, "SILENCE_S", 600.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as silent:
        assert silent.recv(1) == b""


def test_over_tls_those_that_send_nothing_keep_nobody_out(secure: tuple[HttpServer, ssl.SSLContext]) -> None:
    server, trust = secure
    with ExitStack() as opened:
        for _ in range(module.MOST_REQUESTS):
            sock = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            silent = opened.enter_context(trust.wrap_socket(sock, server_hostname="localhost"))
        while any(not isinstance(one, ssl.SSLSocket) for one in list(server._server._deadlines_s)):
            pass  # the last handshakes end on the server's side
        assert asked(server, trust)
        assert silent.fileno() >= 0


def test_over_tls_the_client_that_is_silent_for_longest_loses_its_place(
    secure: tuple[HttpServer, ssl.SSLContext],
) -> None:
    """Also where it began a handshake meanwhile, which gives it another socket."""
    server, trust = secure
    silent = server._server._silent
    with ExitStack() as opened:

        def connected() -> socket.socket:
            known = len(silent)
            address = ("127.0.0.1", server.port)
            client = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
            wait_until(lambda: len(silent) > known, "it has a place")
            return client

        first, *others = [connected() for _ in range(module.MOST_REQUESTS)]
        first.sendall(b"\x16")
        wait_until(lambda: any(isinstance(one, ssl.SSLSocket) for one in list(silent)), "it begins a handshake")
        assert asked(server, trust) == b"POST /a b True body"
        assert select.select(others, [], [], 0)[0] == []
        assert select.select([first], [], [], PATIENCE_S)[0] == [first], "its end"


def test_over_tls_a_place_is_free_that_was_taken_while_its_socket_became_one_of_tls(
    secure: tuple[HttpServer, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was to be ended had no descriptor any more, and the one of TLS went on: who came was refused."""
    server, trust = secure
    wrapped, may_go_on = threading.Event(), threading.Event()
    context = server._server.tls
    assert context is not None
    wrap = context.wrap_socket

    def held(*arguments: Any, **options: Any) -> ssl.SSLSocket:
        made = wrap(*arguments, **options)
        if not wrapped.is_set():
            wrapped.set()
            assert may_go_on.wait(PATIENCE_S)
        return made

    monkeypatch.setattr(context, "wrap_socket", held)
    monkeypatch.setattr(module, "EVICTION_S", PATIENCE_S)
    monkeypatch.setattr(module, "SILENCE_S", 600.0)
    silent = server._server._silent
    with ExitStack() as opened:
        address = ("127.0.0.1", server.port)
        first = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        first.sendall(b"\x16")
        assert wrapped.wait(PATIENCE_S)
        for _ in range(module.MOST_REQUESTS - 1):
            server._server._free.acquire()
            opened.callback(server._server._free.release)
        later = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        wait_until(lambda: not silent, "the place of the first is taken")
        may_go_on.set()
        assert first.recv(1) == b"", "its end"
        with trust.wrap_socket(later, server_hostname="localhost") as client:
            client.sendall(b"GET /a HTTP/1.0\r\n\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.0 200")


def test_over_tls_a_place_is_not_taken_of_a_socket_that_has_become_one_of_tls(
    secure: tuple[HttpServer, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at who is silent and the end of one: nothing was ended, and who came was refused."""
    server, trust = secure
    inner, has_looked, may_go_on = server._server, threading.Event(), threading.Event()

    class Silent(dict[socket.socket, float]):
        def items(self) -> Any:
            found = list(super().items())
            if found and not has_looked.is_set():
                has_looked.set()
                may_go_on.wait(PATIENCE_S)
            return found

    monkeypatch.setattr(inner, "_silent", Silent())
    monkeypatch.setattr(module, "HESITANT_S", 0.0)
    monkeypatch.setattr(module, "SILENCE_S", 600.0)
    monkeypatch.setattr(module, "EVICTION_S", PATIENCE_S)
    with ExitStack() as opened:
        address = ("127.0.0.1", server.port)
        first = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        wait_until(lambda: bool(inner._silent), "it has a place")
        for _ in range(module.MOST_REQUESTS - 1):
            inner._free.acquire()
            opened.callback(inner._free.release)
        later = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
        assert has_looked.wait(PATIENCE_S)
        first.sendall(b"\x16")
        wait_until(lambda: any(isinstance(one, ssl.SSLSocket) for one in list(inner._silent)), "it has its socket")
        may_go_on.set()
        assert first.recv(1) == b"", "its end"
        with trust.wrap_socket(later, server_hostname="localhost") as client:
            client.sendall(b"GET /a HTTP/1.0\r\n\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.0 200")


def test_over_tls_a_request_that_is_ended_while_it_is_read_is_no_bug(
    secure: tuple[HttpServer, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, trust = secure
    is_heard = module._Server.is_heard

    def end_then_hear(self: module._Server, request: socket.socket) -> None:
        module._end(request, "it is read")
        is_heard(self, request)

    monkeypatch.setattr(module._Server, "is_heard", end_then_hear)
    with suppress(OSError, http.client.HTTPException):
        asked(server, trust)
    for _ in range(module.MOST_REQUESTS):  # its thread is through
        assert server._server._free.acquire(timeout=60)
    server._server._free.release(module.MOST_REQUESTS)
    assert caplog.messages == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_over_tls_plain_http_is_told_to_use_tls(
    secure: tuple[HttpServer, ssl.SSLContext], caplog: pytest.LogCaptureFixture, method: str
) -> None:
    server, trust = secure
    plain = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    plain.request(method, "/a?b", b"body")
    answer = plain.getresponse()
    assert (answer.status, answer.read()) == (400, module.NOT_TLS)
    plain.close()
    assert asked(server, trust)
    assert caplog.messages == []


def test_over_tls_what_is_neither_tls_nor_http_is_closed(secure: tuple[HttpServer, ssl.SSLContext]) -> None:
    server, trust = secure
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as other:
        other.sendall(b"\0\0\0\x10neither of both")
        with suppress(ConnectionResetError):
            assert b"HTTP" not in other.recv(100)
    assert asked(server, trust)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Content-Length: 70000", 413),
        ("Content-Length: x", 411),
        ("Content-Length: -1", 411),
        ("Content-Length: 65537", 413),
        ("Content-Length: " + "9" * 5000, 413),
        ("Transfer-Encoding: chunked", 411),
        ("Content-Length: 2", 200),
    ],
)
def test_bodies_are_bounded(plain: HttpServer, head: str, status: int) -> None:
    with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as client:
        client.sendall(f"POST / HTTP/1.1\r\n{head}\r\n\r\nhi".encode())
        assert client.recv(100).startswith(f"HTTP/1.0 {status}".encode())


@pytest.mark.parametrize(("lines", "status"), [(1, 200), (2, 431)])
def test_heads_are_bounded(plain: HttpServer, lines: int, status: int) -> None:
    """By all lines together: 100 of them, each of 64 KB, are what the library itself takes."""
    head = f"X: {'a' * (LARGEST_HEAD_BYTES // 2)}\r\n" * lines
    with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as client:
        client.sendall(f"GET / HTTP/1.1\r\n{head}\r\n".encode())
        assert client.recv(100).startswith(f"HTTP/1.0 {status}".encode())


def test_the_line_of_the_request_is_a_part_of_its_head(plain: HttpServer) -> None:
    half = "a" * (LARGEST_HEAD_BYTES // 2)
    for more, status in (("", 200), (half, 431)):
        with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as client:
            client.sendall(f"GET /{half} HTTP/1.1\r\nX: {more}\r\n\r\n".encode())
            assert client.recv(100).startswith(f"HTTP/1.0 {status}".encode())


@pytest.mark.parametrize(("head", "status"), [("Content-Length: 300000", 413), ("X: " + "a" * 300000, 431)])
@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
def test_who_sends_too_much_reads_why_it_is_refused(
    plain: HttpServer, secure: tuple[HttpServer, ssl.SSLContext], is_secure: bool, head: str, status: int
) -> None:
    """It sends all of it before it reads: a connection that was reset meanwhile hid the answer."""
    port = secure[0].port if is_secure else plain.port
    with ExitStack() as opened:
        client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        if is_secure:
            client = opened.enter_context(secure[1].wrap_socket(client, server_hostname="localhost"))
        client.sendall(f"POST / HTTP/1.1\r\n{head}\r\n\r\n".encode())
        wait_until(lambda: select.select([client], [], [], 0)[0], "the server has answered")
        client.sendall(bytes(300000))
        assert client.recv(100).startswith(f"HTTP/1.0 {status}".encode())


def test_a_bug_is_answered_and_logged_a_few_times(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Request) -> Response:
        raise LookupError("a bug")

    server = HttpServer(("127.0.0.1", 0), fail)
    server.start()

    def status() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.read() == b"the request failed: the log says why\n"
        connection.close()
        return answer.status

    assert [status() for _ in range(bugs.MOST_TRACEBACKS + 2)] == [500] * (bugs.MOST_TRACEBACKS + 2)
    assert caplog.messages == ["a request to the HTTP listener failed"] * bugs.MOST_TRACEBACKS
    monkeypatch.setattr(bugs, "PERIOD_S", 0.0)
    wait_until(lambda: len(caplog.messages) > bugs.MOST_TRACEBACKS, "nobody asks, and the others are told")
    assert caplog.messages[-1] == "2 further failures of requests to the HTTP listener were left out"
    monkeypatch.setattr(bugs, "PERIOD_S", 600.0)
    assert [status() for _ in range(bugs.MOST_TRACEBACKS + 1)] == [500] * (bugs.MOST_TRACEBACKS + 1)
    server.stop()
    assert caplog.messages[-1] == "1 further failure of requests to the HTTP listener was left out"


def test_requests_that_are_not_answered_are_told_to_who_looks_for_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafka_shim.http")
    server = HttpServer(("127.0.0.1", 0), echo, most_requests=1)
    server.start()
    address = "127.0.0.1", server.port
    with socket.create_connection(address, timeout=60) as first, socket.create_connection(address, timeout=60) as other:
        assert first.recv(1) == b""  # silent, and another one asks
        # A reset rather than an end, of one whose request is not whole.
        other.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        reading = server._server._silent
        wait_until(lambda: [one.getpeername() for one in list(reading)] == [other.getsockname()], "it has the place")
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        names = [one.getsockname() for one in (first, other)]
    wait_until(lambda: len(caplog.messages) == 2, "both are told")
    assert caplog.messages[0] == f"ending the request of {names[0]}: it is silent, and another one needs its place"
    assert caplog.messages[1].startswith(f"the request of {names[1]} has not got its whole answer: ")
    server.stop()


def test_a_request_without_a_thread_keeps_no_place(plain: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        for _ in range(module.MOST_REQUESTS):
            with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as client:
                assert client.recv(1) == b""
    connection = http.client.HTTPConnection("127.0.0.1", plain.port, timeout=60)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_server_without_a_descriptor_for_a_client_rests(plain: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tried to accept them again and again, which took a CPU."""
    tries, rests, goes_on = [0], [0], threading.Event()
    accept = socketserver.TCPServer.get_request

    def refuse(server: socketserver.TCPServer) -> Any:
        if goes_on.is_set():
            return accept(server)
        tries[0] += 1
        raise OSError(errno.EMFILE, "Too many open files")

    def rest(seconds: float) -> None:
        assert seconds == module.ACCEPT_RETRY_S
        rests[0] += 1
        if rests[0] == 3:
            goes_on.set()

    monkeypatch.setattr(socketserver.TCPServer, "get_request", refuse)
    monkeypatch.setattr(module.time, "sleep", rest)
    with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as client:
        client.sendall(b"GET /a HTTP/1.0\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.0 200")
    assert tries == rests == [3]


def test_of_many_that_ask_at_once_each_is_answered() -> None:
    """Those whose request had not come yet, a moment after their connection, lost their place to the next."""

    def handle(_: Request) -> Response:
        asked_at_once.wait(PATIENCE_S)
        return Response(200, b"ok")

    asked_at_once = threading.Event()
    server = HttpServer(("127.0.0.1", 0), handle)
    server.start()
    with ExitStack() as opened:
        clients = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
            for _ in range(3 * module.MOST_REQUESTS)
        ]
        wait_until(lambda: len(server._server._silent) == module.MOST_REQUESTS, "others wait for a place")
        for one in clients:
            one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        asked_at_once.set()
        assert [one.recv(12) for one in clients] == [b"HTTP/1.0 200"] * len(clients)
    server.stop()


@pytest.fixture
def held() -> Iterator[tuple[HttpServer, threading.Event]]:
    """A server that answers when it is told to."""
    told = threading.Event()

    def handle(request: Request) -> Response:
        told.wait(60)
        return Response(200, b"held\n")

    server = HttpServer(("127.0.0.1", 0), handle)
    server.start()
    yield server, told
    told.set()
    server.stop()


def test_a_request_that_is_whole_keeps_its_place(held: tuple[HttpServer, threading.Event]) -> None:
    server, told = held
    asking = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(module.MOST_REQUESTS)]
    for one in asking:
        one.sendall(b"GET / HTTP/1.1\r\n\r\n")
    wait_until(
        lambda: not server._server._silent and len(server._server._deadlines_s) == module.MOST_REQUESTS,
        "all requests are whole",
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as late:
        assert late.recv(1) == b""  # closed: nobody is left to read its request
    told.set()
    for one in asking:
        assert one.recv(12) == b"HTTP/1.0 200"
        one.close()


def test_those_that_do_not_take_their_answers_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 600.0)
    monkeypatch.setattr(module._Handler, "timeout", 600.0)
    large = b"x" * (8 * module.SEND_BUFFER_BYTES)
    server = HttpServer(("127.0.0.1", 0), lambda request: Response(200, large if request.path == "/large" else b"ok"))
    server.start()
    with ExitStack() as opened:
        for _ in range(2 * module.MOST_REQUESTS):
            silent = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            silent.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"ok"
        connection.close()
    server.stop()


def test_one_that_takes_its_answer_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALLED_S", 600.0)  # whoever takes something every ten minutes
    large = b"x" * (8 * module.SEND_BUFFER_BYTES)
    server = HttpServer(("127.0.0.1", 0), lambda _: Response(200, large), most_requests=1)
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as first:
        first.sendall(b"GET / HTTP/1.0\r\n\r\n")
        wait_until(lambda: server._server._taken_s, "a part of the answer is taken")
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as second:
            second.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with first.makefile("rb") as answer:
                assert answer.read().endswith(large)
            with second.makefile("rb") as answer:  # it waited
                assert answer.read().endswith(large)
    server.stop()


def test_an_address_has_a_host_and_a_port_or_is_refused() -> None:
    assert parse_address(":80") == ("127.0.0.1", 80)
    assert parse_address("http://[::1]:0") == ("::1", 0)
    for wrong in ("80", "a:b", "a:70000", "a:" + "9" * 5000, "a:\u0661"):
        with pytest.raises(ValueError, match="is not HOST:PORT"):
            parse_address(wrong)
