"""On which addresses a listener is bound: as a JVM does."""

from __future__ import annotations

import socket

import pytest

from kafka_shim.config import BrokerConfig
from kafka_shim.embedded import Broker
from kafka_shim.listeners import bind, listeners_of
from kafka_shim.tests.ipv6 import wants_ipv6
from kafka_shim.tests.produced import metadata
from kafka_shim.wire_client import Connection

IPV4 = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 0))
IPV6 = (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("::1", 0, 0, 0))


@pytest.mark.parametrize(
    ("addresses", "family"),
    [([IPV6, IPV4], socket.AF_INET), ([IPV4], socket.AF_INET), pytest.param([IPV6], socket.AF_INET6, marks=wants_ipv6)],
)
def test_a_name_with_addresses_of_both_families_is_bound_to_that_of_ipv4(addresses: list, family: int) -> None:
    """`localhost` is `::1` first on many systems, where a Java client tries 127.0.0.1 alone."""
    config = BrokerConfig.parse({"listeners": "PLAINTEXT://localhost:0"})
    with bind(listeners_of(config)[0][0], config, addresses) as sock:
        assert sock.family == family


@wants_ipv6
@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_listener_on_every_address_takes_clients_of_both_families(host: str) -> None:
    with Broker(listen=f"PLAINTEXT://{host}:0") as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        for dialled in ("127.0.0.1", "::1"):
            with Connection(f"[{dialled}]:{port}" if ":" in dialled else f"{dialled}:{port}") as client:
                (found,) = metadata(client, "t").brokers
            assert (found.host, str(found.port)) == (dialled, port)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "127.0.0.1"])
def test_a_socket_listens_once_it_has_its_options(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What connects before is served without them, as with Nagle's algorithm on."""
    without: list[bool] = []
    listen = socket.socket.listen

    def listening(sock: socket.socket, *backlog: int) -> None:
        without.append(not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        listen(sock, *backlog)

    monkeypatch.setattr(socket.socket, "listen", listening)
    config = BrokerConfig.parse({"listeners": f"PLAINTEXT://{host}:0"})
    bind(listeners_of(config)[0][0], config).close()
    assert without == [False]


def test_a_port_that_is_taken_everywhere_is_told_as_any_other() -> None:
    config = BrokerConfig.parse({"listeners": "PLAINTEXT://0.0.0.0:0"})
    with bind(listeners_of(config)[0][0], config) as sock:
        config.listeners = f"PLAINTEXT://0.0.0.0:{sock.getsockname()[1]}"
        with pytest.raises(OSError, match="Address already in use; "):
            bind(listeners_of(config)[0][0], config)
