"""Creates, fills and reads topics with librdkafka only, to compare with what Spark does."""

from __future__ import annotations

import json
import time

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from confluent_kafka import Message

QUIET = {"log_level": 0}


def create(bootstrap: str, topic: str, partitions: int = 2, config: dict[str, str] | None = None) -> str:
    admin = AdminClient({**QUIET, "bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config or {})
    admin.create_topics([new])[topic].result(30)
    give_up = time.monotonic() + 30
    while True:
        found = admin.list_topics(topic, timeout=30).topics[topic]
        if found.error is None and len(found.partitions) == partitions:
            return topic
        if time.monotonic() > give_up:
            raise TimeoutError(f"{topic} does not have {partitions} partitions after 30 s")
        time.sleep(0.02)


def fill(bootstrap: str, topic: str, rows: Iterable[dict[str, Any]]) -> None:
    """Rows are arguments of ``Producer.produce``. Raises RuntimeError if one of them is not acknowledged."""
    producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "linger.ms": 10, "acks": "all"})
    failed: list[KafkaError] = []
    for row in rows:
        producer.produce(topic, on_delivery=lambda error, _: failed.append(error) if error else None, **row)
        producer.poll(0)
    late = producer.flush(60)
    if late or failed:
        what = f"records without an answer after 60 s: {late}, refused: {len(failed)} {failed[:1]}"
        raise RuntimeError(f"{topic}: {what}")


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """Returns every record up to the end of each partition, as it is now."""
    from kafka_shim.targets import topic_reader  # which the archive of jobs for a cluster leaves out

    return topic_reader.read(bootstrap, topic, isolation)


def values(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Any]:
    """Values as JSON."""
    return [json.loads(value_of(message)) for message in read(bootstrap, topic, isolation)]


def value_of(message: Message) -> bytes:
    """Returns a record's value. Raises ValueError for a tombstone, which no pipeline here writes."""
    value = message.value()
    if value is None:
        raise ValueError(f"{message.topic()}-{message.partition()} has a tombstone at {message.offset()}")
    return value


def producer(bootstrap: str, transactional_id: str) -> Producer:
    """A transactional one, initialised."""
    made = Producer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            # A transaction that is held open on purpose must not time out on a slow machine.
            "transaction.timeout.ms": 900_000,
            "linger.ms": 5,
        }
    )
    made.init_transactions(60)
    return made
