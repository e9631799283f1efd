"""The holder of a broker's state objects, and what one request knows of its surroundings. No logic here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_sessions import FetchSessionCache
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.group.coordinator import GroupCoordinator
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.metrics import Metrics
    from kafka_shim.network_send import SendMemory
    from kafka_shim.protocol.messages.metadata_response import MetadataResponseTopic
    from kafka_shim.storage.logs import Logs
    from kafka_shim.txn.coordinator import TransactionCoordinator
    from kafka_shim.txn.producer_ids import ProducerIds
    from kafka_shim.waiters import Waiter


class Listener:
    """One listener as it is bound. `advertised_host` is None when `advertised.listeners` does not name it: then a
    client is told the address it dialled, as this side of its connection sees it."""

    __slots__ = ("advertised_host", "advertised_port", "host", "name", "port", "security_protocol")

    def __init__(self, name: str, host: str, port: int, security_protocol: str = "PLAINTEXT") -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.advertised_host: str | None = None
        self.advertised_port = -1


class Session:
    """One connection, as handlers see it. Lives as long as the connection."""

    __slots__ = (
        "client_software_name",
        "client_software_version",
        "listener",
        "local_host",
        "local_port",
        "peer_host",
        "peer_port",
        "principal",
    )

    def __init__(self, listener: Listener, peer: tuple[str, int], local: tuple[str, int]) -> None:
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.local_host, self.local_port = local
        self.principal = "User:ANONYMOUS"
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"

    def advertised(self) -> tuple[str, int]:
        """The (host, port) to give to this client in Metadata, FindCoordinator and DescribeCluster."""
        listener = self.listener
        if listener.advertised_host is not None:
            return listener.advertised_host, listener.advertised_port
        return self.local_host, self.local_port


class Context:
    """One request: valid from its decoding until its answer. `node_id` is here, not a constant: one process may hold
    several nodes one day."""

    __slots__ = (
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "correlation_id",
        "received_ms",
        "session",
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
        """The client's address, as groups show it after a slash."""
        return self.session.peer_host


class Broker:
    """Everything that handlers reach through `context.broker`. `server` fills it in, in the order of the start."""

    __slots__ = (
        "clock",
        "cluster_id",
        "config",
        "described_topics",
        "faults",
        "fetch_sessions",
        "groups",
        "listeners",
        "logs",
        "metadata",
        "metrics",
        "node_id",
        "parked",
        "producer_ids",
        "receive_memory",
        "send_memory",
        "stopping",
        "transactions",
    )

    config: BrokerConfig
    clock: Clock
    faults: Faults
    metrics: Metrics
    logs: Logs
    metadata: MetadataStore
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    fetch_sessions: FetchSessionCache
    receive_memory: ReceiveMemory
    send_memory: SendMemory

    def __init__(self) -> None:
        self.node_id = 1
        self.cluster_id = ""
        self.listeners: list[Listener] = []
        # True from the start of a clean stop: parked requests answer at once.
        self.stopping = False
        # topic id -> (offset of the metadata log, its part of a Metadata answer): kept while metadata stands still.
        self.described_topics: dict[bytes, tuple[tuple[int, int], MetadataResponseTopic]] = {}
        # Whoever waits and may be woken to look at `stopping`.
        self.parked: set[Waiter] = set()
