"""aiokafka."""

from __future__ import annotations

import asyncio
import logging
import threading

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from kafka_shim.compat.apps import python_names
from kafka_shim.compat.apps.base import TIMEOUT_S, App, Producer, Reader, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

# Refusals are what scenarios ask for; they come as exceptions, too.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class Looped:
    """A loop in a thread of its own, as an application has one: heartbeats and rebalances go on between calls."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, TIMEOUT_S), self.loop).result()
        except KafkaError as raised:
            raise Refused(type(raised).__name__, str(raised)) from raised

    def _end(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            self._await(work)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(TIMEOUT_S)
            self.loop.close()


class AiokafkaProducer(Looped, Producer):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()

        async def start() -> AIOKafkaProducer:
            made = AIOKafkaProducer(**settings)
            await made.start()
            return made

        self.client: AIOKafkaProducer = self._await(start())

    def begin(self) -> None:
        self._await(self.client.begin_transaction())

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        self._await(self.client.send_and_wait(topic, value.encode(), partition=partition))

    def offset(self, group: str, topic: str, offset: int) -> None:
        self._await(self.client.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, group))

    def positions(self, reader: Reader) -> None:
        assert isinstance(reader, AiokafkaReader)
        self._await(self.client.send_offsets_to_transaction(reader.positions(), reader.group))

    def commit(self) -> None:
        self._await(self.client.commit_transaction())

    def abort(self) -> None:
        self._await(self.client.abort_transaction())

    def close(self) -> None:
        self._end(self.client.stop())


class AiokafkaReader(Looped, Reader):
    def __init__(self, settings: dict[str, Any], topic: str, group: str | None) -> None:
        super().__init__()
        self.group = group

        async def start() -> AIOKafkaConsumer:
            made = AIOKafkaConsumer(**settings)
            await made.start()
            if group is None:
                made.assign([TopicPartition(topic, 0)])
                await made.seek_to_beginning()
            else:
                made.subscribe([topic])
            return made

        self.client: AIOKafkaConsumer = self._await(start())

    def poll(self, timeout_ms: int = 200) -> list[tuple[int, str]]:
        found = self._await(self.client.getmany(timeout_ms=timeout_ms))
        return [(record.partition, record.value.decode()) for records in found.values() for record in records]

    def assigned(self) -> list[int]:
        return sorted(each.partition for each in self.client.assignment())

    def positions(self) -> dict[TopicPartition, int]:
        return {each: self._await(self.client.position(each)) for each in self.client.assignment()}

    def commit(self) -> None:
        self._await(self.client.commit())

    def close(self) -> None:
        self._end(self.client.stop())


class Aiokafka(App):
    name = "aiokafka"

    def _producer(self, transactional_id: str, timeout_ms: int, codec: str) -> Producer:
        return AiokafkaProducer(python_names.producer(self.bootstrap, transactional_id, timeout_ms, codec))

    def _reader(self, topic: str, group: str | None, committed: bool) -> Reader:
        return AiokafkaReader(python_names.reader(self.bootstrap, group, committed), topic, group)

    def committed(self, group: str, topic: str) -> int | None:
        reader = self._reader(topic, group, committed=True)
        assert isinstance(reader, AiokafkaReader)
        try:
            found = reader._await(reader.client.committed(TopicPartition(topic, 0)))
        finally:
            reader.close()
        return None if found is None else int(found)
