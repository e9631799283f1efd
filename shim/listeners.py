"""Parses `listeners` and `advertised.listeners`, and binds the sockets. Uses no event loop."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import sys
from functools import partial

from kafka_shim.config import ConfigError
from kafka_shim.metadata.registration import SECURITY_PROTOCOLS
from kafka_shim.monitoring import HTTP_NAME, HTTPS
from kafka_shim.ports import HIGHEST_PORT, parse_port
from kafka_shim.session import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig, ListenerOptions
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.security.delegation_tokens import DelegationTokens
    from kafka_shim.security.listener_security import ListenerSecurity

    # As `socket.getaddrinfo` returns them.
    Address = tuple[int, int, int, str, Any]

logger = logging.getLogger("kafka_shim.server")

# The security protocols that a listener's name may be, besides PLAINTEXT.
SECURED = frozenset(SECURITY_PROTOCOLS) - {"PLAINTEXT"}
# Hosts that bind every interface, and that no client can connect to.
EVERYWHERE = ("", "0.0.0.0", "::")


def parse_endpoints(text: str, option: str) -> list[tuple[str, str, int]]:
    """Returns (listener name, host, port) of each entry `NAME://HOST:PORT`, with the brackets of IPv6 hosts removed.
    Raises ConfigError."""
    endpoints = []
    if text.strip().startswith("[") and text.strip().endswith("]"):
        raise ConfigError(f"{option} is a list without brackets around it: NAME://HOST:PORT,NAME://HOST:PORT")
    for entry in text.split(","):
        name, scheme, address = entry.strip().partition("://")
        if not (name and scheme):
            raise ConfigError(f"{option}: {entry.strip()!r} is not NAME://HOST:PORT")
        endpoints.append((name.upper(), *parse_address(address, option, entry.strip(), "NAME://HOST:PORT")))
    if len({name for name, _, _ in endpoints}) < len(endpoints):
        raise ConfigError(f"{option}: each listener needs a name of its own")
    return endpoints


def parse_address(address: str, option: str, given: str, form: str) -> tuple[str, int]:
    """Returns (host, port) of HOST:PORT, which is part of what was `given` in this `form`. Raises ConfigError."""
    host, colon, text = address.rpartition(":")
    port = parse_port(text)
    if not colon or port is None:
        raise ConfigError(f"{option}: {given!r} is not {form}")
    if port > HIGHEST_PORT:
        raise ConfigError(f"{option}: {given!r}: a port is a number from 0 to {HIGHEST_PORT}")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], port
    if ":" in host:
        raise ConfigError(f"{option}: an IPv6 address must be in brackets: {given!r}")
    return host, port


def listeners_of(config: BrokerConfig) -> tuple[list[Listener], list[Listener]]:
    """Returns the listeners to bind, with the configured ports: those for clients, and the controller's in the order of
    `controller.listener.names`. Raises ConfigError."""
    protocols = _protocols(config)
    found: list[Listener] = []
    controllers: list[Listener] = []
    for name, host, port in parse_endpoints(config.listeners, "listeners"):
        if name not in protocols:
            raise ConfigError(f"listeners: {name} is not in listener.security.protocol.map")
        protocol = protocols[name]
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map: {protocol} of {name} is not a security protocol")
        is_controller = name in config.controller_listener_names
        listener = Listener(name, host, port, protocol, is_controller)
        if host not in EVERYWHERE:
            listener.advertised_host = host
        (controllers if is_controller else found).append(listener)
    if not found:
        raise ConfigError("listeners: none is for clients, name one that is not in controller.listener.names")
    has_https = config.kafka_shim_http_listener.startswith(HTTPS)
    if has_https and any(one.name == HTTP_NAME for one in (*found, *controllers)):
        raise ConfigError(f"listeners: {HTTP_NAME} is the name of kafka.shim.http.listener: choose another one")
    advertised = [listener.name for listener in found]
    if config.advertised_listeners is not None:
        by_name = {listener.name: listener for listener in (*found, *controllers)}
        advertised = []
        for name, host, port in parse_endpoints(config.advertised_listeners, "advertised.listeners"):
            if name not in by_name:
                if name in config.controller_listener_names:
                    continue
                raise ConfigError(f"advertised.listeners: there is no listener {name}")
            if host in EVERYWHERE:
                raise ConfigError("advertised.listeners: clients cannot connect to every address; name one")
            if not by_name[name].is_controller:
                advertised.append(name)
            by_name[name].advertised_host, by_name[name].advertised_port = host, port
    _check_inter_broker(config, advertised)
    controllers.sort(key=lambda listener: config.controller_listener_names.index(listener.name))
    return found, controllers


def _protocols(config: BrokerConfig) -> dict[str, str]:
    """Returns the security protocol of each listener name. Without `listener.security.protocol.map`, a controller's
    listener whose name is no protocol is PLAINTEXT, unless some listener is named after SSL or SASL."""
    protocols = {}
    for entry in config.listener_security_protocol_map.split(","):
        name, _, protocol = entry.strip().partition(":")
        protocols[name.upper()] = protocol.upper()
    if "listener.security.protocol.map" not in config.given:
        names = [name for name, _, _ in parse_endpoints(config.listeners, "listeners")]
        if not any(name in SECURED for name in (*names, *config.controller_listener_names)):
            protocols.update(dict.fromkeys(config.controller_listener_names, "PLAINTEXT"))
    return protocols


def _check_inter_broker(config: BrokerConfig, advertised: list[str]) -> None:
    """Where the options name an inter-broker listener, Kafka starts only if it is advertised."""
    wanted = config.inter_broker_listener_name
    if wanted is not None and "security.inter.broker.protocol" in config.given:
        raise ConfigError("Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.")
    if "security.inter.broker.protocol" in config.given:
        wanted = config.security_inter_broker_protocol
        if wanted.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(f"security.inter.broker.protocol: {wanted} is not a security protocol")
    if wanted is not None and wanted.upper() not in advertised:
        raise ConfigError(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
            f"based on currently configured listeners are {','.join(advertised)}"
        )


def secure_listeners(
    listeners: Sequence[Listener],
    config: BrokerConfig,
    metadata: MetadataStore,
    tokens: DelegationTokens | None,
    clock: Clock,
    *,
    is_start: bool,
) -> None:
    """Prepare the security of the listeners whose protocol is not PLAINTEXT, or whose principals a class of the
    user's makes: Kafka asks it for a client that proves nothing, too. Raises ConfigError."""
    secured = [
        listener
        for listener in listeners
        if listener.security_protocol != "PLAINTEXT" or _has_own_principals(config, listener)
    ]
    if not secured:
        return
    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.listener_security import ListenerSecurity
    from kafka_shim.security.sasl.scram import Credentials

    def of_user(user: str, mechanism: int) -> Any:
        return metadata.image.scram.get((user, mechanism))

    credentials = Credentials(of_user, None if tokens is None else tokens.credential)
    for listener in secured:
        options = ListenerOptions(config, listener.name)
        between = listener.name == config.inter_broker_listener_name or (
            "security.inter.broker.protocol" in config.given and listener.name == config.security_inter_broker_protocol
        )
        made = partial(
            ListenerSecurity,
            listener.security_protocol,
            credentials=credentials,
            clock=clock,
            is_between_brokers=between,
            is_of_start=is_start,
        )
        try:
            listener.security = made(options)
        except ConfigError as error:
            # A keystore may be gone since its name was stored. As in Kafka no stored option stops a start.
            listener.security = _without_stored(listener, config, made) if is_start else None
            if listener.security is None:
                raise
            logger.warning("listener %s is opened without its stored options: %s", listener.name, error)


