from __future__ import annotations

import socket
import threading

import pytest

from kafka_shim.protocol.messages.envelope_request import EnvelopeRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.wire_client import Connection, RequestError, WireClientError, check, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:1", ("localhost", 1)),
        ("localhost", ("localhost", 9092)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 9092)),
        ("a:1,b:2", ("a", 1)),
        ("PLAINTEXT://127.0.0.1:7", ("127.0.0.1", 7)),
    ],
)
def test_addresses_are_read(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["host:port", ":9092", "PLAINTEXT://:9092", ""])
def test_an_address_without_a_number_or_a_host_is_refused(text):
    """`:9092` was taken for a host of that name."""
    with pytest.raises(WireClientError, match=r"not an address: .*: give HOST:PORT"):
        parse_address(text)


def test_the_highest_version_that_both_know_is_taken(client):
    assert client.version_of(MetadataRequest.API_KEY) == 13
    assert client.request(MetadataRequest(topics=None)).cluster_id


def test_an_api_that_the_broker_does_not_have_is_told(client):
    with pytest.raises(WireClientError, match="Envelope"):
        client.version_of(EnvelopeRequest.API_KEY)


def test_requests_may_be_sent_ahead_and_are_answered_in_order(client):
    sent = [client.send(MetadataRequest(topics=[]), 12) for _ in range(5)]
    assert [client.receive(MetadataRequest.API_KEY, 12)[0] for _ in sent] == sent


def accept_and_close(server):
    server.accept()[0].close()


def test_nobody_listening_and_a_closed_connection_are_told():
    with socket.socket() as bound:  # it does not listen, and nobody else can
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(WireClientError, match="cannot connect"):
            Connection(f"127.0.0.1:{bound.getsockname()[1]}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        acceptor = threading.Thread(target=accept_and_close, args=[server])
        acceptor.start()
        with Connection(f"127.0.0.1:{server.getsockname()[1]}") as connection:
            acceptor.join()
            with pytest.raises(WireClientError, match=r"closed|broke"):
                connection.request(MetadataRequest(topics=[]), 12)


def test_requests_do_not_wait_for_the_acknowledgement_of_those_before(client):
    assert client.detach().getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_ranges_that_the_broker_refuses_are_not_taken_for_none():
    def refuse(server):
        with server.accept()[0] as peer:
            asked = peer.recv(1000)
            peer.sendall(b"\0\0\0\x0c" + asked[8:12] + (58).to_bytes(2) + b"\x01\0\0\0\0\0")

    with socket.create_server(("127.0.0.1", 0)) as server:
        acceptor = threading.Thread(target=refuse, args=[server])
        acceptor.start()
        with (
            Connection(f"127.0.0.1:{server.getsockname()[1]}") as connection,
            pytest.raises(RequestError, match="ApiVersions: SASL_AUTHENTICATION_FAILED"),
        ):
            connection.ranges()
        acceptor.join()


def test_an_error_code_is_an_exception_with_its_reason():
    check(0)
    with pytest.raises(RequestError, match="t: INVALID_PARTITIONS: too few"):
        check(37, "too few", "t")
