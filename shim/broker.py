"""The container of a broker's state objects. It has no logic."""

from __future__ import annotations

from kafka_shim.cext.plain_api import BrokerBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kafka_shim.api.fetch_sessions import FetchSessionCache
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.group.coordinator import GroupCoordinator
    from kafka_shim.large_requests import LargeRequests
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.metrics import Metrics
    from kafka_shim.network_send import SendMemory
    from kafka_shim.protocol.messages.metadata_response import MetadataResponseTopic
    from kafka_shim.quota.quotas import Quotas
    from kafka_shim.security.acl import Authorizer
    from kafka_shim.security.acl_control import AclControl
    from kafka_shim.security.audit_log import AuditLog
    from kafka_shim.security.delegation_tokens import DelegationTokens
    from kafka_shim.session import Listener
    from kafka_shim.share.persister import ShareStatePersister
    from kafka_shim.share.share_partitions import SharePartitions
    from kafka_shim.storage.batch_checks import BatchChecks
    from kafka_shim.storage.logs import Logs
    from kafka_shim.telemetry.client_metrics import ClientMetrics
    from kafka_shim.turns import Turns
    from kafka_shim.txn.coordinator import TransactionCoordinator
    from kafka_shim.txn.producer_ids import ProducerIds
    from kafka_shim.waiters import Waiter


class Broker(BrokerBase):
    """Everything that handlers reach through `context.broker`. `server` sets the attributes, in the order of
    start-up."""

    __slots__ = (
        "acls",
        "audit_log",
        "batch_checks",
        "client_metrics",
        "cluster_id",
        "config",
        "controller_listeners",
        "described_topics",
        "disconnect",
        "fetch_sessions",
        "http_address",
        "large_requests",
        "listeners",
        "logs",
        "metadata",
        "metrics",
        "node_id",
        "parked",
        "producer_ids",
        "receive_memory",
        "send_memory",
        "share_partitions",
        "share_state",
        "stopping",
        "tokens",
        "transactions",
        "turns",
    )

    config: BrokerConfig
    clock: Clock
    faults: Faults
    metrics: Metrics
    logs: Logs
    metadata: MetadataStore
    groups: GroupCoordinator
    # http://HOST:PORT of metrics and health, or empty.
    http_address: str
    transactions: TransactionCoordinator
    share_state: ShareStatePersister
    producer_ids: ProducerIds
    fetch_sessions: FetchSessionCache
    receive_memory: ReceiveMemory
    send_memory: SendMemory
    turns: Turns
    large_requests: LargeRequests
    batch_checks: BatchChecks

    def __init__(self) -> None:
        self.node_id = 1
        self.cluster_id = ""
        self.listeners: list[Listener] = []
        # Those of `controller.listener.names`; the first is the one that members of the quorum use.
        self.controller_listeners: list[Listener] = []
        # The authorizer (`authorizer.class.name`); None: every operation is allowed.
        self.authorizer: Authorizer | None = None
        # The log of the authorizer's decisions, and the stored ACLs if the authorizer decides by them.
        self.audit_log: AuditLog | None = None
        self.acls: AclControl | None = None
        # The delegation tokens; None without `delegation.token.secret.key`.
        self.tokens: DelegationTokens | None = None
        # The clients that push metrics; None until there is one, or a receiver for them.
        self.client_metrics: ClientMetrics | None = None
        # True once a clean stop has begun: requests in purgatory are then completed at once.
        self.stopping = False
        # Called with (mechanism, users) whose credentials changed; None: their sessions go on, as in Kafka.
        self.disconnect: Callable[[str, Collection[str]], None] | None = None
        # The client quotas; None until there is one.
        self.quotas: Quotas | None = None
        # topic id -> (offset of the metadata log, the topic's part of a Metadata response): cached until the metadata
        # changes.
        self.described_topics: dict[bytes, tuple[int, MetadataResponseTopic]] = {}
        # Share groups' sessions and records in flight; None until the first ShareFetch.
        self.share_partitions: SharePartitions | None = None
        # Waiters of parked requests; a stop wakes them so that they see `stopping`.
        self.parked: set[Waiter] = set()
