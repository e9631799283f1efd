"""Clients that say they send nothing more, and then read: the answers under way are whole, with TLS and without."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafka_shim.cext.messages import decode_prefix
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.fetch_response import FetchResponse
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.metadata_response import MetadataResponse
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce
from kafka_shim.tests.waiting import until
from kafka_shim.tls_transport import TlsTransport
from kafka_shim.wire_client import Connection

MB = 1 << 20
STORED = 12
NAMES = 20_000
SILENCE_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    key, chain = CertificateAuthority().issue("localhost")
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
        "socket.send.buffer.bytes": "65536",
        "auto.create.topics.enable": "false",
    }
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options) as running:
        with Connection(running.bootstrap_servers) as client:
            make_topic(client, "t")
            for _ in range(STORED):
                assert produce(client, "t", 0, batch(bytes(MB - 1000))).error_code == 0
        yield running


class Client:
    """Sends frames, half-closes, and reads to the end. TLS is done by hand, because `ssl.SSLSocket` reads no more after
    it has said that it writes no more."""

    def __init__(self, broker: Broker, tls: ssl.TLSVersion | None, says_so: bool) -> None:
        name = "PLAINTEXT" if tls is None else "SSL"
        (listener,) = [one for one in broker.state.listeners if one.name == name]
        self._socket = socket.create_connection(("127.0.0.1", listener.port), timeout=SILENCE_S)
        self._tls: ssl.SSLObject | None = None
        self._says_so = says_so
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = tls
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = context.wrap_bio(self._incoming, self._outgoing)
            while not self._is_done(self._tls.do_handshake):
                self._incoming.write(self._socket.recv(65536))
            assert self._tls.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[tls.name]

    def _is_done(self, step: object) -> bool:
        try:
            step()  # type: ignore[operator]
        except ssl.SSLWantReadError:
            return False
        finally:
            self._socket.sendall(self._outgoing.read())
        return True

    def ask_and_half_close(self, frames: bytes) -> bytes:
        """Returns all that the broker sends from then on."""
        self.ask(frames)
        return self.read_all()

    def ask(self, frames: bytes) -> None:
        """Send the frames, and that nothing follows."""
        if self._tls is None:
            self._socket.sendall(frames)
            self._socket.shutdown(socket.SHUT_WR)
            return
        self._tls.write(frames)
        if self._says_so:
            self._is_done(self._tls.unwrap)
        else:
            self._socket.sendall(self._outgoing.read())
            self._socket.shutdown(socket.SHUT_WR)

    def read_all(self) -> bytes:
        """Returns all that the broker sends."""
        answer = bytearray()
        if self._tls is None:
            while data := self._socket.recv(65536):
                answer += data
            return bytes(answer)
        while data := self._socket.recv(65536):
            self._incoming.write(data)
            while True:
                try:
                    some = self._tls.read(65536)
                except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                    break
                if not some:
                    break
                answer += some
        return bytes(answer)

    def close(self) -> None:
        self._socket.close()


def frames_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4])
        assert len(data) >= 4 + size, f"a frame of {size} bytes is cut after {len(data) - 4}"
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


WAYS = [
    pytest.param(None, False, id="plaintext"),
    pytest.param(ssl.TLSVersion.TLSv1_2, True, id="TLS 1.2, close_notify"),
    pytest.param(ssl.TLSVersion.TLSv1_3, True, id="TLS 1.3, close_notify"),
    pytest.param(ssl.TLSVersion.TLSv1_2, False, id="TLS 1.2, FIN"),
    pytest.param(ssl.TLSVersion.TLSv1_3, False, id="TLS 1.3, FIN"),
]


@pytest.mark.parametrize(("tls", "says_so"), WAYS)
def test_answers_to_all_requests_arrive_whole(broker: Broker, tls: ssl.TLSVersion | None, says_so: bool) -> None:
    """Stored bytes that are read as the client takes them, and a request that is answered in later turns."""
    fetch = fetch_request({("t", 0): 0}, max_bytes=64 * MB, partition_max_bytes=64 * MB)
    topics = [MetadataRequestTopic(name=f"n{number}") for number in range(NAMES)]
    names = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    requests = encode_request_frame(fetch, 12, 1, "t") + encode_request_frame(names, 9, 2, "t")
    with ExitStack() as stack:
        client = Client(broker, tls, says_so)
        stack.callback(client.close)
        fetched, described = frames_of(client.ask_and_half_close(requests))
    records = decode_prefix(FetchResponse, 12, fetched, 5)[0].responses[0].partitions[0].records
    assert len(records) > STORED * (MB - 1000)
    assert len(decode_prefix(MetadataResponse, 9, described, 5)[0].topics) == NAMES


@pytest.mark.parametrize(("tls", "says_so"), WAYS)
def test_parked_request_ends_with_its_connection(broker: Broker, tls: ssl.TLSVersion | None, says_so: bool) -> None:
    """Nobody may be there any more: a Fetch that waits for records does not wait for a client that has gone."""
    parked = fetch_request({("t", 0): STORED}, max_wait_ms=10**6, min_bytes=1)
    client = Client(broker, tls, says_so)
    assert client.ask_and_half_close(encode_request_frame(parked, 12, 1, "t")) == b""
    client.close()


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_follows_close_notify_is_not_read(broker: Broker, tls: ssl.TLSVersion) -> None:
    """Nobody would take it out of memory again."""
    client = Client(broker, tls, True)
    client.ask(
        encode_request_frame(fetch_request({("t", 0): 0}, max_bytes=64 * MB, partition_max_bytes=64 * MB), 12, 1, "t")
    )
    until(broker, lambda: not any(socket.is_reading() for socket in tls_sockets(broker)))
    (fetched,) = frames_of(client.read_all())
    assert len(fetched) > STORED * (MB - 1000)
    client.close()


def tls_sockets(broker: Broker) -> list[asyncio.Transport]:
    transports = [connection._transport for connection in broker._server._registry.connections]
    found = [transport._socket for transport in transports if isinstance(transport, TlsTransport)]
    assert len(found) == 1
    return found
