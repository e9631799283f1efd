"""The same application as `pipeline` on a stock client, librdkafka: a consumer in a group, a transactional producer,
`send_offsets_to_transaction`, and the error handling that librdkafka's documentation requires (B21).
"""

from __future__ import annotations

import random
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka_shim.compat.transactions.pipeline import ABORT_SHARE, GROUP, SINK, SINK_PARTITIONS, SOURCE, TRANSACTIONAL_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GIVE_UP_S = 60
CLIENT = {
    # librdkafka 2.16 loses a TxnOffsetCommit that waits for a coordinator which it dropped to rebootstrap (KIP-899).
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 10,
    "socket.timeout.ms": 10_000,
    "log_level": 0,
}


class NewInstance(Exception):
    """The client cannot be used any more. The application starts a new one."""


class ClientPipeline:
    """`run()` returns when the group's committed offset has reached `count`. A thread calls `revive` when `is_dead`."""

    def __init__(
        self, bootstrap: str, count: int, seed: int, revive: Callable[[], None], is_dead: Callable[[], bool]
    ) -> None:
        self._bootstrap = bootstrap
        self._count = count
        self._chance = random.Random(seed)
        self._revive = revive
        self._is_dead = is_dead
        self._stop_requested = threading.Event()
        self._watcher_failure: BaseException | None = None
        self.instances = 0

    def run(self) -> None:
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        self._deadline = time.monotonic() + GIVE_UP_S
        try:
            while not self._live():
                pass
        finally:
            self._stop_requested.set()
            watcher.join(30)
        if self._watcher_failure is not None:
            raise self._watcher_failure

    def _watch(self) -> None:
        try:
            while not self._stop_requested.wait(0.01):
                if self._is_dead():
                    self._revive()
        except BaseException as failed:
            self._watcher_failure = failed

    def _live(self) -> bool:
        """Runs one instance. Returns True when all records are done."""
        self.instances += 1
        producer = Producer({**CLIENT, "bootstrap.servers": self._bootstrap, "transactional.id": TRANSACTIONAL_ID})
        consumer = Consumer(
            {
                **CLIENT,
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            self._until(lambda: producer.init_transactions(5))
            consumer.subscribe([SOURCE])
            position = 0
            while position < self._count:
                self._check_time()
                position = self._transact(producer, consumer, position)
        except NewInstance:
            return False
        finally:
            consumer.close()
        return True

    def _transact(self, producer: Producer, consumer: Consumer, position: int) -> int:
        messages = [each for each in consumer.consume(self._chance.randint(1, 3), 0.5) if each.error() is None]
        if not messages:
            return position
        producer.begin_transaction()
        try:
            for message in messages:
                value = message.value() or b""
                producer.produce(SINK, value, partition=int(value) % SINK_PARTITIONS)
            following = (messages[-1].offset() or 0) + 1
            offsets = [TopicPartition(SOURCE, 0, following)]
            self._until(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 5))
            if self._chance.random() < ABORT_SHARE:
                raise Abort  # noqa: TRY301
            self._until(lambda: producer.commit_transaction(5))
        except Abort:
            self._until(lambda: producer.abort_transaction(5))
            # Seek back to the group's committed offset. Applications have to do this themselves.
            (committed,) = self._committed(consumer)
            consumer.seek(TopicPartition(SOURCE, 0, max(committed.offset, 0)))
            return max(committed.offset, 0)
        return following

    def _committed(self, consumer: Consumer) -> list[TopicPartition]:
        while True:
            self._check_time()
            try:
                return list(consumer.committed([TopicPartition(SOURCE, 0)], 2))
            except KafkaException:
                continue

    def _until(self, call: Callable[[], object]) -> None:
        """Retries retriable errors. Raises Abort, NewInstance."""
        while True:
            self._check_time()
            try:
                call()
            except KafkaException as raised:
                error = raised.args[0]
                if error.txn_requires_abort():
                    raise Abort from raised
                if error.retriable():
                    continue
                raise NewInstance from raised
            return

    def _check_time(self) -> None:
        assert time.monotonic() < self._deadline, f"no end after {GIVE_UP_S} s"
        if self._watcher_failure is not None:
            raise self._watcher_failure


class Abort(Exception):
    """The transaction has to be aborted, at random or because the client requires it."""
