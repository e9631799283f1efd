"""Clients whose login cannot begin, for lack of memory, or of a descriptor for a module: they are served nothing."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.registry import Registry
from kafka_shim.security import principals
from kafka_shim.security.sasl.authenticator import Authenticator
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.waiting import until
from kafka_shim.wire_client import Connection, WireClientError

USERS = {"alice": "secret"}


@contextmanager
def connected(broker: Broker) -> Iterator[Connection]:
    security = broker._security
    assert security is not None
    with Connection(broker.bootstrap_servers) as client:
        if security.tls:
            context = ssl.create_default_context(cadata=security.authority_certificate)
            client._socket = context.wrap_socket(client._socket, server_hostname="localhost")
        yield client


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("where", "what"),
    [(Authenticator, "__init__"), (principals.AuthenticationContext, "__init__"), (Registry, "await_login")],
)
def test_a_client_whose_login_could_not_begin_is_served_nothing(loop_factory, monkeypatch, tls, where, what):
    """It was served as one that need not log in."""
    with Broker(tls=tls, sasl="PLAIN", users=USERS, loop_factory=loop_factory) as broker:
        with monkeypatch.context() as patch, suppress(OSError):
            patch.setattr(where, what, no_memory_left)
            with connected(broker) as client, pytest.raises((WireClientError, OSError)):
                client.request(MetadataRequest(topics=None), 12)
        until(broker, lambda: not broker._server._registry.connections)
