"""What is between a socket and a connection with TLS: whose buffers it uses, and what it holds."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_shim.embedded import Broker
from kafka_shim.tests.test_connection import until
from kafka_shim.tls_transport import TlsTransport

SILENCE_S = 60


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def bare(broker: Broker) -> Iterator[socket.socket]:
    """A connection without TLS that the broker knows of."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SILENCE_S) as opened:
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
