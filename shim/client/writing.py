"""`Producer`: writes records, and transactions of them. A batch is sent again only when its partition's leader has
moved, or with a sequence by which the broker knows it, so nothing is doubled."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kafka_shim.cext.records import build
from kafka_shim.client.cluster import PASSING, TRANSACTION
from kafka_shim.client.partitioning import partition_for
from kafka_shim.client.requests import NAMES, make
from kafka_shim.wire_client import RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.wire_client import Connection

    T = TypeVar("T")
    Headers = Sequence[tuple[str, bytes | None]]
    Pending = tuple[bytes | None, bytes | None, int, Headers]

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# A batch is closed at this size, so that it stays below the default of message.max.bytes; one larger record is a batch.
BATCH_BYTES = 512 << 10
# What is sent without a flush being asked for.
BUFFER_BYTES = 4 << 20
RECORD_OVERHEAD_BYTES = 24
# The last versions that name topics, and in which a transaction's partitions are added first.
PRODUCE_BY_NAME, ADD_PARTITIONS_BY_CLIENT, END_BY_CLIENT = 11, 3, 4
SEQUENCES = 1 << 31
# How long a batch is tried over new connections (Kafka: delivery.timeout.ms).
DELIVERY_S = 120.0


@dataclass(frozen=True, slots=True)
class Written:
    """A batch that was written. `offset` is that of its first record, -1 with acks=0."""

    topic: str
    partition: int
    offset: int
    count: int


class Producer:
    """Writes to one cluster. `compression` is none, gzip, snappy, lz4 or zstd; `acks` is 0, 1 or -1 (all). With
    `transactional_id` every record belongs to a transaction, from `begin` to `commit` or `abort`. Records without key
    go to a topic's partitions in turn, the others where Java's producer would put them. With `reconnects` lost
    connections are made again, and what had no answer is sent again: with acks=-1 the broker writes it once all the
    same, as the producer is idempotent then. Not thread-safe."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = -1,
        compression: str = "none",
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        reconnects: bool = False,
    ) -> None:
        """Raises WireClientError: a transactional id is taken over at once, and fences its producer."""
        if compression not in CODECS:
            raise ValueError(f"compression is one of {', '.join(CODECS)}, not {compression!r}")
        if transactional_id is not None and acks != -1:
            raise ValueError("a transaction needs acks=-1 (all)")
        if transactional_id is not None and reconnects:
            raise ValueError("reconnects is for records without a transaction")
        self._cluster = cluster
        self._acks = acks
        self._codec = CODECS[compression]
        self._transactional_id = transactional_id
        self._counts: dict[str, int] = {}
        self._turns: dict[str, int] = {}
        self._batches: dict[TopicPartition, list[list[Pending]]] = {}
        self._room: dict[TopicPartition, int] = {}
        self._pending_bytes = 0
        self._written: list[Written] = []
        self._reconnects = reconnects
        self._is_idempotent = reconnects and acks == -1
        self._producer_id, self._producer_epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._in_transaction: set[TopicPartition] = set()
        if transactional_id is not None:
            self._initialise(transaction_timeout_ms)

    def _initialise(self, timeout_ms: int) -> None:
        name = self._transactional_id

        def ask() -> Any:
            connection = self._cluster.any() if name is None else self._coordinator()
            request = make("InitProducerId", transactional_id=name, transaction_timeout_ms=timeout_ms)
            answer = connection.request(request, 4)
            check(answer.error_code, subject=name or "")
            return answer

        answer = self._patiently(ask)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    def _patiently(self, ask: Callable[[], T]) -> T:
        return self._cluster.patiently(
            ask, timeout_s=DELIVERY_S if self._reconnects else None, reconnects=self._reconnects
        )

    def _coordinator(self) -> Any:
        return self._cluster.coordinator(self._transactional_id or "", TRANSACTION)

    # --- records

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Keep a record for the next `flush`, which comes by itself when many wait."""
        count = self._count(topic)
        if partition is None:
            partition = self._next(topic, count) if key is None else partition_for(key, count)
        each = topic, partition
        size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        size += sum(len(name) + len(content or b"") for name, content in headers)
        waiting = self._batches.setdefault(each, [])
        if not waiting or self._room[each] < size:
            waiting.append([])
            self._room[each] = BATCH_BYTES
        self._room[each] -= size
        when = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        waiting[-1].append((key, value, when, headers))
        self._pending_bytes += size
        if self._pending_bytes >= BUFFER_BYTES:
            self._send_all()

    def _count(self, topic: str) -> int:
        if topic not in self._counts:
            found = self._patiently(lambda: self._cluster.partitions(topic, create=True, need_leaders=False))
            self._counts[topic] = len(found)
        return self._counts[topic]

    def _next(self, topic: str, count: int) -> int:
        """Returns whose turn it is, without those that have no leader, unless none has one."""
        first = (self._turns.get(topic, -1) + 1) % count
        turns = ((first + more) % count for more in range(count))
        turn = next((each for each in turns if self._cluster.has_leader((topic, each))), first)
        self._turns[topic] = turn
        return turn

    def flush(self) -> list[Written]:
        """Write what waits. Returns what was written since the last flush. Raises RequestError for the first batch
        that was refused, once all others are written; in a transaction, which has to be aborted then, and after a lost
        connection those behind it are dropped."""
        self._send_all()
        written, self._written = self._written, []
        return written

    def _send_all(self) -> None:
        batches, self._batches, self._pending_bytes = self._batches, {}, 0
        refusal: RequestError | None = None
        while batches:
            try:
                self._send_round({each: waiting.pop(0) for each, waiting in batches.items()})
            except RequestError as error:
                if self._transactional_id is not None:
                    raise
                refusal = refusal or error
                # Whether the refused batch took its sequence is not known: the next ones are another producer's.
                self._forget_sequences()
            except WireClientError:
                self._forget_sequences()
                raise
            batches = {each: waiting for each, waiting in batches.items() if waiting}
        if refusal is not None:
            raise refusal

    def _forget_sequences(self) -> None:
        if self._is_idempotent:
            self._producer_id = -1
            self._sequences.clear()

    def _send_round(self, batches: dict[TopicPartition, list[Pending]]) -> None:
        if self._is_idempotent and self._producer_id < 0:
            self._initialise(-1)
        if self._transactional_id is not None:
            self._add_partitions(set(batches) - self._in_transaction)
        encoded = {each: self._build(each, records) for each, records in batches.items()}
        refusals: list[RequestError] = []

        def ask() -> None:
            """Send what nobody has accepted or refused. A partition whose leader moved has written nothing."""
            led, failed = self._cluster.by_leader_now(encoded)
            asked = [self._ask(node_id, topics, encoded) for node_id, topics in led.items()]
            offsets: dict[TopicPartition, int] = {}
            if not self._acks:
                offsets = dict.fromkeys((each for each in encoded if each not in failed), -1)
            for connection, version in asked if self._acks else ():
                for topic in connection.receive(NAMES["Produce"], version)[1].responses:
                    for part in topic.partition_responses:
                        each = topic.name, part.index
                        if part.error_code:
                            failed[each] = RequestError(part.error_code, part.error_message, f"{each[0]}-{each[1]}")
                        else:
                            offsets[each] = part.base_offset
            passing = [error for error in failed.values() if error.code in PASSING]
            refusals.extend(error for error in failed.values() if error.code not in PASSING)
            for each, offset in offsets.items():
                self._written.append(Written(*each, offset, len(batches[each])))
            for each in list(encoded):
                if each in offsets or (each in failed and failed[each].code not in PASSING):
                    del encoded[each]
            if passing and (not refusals or self._transactional_id is None):
                raise passing[0]

        try:
            self._patiently(ask)
        except RequestError:
            if not refusals:
                raise
        if refusals:
            raise refusals[0]

    def _ask(
        self, node_id: int, topics: dict[str, list[int]], encoded: dict[TopicPartition, bytearray]
    ) -> tuple[Connection, int]:
        connection = self._cluster.to(node_id)
        request = make(
            "Produce",
            acks=self._acks,
            timeout_ms=30_000,
            transactional_id=self._transactional_id,
            topic_data=[
                {
                    "name": topic,
                    "partition_data": [{"index": each, "records": encoded[topic, each]} for each in partitions],
                }
                for topic, partitions in topics.items()
            ],
        )
        version = min(PRODUCE_BY_NAME, connection.version_of(NAMES["Produce"]))
        connection.send(request, version)
        return connection, version

    def _build(self, each: TopicPartition, records: list[Pending]) -> bytearray:
        if self._producer_id < 0:
            return build(records, codec=self._codec)
        sequence = self._sequences.get(each, 0)
        self._sequences[each] = (sequence + len(records)) % SEQUENCES
        return build(
            records,
            codec=self._codec,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            transactional=self._transactional_id is not None,
        )

    # --- transactions

    def begin(self) -> None:
        """Begin a transaction: of Kafka's protocol it starts with the first record."""
        self._in_transaction.clear()

    def _add_partitions(self, partitions: set[TopicPartition]) -> None:
        if not partitions:
            return
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            topics.setdefault(topic, []).append(partition)
        request = make(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[{"name": name, "partitions": indexes} for name, indexes in topics.items()],
        )

        def ask() -> None:
            answer = self._coordinator().request(request, ADD_PARTITIONS_BY_CLIENT)
            for topic in answer.results_by_topic_v3_and_below:
                for part in topic.results_by_partition:
                    check(part.partition_error_code, subject=f"{topic.name}-{part.partition_index}")

        self._cluster.patiently(ask)
        self._in_transaction |= partitions

    def commit(self) -> list[Written]:
        """Flush, and commit the transaction. Returns what was written since the last flush."""
        written = self.flush()
        self._end(True)
        return written

    def abort(self) -> None:
        """Drop what waits, and abort the transaction."""
        self._batches, self._pending_bytes = {}, 0
        self._end(False)

    def _end(self, committed: bool) -> None:
        if not self._in_transaction:
            return  # the coordinator knows of no transaction
        request = make(
            "EndTxn",
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=committed,
        )

        def ask() -> None:
            check(self._coordinator().request(request, END_BY_CLIENT).error_code, subject=self._transactional_id or "")

        self._cluster.patiently(ask)
        self._in_transaction.clear()
