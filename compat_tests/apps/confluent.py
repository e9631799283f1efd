"""confluent-kafka, so librdkafka."""

from __future__ import annotations

import logging
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Producer as Client

from kafka_shim.compat.apps.base import TIMEOUT_S, App, Producer, Reader, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Refusals are what scenarios ask for; librdkafka would print the fatal ones.
QUIET = logging.getLogger("kafka_shim.compat.librdkafka")
QUIET.setLevel(logging.CRITICAL + 1)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except KafkaException as raised:
        raise Refused(raised.args[0].name(), raised.args[0].str()) from raised


class ConfluentProducer(Producer):
    def __init__(self, settings: dict[str, object]) -> None:
        self.client = Client(settings, logger=QUIET)
        with refusals():
            self.client.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        with refusals():
            self.client.begin_transaction()

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        failed: list[KafkaError] = []
        with refusals():
            self.client.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: failed.append(error) if error else None
            )
            self.client.flush(TIMEOUT_S)
        if failed:
            raise Refused(failed[0].name(), failed[0].str())

    def offset(self, group: str, topic: str, offset: int) -> None:
        # Only for its name: it connects to nobody.
        reader = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
        try:
            self._offsets([TopicPartition(topic, 0, offset)], reader)
        finally:
            reader.close()

    def positions(self, reader: Reader) -> None:
        assert isinstance(reader, ConfluentReader)
        self._offsets(reader.client.position(reader.client.assignment()), reader.client)

    def _offsets(self, positions: list[TopicPartition], reader: Consumer) -> None:
        with refusals():
            self.client.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), TIMEOUT_S)

    def commit(self) -> None:
        with refusals():
            self.client.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        with refusals():
            self.client.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        self.client.purge()


class ConfluentReader(Reader):
    def __init__(self, settings: dict[str, object], topic: str, group: str | None) -> None:
        self.client = Consumer(settings, logger=QUIET)
        if group is None:
            self.client.assign([TopicPartition(topic, 0, 0)])
        else:
            self.client.subscribe([topic])

    def poll(self, timeout_ms: int = 200) -> list[tuple[int, str]]:
        message = self.client.poll(timeout_ms / 1000)
        messages = ([message] if message is not None else []) + self.client.consume(500, 0.01)
        good = [each for each in messages if each.error() is None]
        return [(each.partition() or 0, (each.value() or b"").decode()) for each in good]

    def assigned(self) -> list[int]:
        return sorted(each.partition for each in self.client.assignment())

    def commit(self) -> None:
        with refusals():
            self.client.commit(asynchronous=False)

    def close(self) -> None:
        self.client.close()


class Confluent(App):
    name = "confluent-kafka"

    @property
    def _settings(self) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "log_level": 0}

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        own = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms, "compression.type": codec}
        return ConfluentProducer({**self._settings, "linger.ms": 0, **own})

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        own = {
            "group.id": group or "unused",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 300,
        }
        return ConfluentReader({**self._settings, **own}, topic, group)

    def committed(self, group: str, topic: str) -> int | None:
        client = Consumer({**self._settings, "group.id": group, "isolation.level": "read_committed"})
        try:
            (position,) = client.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        finally:
            client.close()
        return None if position.offset < 0 else position.offset