def _without_stored(
    listener: Listener, config: BrokerConfig, made: Callable[[ListenerOptions], ListenerSecurity]
) -> ListenerSecurity | None:
    """Returns the security of a listener by the options of the start alone. None if it has no stored ones, if those
    of the start are not enough, and with `--strict-security`."""
    from kafka_shim.config import ListenerOptions

    options = ListenerOptions(config, listener.name, {})
    if config.strict_security or options.texts() == ListenerOptions(config, listener.name).texts():
        return None
    with contextlib.suppress(ConfigError):
        return made(options)
    return None


def check_listeners(listeners: Sequence[Listener], config: BrokerConfig, dynamic: Mapping[str, str]) -> None:
    """Raise ConfigError if the security of a listener cannot follow these dynamic options."""
    for listener in listeners:
        if listener.security is not None:
            from kafka_shim.config import ListenerOptions

            listener.security.check(ListenerOptions(config, listener.name, dynamic))


def _has_own_principals(config: BrokerConfig, listener: Listener) -> bool:
    if not any(name.endswith("principal.builder.class") for name in config.given):
        return False
    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.principals import DEFAULT_CLASS

    return ListenerOptions(config, listener.name).text("principal.builder.class") not in (None, "", DEFAULT_CLASS)


def reload_listeners(listeners: Sequence[Listener], config: BrokerConfig) -> None:
    """Take over changed options. A listener whose new options are bad keeps the old ones; one line says so."""
    for listener in listeners:
        if listener.security is not None:
            from kafka_shim.config import ListenerOptions

            try:
                listener.security.reload(ListenerOptions(config, listener.name))
            except (ConfigError, OSError) as err:  # OSError: no descriptor is left to read a store
                logger.warning("listener %s keeps its security as it was: %s", listener.name, err)


