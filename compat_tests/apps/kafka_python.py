"""kafka-python."""

from __future__ import annotations

import logging
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from kafka_shim.compat.apps import python_names
from kafka_shim.compat.apps.base import TIMEOUT_S, App, Producer, Reader, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Refusals are what scenarios ask for; they come as exceptions, too.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as raised:
        raise Refused(type(raised).__name__, str(raised)) from raised


class KafkaPythonProducer(Producer):
    def __init__(self, settings: dict[str, Any]) -> None:
        self.client = KafkaProducer(**settings)
        with refusals():
            self.client.init_transactions()

    def begin(self) -> None:
        with refusals():
            self.client.begin_transaction()

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        with refusals():
            self.client.send(topic, value.encode(), partition=partition).get(TIMEOUT_S)

    def offset(self, group: str, topic: str, offset: int) -> None:
        with refusals():
            self.client.send_offsets_to_transaction(
                {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}, group
            )

    def positions(self, reader: Reader) -> None:
        assert isinstance(reader, KafkaPythonReader)
        client = reader.client
        held = {each: OffsetAndMetadata(client.position(each), "", -1) for each in client.assignment()}
        with refusals():
            self.client.send_offsets_to_transaction(held, client.group_metadata())

    def commit(self) -> None:
        with refusals():
            self.client.commit_transaction()

    def abort(self) -> None:
        with refusals():
            self.client.abort_transaction()

    def close(self) -> None:
        self.client.close(0)


class KafkaPythonReader(Reader):
    def __init__(self, settings: dict[str, Any], topic: str, group: str | None) -> None:
        self.client = KafkaConsumer(**settings)
        self._is_member = group is not None
        if group is None:
            self.client.assign([TopicPartition(topic, 0)])
            self.client.seek_to_beginning()
        else:
            self.client.subscribe([topic])

    def poll(self, timeout_ms: int = 200) -> list[tuple[int, str]]:
        found = self.client.poll(timeout_ms)
        coordinator = self.client._coordinator
        if self._is_member and coordinator.rejoining and not coordinator.need_rejoin():
            # 3.0.12 forgets a rejoin when the poll's time is up between a leader's assignment and the answer to its
            # sync: any broker would wait for it in vain.
            coordinator.request_rejoin()
        return [(record.partition, record.value.decode()) for records in found.values() for record in records]

    def assigned(self) -> list[int]:
        return sorted(each.partition for each in self.client.assignment())

    def commit(self) -> None:
        with refusals():
            self.client.commit()

    def close(self) -> None:
        self.client.close()


class KafkaPython(App):
    name = "kafka-python"

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        return KafkaPythonProducer(python_names.producer(self.bootstrap, transactional_id, timeout_ms, codec))

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        return KafkaPythonReader(python_names.reader(self.bootstrap, group, committed), topic, group)

    def committed(self, group: str, topic: str) -> int | None:
        client = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, isolation_level="read_committed")
        try:
            found = client.committed(TopicPartition(topic, 0))
        finally:
            client.close()
        return None if found is None else int(found)
