"""Parses `listeners` and `advertised.listeners`, and binds the sockets. Uses no event loop."""

from __future__ import annotations

import socket

from kafka_shim.config import ConfigError
from kafka_shim.session import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig


def parse_endpoints(text: str, option: str) -> list[tuple[str, str, int]]:
    """Returns (listener name, host, port) of each entry `NAME://HOST:PORT`, with the brackets of IPv6 hosts removed.
    Raises ConfigError."""
    endpoints = []
    for entry in text.split(","):
        name, scheme, address = entry.strip().partition("://")
        host, colon, port = address.rpartition(":")
        if not (name and scheme and colon and port.isdigit() and int(port) < 65536):
            raise ConfigError(f"{option}: {entry.strip()!r} is not NAME://HOST:PORT")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ConfigError(f"{option}: an IPv6 address stands in brackets: {entry.strip()!r}")
        endpoints.append((name.upper(), host, int(port)))
    if len({name for name, _, _ in endpoints}) < len(endpoints):
        raise ConfigError(f"{option}: each listener needs a name of its own")
    return endpoints


def listeners_of(config: BrokerConfig) -> list[Listener]:
    """Returns the listeners to bind, with the configured ports. Raises ConfigError for what is not implemented."""
    protocols = {}
    for entry in config.listener_security_protocol_map.split(","):
        name, _, protocol = entry.strip().partition(":")
        protocols[name.upper()] = protocol.upper()
    found = []
    for name, host, port in parse_endpoints(config.listeners, "listeners"):
        if name in config.controller_listener_names:
            config.warnings.append(f"listener {name}: this broker is its own controller and opens no port for it")
            continue
        if name not in protocols:
            raise ConfigError(f"listeners: {name} is not in listener.security.protocol.map")
        protocol = protocols[name]
        if protocol != "PLAINTEXT":
            raise ConfigError(f"listeners: {name} asks for {protocol}, which is not implemented yet; only PLAINTEXT is")
        found.append(Listener(name, host, port, protocol))
    if not found:
        raise ConfigError("listeners: there is none for clients")
    if config.advertised_listeners is not None:
        by_name = {listener.name: listener for listener in found}
        for name, host, port in parse_endpoints(config.advertised_listeners, "advertised.listeners"):
            if name in config.controller_listener_names:
                continue
            if name not in by_name:
                raise ConfigError(f"advertised.listeners: there is no listener {name}")
            if host in ("", "0.0.0.0", "::"):
                raise ConfigError("advertised.listeners: clients cannot connect to every address; name one")
            by_name[name].advertised_host, by_name[name].advertised_port = host, port
    return found


def bind(listener: Listener, config: BrokerConfig) -> socket.socket:
    """Returns a listening socket and sets `listener.port` to the bound port. Raises OSError, whose message names the
    listener."""
    try:
        sock = _bind(listener)
    except OSError as err:
        raise OSError(err.errno, f"cannot listen on {printable(listener)}: {err.strerror}") from err
    # Accepted sockets inherit these. Without uvloop, asyncio would leave Nagle's algorithm on. Kafka's default buffer
    # sizes would only slow down a local socket.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, option, size_bytes in (
        ("socket.send.buffer.bytes", socket.SO_SNDBUF, config.socket_send_buffer_bytes),
        ("socket.receive.buffer.bytes", socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
    ):
        if name in config.given and size_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)
    sock.listen(config.socket_listen_backlog_size)
    sock.setblocking(False)
    listener.port = sock.getsockname()[1]
    return sock


def _bind(listener: Listener) -> socket.socket:
    if not listener.host:
        sock = _bind_everywhere(listener.port)
        listener.host = "0.0.0.0"
        return sock
    family, _, _, _, address = socket.getaddrinfo(
        listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _bind_everywhere(port: int) -> socket.socket:
    """Bind IPv4 and IPv6 on one port if the system supports it, as a JVM does."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def printable(listener: Listener) -> str:
    """`NAME://HOST:PORT`, IPv6 in brackets."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"
