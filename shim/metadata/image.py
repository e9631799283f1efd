"""The metadata image: topics, configurations, features and registrations, as replayed from the metadata log.

`MetadataStore` owns one `Image`. Only `apply` (shim/metadata/replay.py) changes it, at start-up and at each commit.
Readers on the event loop must not change its objects and must not keep them longer than one callback.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False  # spelled out: importing typing costs start-up time
if TYPE_CHECKING:
    from typing import Any

# Types of ConfigResource on the wire and in ConfigRecord (org.apache.kafka.common.config.ConfigResource.Type).
RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32


class Partition:
    """The registration of one partition. `partition_epoch` counts its changes, `leader_epoch` counts leader elections.

    Each change of it makes a new object: who holds one over several turns of the loop sees one state. Lists are tuples,
    and equal tuples are shared to save memory, because there may be many thousand partitions.
    """

    __slots__ = (
        "adding_replicas",
        "directories",
        "elr",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    # The directory id of each replica. The zero uuid means "not assigned yet" (several data directories).
    directories: tuple[bytes, ...]
    # Eligible leader replicas and their last known members (KIP-966).
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int

    def copy(self) -> Partition:
        """Return a new object, to be changed."""
        made = Partition()
        for name in Partition.__slots__:
            setattr(made, name, getattr(self, name))
        return made


class Topic:
    """One topic: its name, its 16-byte id, and its partitions. `partitions[n].partition == n`."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[Partition] = []


class Position(NamedTuple):
    """Where the log ends behind a commit."""

    last_offset: int
    last_epoch: int
    last_timestamp_ms: int


class Image:
    """The state after all applied records of the metadata log."""

    __slots__ = (
        "acls",
        "added",
        "ahead",
        "brokers",
        "colliding_names",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "last_epoch",
        "last_offset",
        "last_timestamp_ms",
        "next_producer_id",
        "partition_count",
        "quotas",
        "scram",
        "topics",
        "topics_by_id",
    )

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.partition_count = 0
        # During a replay: partitions that wait for those before them, with the offsets of their records, by topic id
        # and number.
        self.ahead: dict[bytes, dict[int, tuple[Partition, int]]] = {}
        # In an image of what one change makes: new partitions of topics that were there before, by topic id, with the
        # number of the first.
        self.added: dict[bytes, tuple[int, list[Partition]]] = {}
        # Topic names with '.' or '_', by the name with '.' replaced by '_'. Two topics with the same key would have the
        # same metric names.
        self.colliding_names: dict[str, set[str]] = {}
        # (resource type, resource name) -> option -> value. The name "" of type BROKER is the cluster-wide default.
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        # Finalised features; a level of 0 is not kept. ApiVersions sends them with `last_offset` as their epoch.
        self.features: dict[str, int] = {}
        # node id -> the newest RegisterBrokerRecord / RegisterControllerRecord, changed by later change records.
        self.brokers: dict[int, Any] = {}
        self.controllers: dict[int, Any] = {}
        self.next_producer_id = 0
        # Stored as records, because kafka_shim.security interprets them.
        self.acls: dict[bytes, Any] = {}
        self.scram: dict[tuple[str, int], Any] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.delegation_tokens: dict[str, Any] = {}
        # The position in the metadata log: offset, epoch and timestamp of the last applied record.
        self.last_offset = -1
        self.last_epoch = 0
        self.last_timestamp_ms = -1

    def partition(self, topic: str, partition: int) -> Partition | None:
        """Return the registration of a partition, or None if the topic or partition does not exist."""
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return found.partitions[partition]

    def client_metrics(self) -> list[dict[str, str]]:
        """Return the stored options of each CLIENT_METRICS resource, in the order of their creation."""
        return [options for (kind, _), options in self.configs.items() if kind == RESOURCE_CLIENT_METRICS]

    def config_of(self, resource_type: int, name: str) -> dict[str, str]:
        """Return the stored options of one resource, empty if there are none. The caller must not change the dict."""
        return self.configs.get((resource_type, name), _NO_CONFIG)


_NO_CONFIG: dict[str, str] = {}