def warn_of_strange_prefixes(listeners: Sequence[Listener], config: BrokerConfig) -> None:
    """Log the options of the start that name no listener. Raises ConfigError with `--strict-security`: what they were
    to protect is open."""
    prefixes = {f"listener.name.{listener.name.lower()}." for listener in listeners}
    prefixes |= {f"listener.name.{name.lower()}." for name in config.controller_listener_names}
    if config.kafka_shim_http_listener.startswith(HTTPS):
        prefixes.add(f"listener.name.{HTTP_NAME.lower()}.")
    strange = [
        name for name in config.given if name.startswith("listener.name.") and not name.startswith(tuple(prefixes))
    ]
    if not strange:
        return
    said = f"without effect, there is no such listener (names are lower case here): {', '.join(strange)}"
    if config.strict_security:
        raise ConfigError(f"--strict-security: {said}")
    logger.warning("%s", said)


def bind(listener: Listener, config: BrokerConfig, addresses: Sequence[Address] = ()) -> socket.socket:
    """Returns a listening socket and sets `listener.port` to the bound port. `addresses` are those of its host, which
    are looked up else: that blocks if the host is a name. Raises OSError, whose message names the listener."""
    try:
        sock = _bind(listener, addresses)
    except (OSError, UnicodeError) as err:
        raise cannot_listen(listener, err) from err
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
    _send_unpaced(sock)
    sock.listen(config.socket_listen_backlog_size)
    sock.setblocking(False)
    listener.port = sock.getsockname()[1]
    return sock


def why_not_bound(error: OSError, port: int) -> str:
    """Return why an address could not be listened on, and what to do."""
    advice = ""
    instead = "another port, or port 0 (--listen HOST:0) for a free one"
    if error.errno == errno.EADDRINUSE:
        shows = f"ss -ltnp 'sport = :{port}'" if sys.platform == "linux" else f"lsof -nP -iTCP:{port} -sTCP:LISTEN"
        advice = f"; {shows} shows what listens there; take {instead}"
    elif error.errno == errno.EADDRNOTAVAIL:
        advice = "; no interface of this machine has the address: 127.0.0.1 is for this machine alone, 0.0.0.0 for all"
    elif error.errno == errno.EACCES:
        advice = f"; the user may not take this port: take {instead}"
    elif isinstance(error, socket.gaierror):
        advice = "; the host is not known here: give an address of this machine"
    return f"{error.strerror}{advice}"


def _send_unpaced(sock: socket.socket) -> None:
    """Have a listener on the loopback interface send without BBR where that is the system's congestion control: it
    paces by timers what no network limits, which is half of the CPU of a large Fetch (docs/adr/0044-sendfile.md).
    Accepted sockets inherit it. Every system allows reno to every user."""
    address = sock.getsockname()[0]
    if not hasattr(socket, "TCP_CONGESTION") or not (address == "::1" or address.startswith("127.")):
        return
    with contextlib.suppress(OSError):  # a kernel that keeps it from containers
        if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).startswith(b"bbr"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def cannot_listen(listener: Listener, err: OSError | UnicodeError) -> OSError:
    """Returns the error with the name of the listener."""
    if isinstance(err, UnicodeError):  # Python asks no resolver for what can be no name: `a..b`
        err = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return OSError(err.errno, f"cannot listen on {printable(listener)}: {why_not_bound(err, listener.port)}")


def has_name(listener: Listener) -> bool:
    """Whether its host is a name, which the system may ask others for."""
    if not listener.host:
        return False
    try:
        socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return True
    return False


def _bind(listener: Listener, addresses: Sequence[Address]) -> socket.socket:
    if listener.host in EVERYWHERE:
        sock = bound_everywhere(listener.port)
        listener.host = listener.host or "0.0.0.0"
        return sock
    if not addresses:
        addresses = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # As in Java one of IPv4 before those of IPv6: its clients look for no other of a name that has both.
    family, _, _, _, address = next((one for one in addresses if one[0] == socket.AF_INET), addresses[0])
    return bound(family, address)


def bound_everywhere(port: int) -> socket.socket:
    """Bind IPv4 and IPv6 on one port if the system supports it, as a JVM does, also for `0.0.0.0`. Raises OSError."""
    if not socket.has_dualstack_ipv6():
        return bound(socket.AF_INET, ("", port))
    return bound(socket.AF_INET6, ("::", port), is_dual=True)


def bound(family: int, address: Any, *, is_dual: bool = False) -> socket.socket:
    """Returns a bound socket that does not listen yet: a connection that came before its options are set would have
    none of them. `is_dual`: one of IPv6 takes IPv4 too. Raises OSError."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_dual:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def endpoints_of(listeners: Sequence[Listener]) -> list[tuple[str, str, int, int]]:
    """Returns the endpoint of each bound listener as it is registered: name, host, port, security protocol."""
    return [
        (
            one.name,
            one.advertised_host or one.host,
            one.advertised_port or one.port,
            SECURITY_PROTOCOLS[one.security_protocol],
        )
        for one in listeners
    ]


def printable(listener: Listener) -> str:
    """`NAME://HOST:PORT`, IPv6 in brackets."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"
