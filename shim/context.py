"""What a handler knows of one request (Kafka's RequestContext)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.quota.request_throttle import RequestThrottle
    from kafka_shim.session import Listener, Session


class Context:
    """One request, valid from its decoding until its response. `node_id` is an attribute and not a constant, so that
    one process can hold several nodes later."""

    __slots__ = (
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "correlation_id",
        "is_large",
        "received_ms",
        "session",
        "throttle",
    )

    def __init__(
        self,
        broker: Broker,
        session: Session,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        received_ms: int,
    ) -> None:
        self.broker = broker
        self.session = session
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_ms = received_ms
        # Whether the request has very many entries. Its bytes are then its own, not those of the receive buffer.
        self.is_large = False
        # Counts what the request uses, while a client has a quota.
        self.throttle: RequestThrottle | None = None

    def note_member(self, group_id: str, member_id: str) -> None:
        """The connection speaks for this member, which lives as long as it while a virtual clock is moved for clients
        that are alive."""
        if self.broker.clock.is_virtual:
            self.session.members.add((group_id, member_id))

    @property
    def node_id(self) -> int:
        return self.broker.node_id

    @property
    def listener(self) -> Listener:
        return self.session.listener

    @property
    def principal(self) -> str:
        return self.session.principal

    @property
    def peer_host(self) -> str:
        """The client's address. Groups show it after a slash."""
        return self.session.peer_host
