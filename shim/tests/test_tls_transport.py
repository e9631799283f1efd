"""What is between a socket and a connection with TLS: whose buffers it uses, and what it holds."""

from __future__ import annotations

import _ssl
import asyncio
import ctypes
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.connection import Connection
from kafka_shim.embedded import Broker
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.test_connection import until
from kafka_shim.tls_transport import TlsTransport

SILENCE_S = 60
# More than one read of the socket has room for, and fewer bytes than it may be answered with.
UPDATES = 20_000
MOST_UNSENT_BYTES = 1 << 18


@contextmanager
def bare(broker: Broker, receive_bytes: int = 65536) -> Iterator[socket.socket]:
    """A connection without TLS that the broker knows of."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.socket() as opened:
        opened.settimeout(SILENCE_S)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened.connect((host, int(port)))
        until(broker, lambda: broker._server._registry.connections)
        yield opened


def transport_of(broker: Broker) -> TlsTransport:
    """That of the one connection."""
    (connection,) = broker._server._registry.connections
    assert isinstance(connection._transport, TlsTransport)
    return connection._transport


def test_brokers_of_one_process_read_into_buffers_of_their_own():
    """Each has a thread, and both may read at the same time."""
    with Broker(tls=True) as first, Broker(tls=True) as second, bare(first), bare(second):
        buffers = [broker.call(lambda broker=broker: transport_of(broker).get_buffer(-1)) for broker in (first, second)]
        buffers[0][:4], buffers[1][:4] = b"mine", b"your"
        assert bytes(buffers[0][:4]) == b"mine"


class KeyUpdates:
    """A client over OpenSSL itself, which `ssl` is linked with and shows less of: it asks for new keys and reads
    nothing."""

    def __init__(self, sock: socket.socket) -> None:
        pointer = ctypes.c_void_p
        openssl = ctypes.CDLL(_ssl.__file__)  # finds what it is linked with, too
        for name, result, arguments in (
            ("TLS_client_method", pointer, []),
            ("SSL_CTX_new", pointer, [pointer]),
            ("SSL_CTX_free", None, [pointer]),
            ("SSL_new", pointer, [pointer]),
            ("SSL_free", None, [pointer]),
            ("SSL_set_fd", ctypes.c_int, [pointer, ctypes.c_int]),
            ("SSL_connect", ctypes.c_int, [pointer]),
            ("SSL_key_update", ctypes.c_int, [pointer, ctypes.c_int]),
            ("SSL_do_handshake", ctypes.c_int, [pointer]),
        ):
            function = getattr(openssl, name)
            function.restype, function.argtypes = result, arguments
        self._openssl = openssl
        self._context = openssl.SSL_CTX_new(openssl.TLS_client_method())
        self._tls = openssl.SSL_new(self._context)
        openssl.SSL_set_fd(self._tls, sock.fileno())
        assert openssl.SSL_connect(self._tls) == 1

    def send(self) -> bool:
        """Ask for one. Returns whether there was room for it."""
        assert self._openssl.SSL_key_update(self._tls, 1) == 1
        return self._openssl.SSL_do_handshake(self._tls) == 1

    def free(self) -> None:
        self._openssl.SSL_free(self._tls)
        self._openssl.SSL_CTX_free(self._context)


def test_a_client_that_takes_no_answer_of_tls_itself_is_not_read(loop_factory):
    """To each KeyUpdate OpenSSL answers with another."""
    with (
        Broker(tls=True, loop_factory=loop_factory, socket_send_buffer_bytes=16384) as broker,
        bare(broker, receive_bytes=4096) as sock,
    ):
        sock.settimeout(None)
        client = KeyUpdates(sock)
        transport = transport_of(broker)
        until(broker, lambda: transport._is_secured)
        sock.setblocking(False)
        for _ in range(UPDATES):
            if not client.send():
                break
        until(broker, lambda: not transport._socket.is_reading())
        assert broker.call(transport.get_write_buffer_size) < MOST_UNSENT_BYTES
        sock.setblocking(True)
        while not broker.call(transport._socket.is_reading):
            assert sock.recv(65536)
        client.free()


NO_MEMORY = SimpleNamespace(pending=1, read=no_memory_left)


def reads_what_is_decrypted(transport: TlsTransport) -> Callable[[], None]:
    transport._tls = NO_MEMORY
    return transport._read


def answers_of_itself(transport: TlsTransport) -> Callable[[], None]:
    transport._outgoing = NO_MEMORY
    return transport._read


def ends_the_handshake(transport: TlsTransport) -> Callable[[], None]:
    transport._outgoing = NO_MEMORY
    return lambda: transport.step_taken(None)


def reads_again(transport: TlsTransport) -> Callable[[], None]:
    transport._has_unsent = True
    transport._follow_pauses = no_memory_left
    return transport.resume_writing


STEPS = (reads_what_is_decrypted, answers_of_itself, ends_the_handshake, reads_again)


@pytest.mark.parametrize("step", STEPS)
def test_a_client_is_closed_where_memory_ends_in_a_step_that_the_loop_takes(loop_factory: Any, step: Any) -> None:
    """The loop tells nobody that it failed: the client would have no answer, and not know."""
    with Broker(tls=True, loop_factory=loop_factory) as broker, bare(broker) as sock:
        transport = transport_of(broker)
        broker.call(lambda: asyncio.get_running_loop().call_soon(step(transport)))
        assert not sock.recv(1)
        until(broker, lambda: not broker._server._registry.connections)


def test_a_client_is_closed_where_memory_ends_before_its_connection_begins(
    loop_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No registry knows of it, so that no time to log in or to be idle would end."""
    with Broker(tls=True, loop_factory=loop_factory) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        monkeypatch.setattr(Connection, "connection_made", no_memory_left)
        with socket.create_connection((host, int(port)), timeout=SILENCE_S) as sock:
            assert not sock.recv(1)


def test_a_stop_ends_the_connections_of_its_clients_without_a_word(loop_factory: Any, caplog: Any) -> None:
    with Broker(tls=True, loop_factory=loop_factory) as broker, bare(broker) as sock:
        broker.stop()
        assert not sock.recv(1)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
