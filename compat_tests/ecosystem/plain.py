"""Topics filled and read with librdkafka, for parts whose application is a server."""

from __future__ import annotations

import contextlib

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import Message

QUIET = {"log_level": 0}


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


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All records up to the ends of the partitions as they are now; none while there is no such topic."""
    consumer = Consumer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    with contextlib.closing(consumer):
        waiting = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        found: list[Message] = []
        while waiting:
            for message in consumer.consume(1000, timeout=1):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                else:
                    raise KafkaException(error)
        return found


def config(bootstrap: str, topic: str, name: str) -> str | None:
    """The value of a topic's option."""
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = admin(bootstrap)
    value = client.describe_configs([asked])[asked].result(30)[name].value
    return None if value is None else str(value)


def topics(bootstrap: str) -> set[str]:
    return set(admin(bootstrap).list_topics(timeout=30).topics)
