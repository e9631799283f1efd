"""kafka-python."""

from __future__ import annotations

import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class KafkaPython(Client):
    name = "kafka-python"

    def can_write(self, message: Message) -> bool:
        # KafkaProducer.send refuses a record that has neither key nor value, and a header without value.
        has_content = message.key is not None or message.value is not None
        return has_content and all(value is not None for _, value in message.headers)

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=acks == "all",
            compression_type=None if codec == "none" else codec,
            max_request_size=MAX_REQUEST_BYTES,
            linger_ms=20,
        )
        try:
            futures = [
                producer.send(topic, m.value, m.key, list(m.headers), m.partition, m.timestamp_ms) for m in messages
            ]
            producer.flush(60)
            for future in futures:
                future.get(60)
        finally:
            producer.close(10)

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            fetch_max_bytes=MAX_REQUEST_BYTES,
            max_partition_fetch_bytes=MAX_REQUEST_BYTES,
            receive_message_max_bytes=2 * MAX_REQUEST_BYTES,
        )
        try:
            assigned = [TopicPartition(topic, index) for index in range(partitions)]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            found: list[Message] = []
            deadline = time.monotonic() + 60
            while len(found) < count and time.monotonic() < deadline:
                for records in consumer.poll(timeout_ms=500).values():
                    found += [Message(r.value, r.key, r.partition, r.timestamp, tuple(r.headers)) for r in records]
            return found
        finally:
            consumer.close()
