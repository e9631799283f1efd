"""Topics filled and read with librdkafka, for parts whose application is a server."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kafka_shim.targets.topic_reader import QUIET, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["QUIET", "admin", "config", "create", "fill", "read", "topics"]


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({**QUIET, "bootstrap.servers": bootstrap})


def create(bootstrap: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    client = admin(bootstrap)
    client.create_topics([new])[topic].result(30)


def fill(bootstrap: str, topic: str, records: Iterable[tuple[int, bytes]]) -> None:
    """Records are partition and value."""
    producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "linger.ms": 5})
    for partition, value in records:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def config(bootstrap: str, topic: str, name: str) -> str | None:
    """The value of a topic's option."""
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = admin(bootstrap)
    value = client.describe_configs([asked])[asked].result(30)[name].value
    return None if value is None else str(value)


def topics(bootstrap: str) -> set[str]:
    return set(admin(bootstrap).list_topics(timeout=30).topics)
