"""aiokafka."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Aiokafka(Client):
    name = "aiokafka"

    def can_write(self, message: Message) -> bool:
        # It refuses a record that has neither key nor value.
        return message.key is not None or message.value is not None

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        asyncio.run(self._write(bootstrap, topic, messages, acks, codec))

    async def _write(self, bootstrap: str, topic: str, messages: Sequence[Message], acks: str, codec: str) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=acks == "all",
            compression_type=None if codec == "none" else codec,
            max_request_size=MAX_REQUEST_BYTES,
            max_batch_size=1024 * 1024,
            linger_ms=20,
        )
        async with producer:
            futures = [
                await producer.send(
                    topic, m.value, m.key, m.partition, timestamp_ms=m.timestamp_ms, headers=list(m.headers)
                )
                for m in messages
            ]
            await asyncio.gather(*futures)

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        return asyncio.run(self._read(bootstrap, topic, partitions, count))

    async def _read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            fetch_max_bytes=MAX_REQUEST_BYTES,
            max_partition_fetch_bytes=MAX_REQUEST_BYTES,
        )
        found: list[Message] = []
        async with consumer:
            assigned = [TopicPartition(topic, index) for index in range(partitions)]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            async with asyncio.timeout(60):
                while len(found) < count:
                    for records in (await consumer.getmany(timeout_ms=500)).values():
                        found += [Message(r.value, r.key, r.partition, r.timestamp, tuple(r.headers)) for r in records]
        return found
