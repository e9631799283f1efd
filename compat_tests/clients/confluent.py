"""confluent-kafka, so librdkafka."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka import Message as Received

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Confluent(Client):
    name = "confluent-kafka"

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "enable.idempotence": acks == "all",
                "compression.type": codec,
                "message.max.bytes": MAX_REQUEST_BYTES,
                "linger.ms": 20,
            }
        )
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Received) -> None:
            if error is not None:
                failed.append(error)

        for message in messages:
            producer.produce(
                topic,
                message.value,
                message.key,
                message.partition,
                on_delivery=delivered,
                timestamp=message.timestamp_ms or 0,
                headers=list(message.headers),
            )
        left = producer.flush(60)
        if failed or left:
            raise RuntimeError(f"{left} not delivered, {len(failed)} failed: {failed[:1]}")

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": MAX_REQUEST_BYTES,
                "fetch.max.bytes": MAX_REQUEST_BYTES,
                "receive.message.max.bytes": 2 * MAX_REQUEST_BYTES,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
            found: list[Message] = []
            deadline = time.monotonic() + 60
            while len(found) < count and time.monotonic() < deadline:
                for record in consumer.consume(100, 0.5):
                    if record.error() is not None:
                        raise RuntimeError(str(record.error()))
                    kind_and_time = record.timestamp()
                    headers: tuple[Any, ...] = tuple(record.headers() or ())
                    found.append(
                        Message(record.value(), record.key(), record.partition() or 0, kind_and_time[1], headers)
                    )
            return found
        finally:
            consumer.close()
