"""What is known of one connection: its listener, its two addresses, and the client."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.security.listener_security import ListenerSecurity
    from kafka_shim.security.sasl.authenticator import Authenticator


class Listener:
    """One bound listener. `advertised_host` is None if neither `advertised.listeners` nor `listeners` names a host.
    Clients then get the address that they dialled, as the broker's end of the connection shows it. `security` is None
    on a PLAINTEXT listener. `is_controller`: one of `controller.listener.names`, with the controller's APIs."""

    __slots__ = (
        "advertised_host",
        "advertised_port",
        "host",
        "is_controller",
        "name",
        "port",
        "security",
        "security_protocol",
    )

    def __init__(
        self, name: str, host: str, port: int, security_protocol: str = "PLAINTEXT", is_controller: bool = False
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.is_controller = is_controller
        self.advertised_host: str | None = None
        # 0: the bound port.
        self.advertised_port = 0
        self.security: ListenerSecurity | None = None


class Session:
    """One connection, as handlers see it. It lives as long as the connection."""

    __slots__ = (
        "authenticator",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "is_abandonable",
        "is_closed",
        "is_ending",
        "listener",
        "local_host",
        "local_port",
        "members",
        "muted_ms",
        "on_closed",
        "peer_host",
        "peer_port",
        "principal",
    )

    def __init__(self, listener: Listener, peer: tuple[str, int], local: tuple[str, int]) -> None:
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.local_host, self.local_port = local
        self.principal = "User:ANONYMOUS"
        # The SASL exchange and its session, on a listener with SASL. Until it is complete only the requests of the
        # exchange are served.
        self.authenticator: Authenticator | None = None
        # The id under which the client pushes metrics (KIP-714).
        self.client_instance_id: bytes | None = None
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        # (group id, member id) of what this connection sent heartbeats for; known under a virtual clock alone.
        self.members: set[tuple[str, str]] = set()
        # For how long nothing is read from the connection after the response under way (KIP-219).
        self.muted_ms = 0
        # Whether the connection is closed; whether it is once its request is answered, which waits for nothing then;
        # whether that, whose API may not be abandoned, has come to where it only waits, so that nothing is lost if the
        # client goes away.
        self.is_closed = False
        self.is_ending = False
        self.is_abandonable = False
        # Called once, with this object, when the connection is closed and its last request handled: a share session
        # ends with it.
        self.on_closed: Callable[[Session], None] | None = None

    @property
    def is_logging_in(self) -> bool:
        """Whether its request is one of a login, which may wait for keys of tokens, or for the time that a failure is
        held back: a stop waits for neither."""
        return self.authenticator is not None and self.authenticator.is_in_exchange

    def advertised(self) -> tuple[str, int]:
        """Returns the (host, port) for this client in Metadata, FindCoordinator and DescribeCluster."""
        listener = self.listener
        if listener.advertised_host is not None:
            return listener.advertised_host, listener.advertised_port or listener.port
        return self.local_host, self.local_port
