"""A transaction coordinator over real logs and metadata in a directory, and what its clients send."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC as TOPIC
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests import node
from kafka_shim.tests.appends import append_as_client
from kafka_shim.txn import admission
from kafka_shim.txn.coordinator import TransactionCoordinator
from kafka_shim.txn.producer_ids import ProducerIds
from kafka_shim.txn.transaction import TV2, Transaction

A0, A1 = ("orders", 0), ("orders", 1)


class Node(node.Node):
    """A node with a transaction coordinator."""

    topic_name = TOPIC

    def __init__(self, path: Path, **options: object) -> None:
        self.sequences: dict[tuple[int, int, str, int], int] = {}
        self.markers: list[tuple[str, int, int, int, bool]] = []
        sizes = {"transaction_state_log_num_partitions": 3, "offsets_topic_num_partitions": 2}
        super().__init__(path, **{**sizes, **options})

    def start_coordinator(self) -> None:
        self.logs.on_marker.append((None, self._on_marker))
        self.coordinator = TransactionCoordinator(
            clock=self.clock,
            config=self.config,
            logs=self.logs,
            metadata=self.metadata,
            faults=self.faults,
            producer_ids=ProducerIds(self.metadata.next_producer_id_block),
        )
        self.coordinator.start()

    def stop_coordinator(self) -> None:
        self.coordinator.stop()

    def _on_marker(self, log: PartitionLog, producer_id: int, producer_epoch: int, commit: bool, offset: int) -> None:
        self.markers.append((log.topic, log.partition, producer_id, producer_epoch, commit))

    # --- a client's requests

    def produce(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        topic: str,
        partition: int,
        value: str,
        version: int = 12,
    ) -> int:
        """A transactional batch of one record; answers its offset, raises what Produce answers."""
        log = self.logs.get(topic, partition)
        producer_id, epoch = producer
        key = (producer_id, epoch, topic, partition)
        sequence = self.sequences.get(key, 0)
        operation = admission.operation_of_produce(version)
        (outcome,), _ = admission.admit(
            self.coordinator, True, transactional_id, producer_id, epoch, [(log, sequence)], operation
        )
        if isinstance(outcome, KafkaError):
            raise admission.as_produce_error(outcome, operation)
        batch = cext_records.build(
            [(b"k", value.encode(), self.clock.now_ms(), ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        appended = append_as_client(
            log, memoryview(batch), now_ms=self.clock.now_ms(), version=version, verification=outcome
        )
        self.sequences[key] = sequence + 1
        return appended.base_offset

    def init(self, name: str, expected: tuple[int, int] | None = None, timeout_ms: int = 60_000) -> tuple[int, int]:
        return self.coordinator.init_producer_id(name, timeout_ms, expected).response

    def end(self, name: str, producer: tuple[int, int], commit: bool, version: int = TV2) -> tuple[int, int]:
        outcome = self.coordinator.decide(name, *producer, commit, version)
        if outcome.follow_up is not None:
            with suppress(Exception):  # the dispatcher logs it: the answer is gone
                outcome.follow_up()
        return outcome.response

    # --- what a reader sees

    def visible(self, topic: str, partition: int) -> list[str]:
        """Values as a read_committed reader gets them, filtered by the aborted list as clients do."""
        log = self.logs.get(topic, partition)
        fetched = log.read(log.log_start_offset, 1 << 24, isolation_level=1)
        aborted = sorted(fetched.aborted or [], key=lambda entry: entry[1])
        return list(_filter(b"".join(bytes(part) for part in fetched.records), aborted))

    def stored(self, topic: str, partition: int) -> list[tuple[int, bool, bytes | None]]:
        """(offset, is marker, value) of everything in the log."""
        log = self.logs.get(topic, partition)
        found = []
        for buffer, batch in log.batches():
            found += [(record.offset, batch.is_control, record.value) for record in cext_records.iterate(buffer)]
        return found


def _filter(data: bytes, aborted: list[tuple[int, int]]) -> list[str]:
    """As a consumer does: an abort marker ends the skipping of its producer."""
    from kafka_shim.cext.batch import scan_all

    values = []
    skipping: set[int] = set()
    pending = list(aborted)
    for batch in scan_all(data):
        while pending and pending[0][1] <= batch.last_offset:
            skipping.add(pending.pop(0)[0])
        records = list(cext_records.iterate(data, batch.position, batch.position + batch.size_bytes))
        if batch.is_control:
            commit, _ = cext_records.parse_marker(records[0].key or b"", records[0].value or b"")
            if not commit:
                skipping.discard(batch.producer_id)
            continue
        if batch.is_transactional and batch.producer_id in skipping:
            continue
        values += [(record.value or b"").decode() for record in records]
    return values


def code_of(call: Callable[..., object], *args: object, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*args, **options)
    return caught.value.code


def state_of(node: Node, name: str = "app") -> Transaction:
    return node.coordinator.describe(name)


class Stopped(Exception):
    pass


def stop_here(**facts: object) -> None:
    raise Stopped
