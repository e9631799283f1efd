"""Reads a stretch of one partition as it is stored: with control records, and what became of each transaction."""

from __future__ import annotations

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.records import iterate
from kafka_shim.client.records import CONTROL_TYPES, batches
from kafka_shim.console.cluster import COMMITTED, UNCOMMITTED
from kafka_shim.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.records import Record
    from kafka_shim.console.cluster import Cluster

# The last version that names topics.
FETCH_VERSION = 12
FETCH_BYTES = 256 << 10
# The most that one batch may decompress to.
LARGEST_BATCH_BYTES = 32 << 20
NONE, COMMIT, ABORT, OPEN, ENDED = "", "committed", "aborted", "open", "ended"


class Budget:
    """What one request may read: bytes as they are stored, and as they are when decompressed."""

    __slots__ = ("fetched_bytes", "shown_bytes")

    def __init__(self, fetched_bytes: int, shown_bytes: int) -> None:
        self.fetched_bytes = fetched_bytes
        self.shown_bytes = shown_bytes

    @property
    def is_spent(self) -> bool:
        return self.fetched_bytes <= 0 or self.shown_bytes <= 0


class Found:
    """One record where it stands. `state`: what became of its transaction. `problem`: a batch that cannot be read, at
    its first offset, without a record."""

    __slots__ = ("batch", "partition", "problem", "record", "state")

    def __init__(
        self, partition: int, batch: Batch, record: Record | None, state: str = NONE, problem: str = ""
    ) -> None:
        self.partition = partition
        self.batch = batch
        self.record = record
        self.state = state
        self.problem = problem

    @property
    def offset(self) -> int:
        return self.batch.base_offset if self.record is None else self.record.offset

    @property
    def timestamp(self) -> int:
        return self.batch.max_timestamp if self.record is None else self.record.timestamp


class PartitionReader:
    """Reads at one partition. `next_offset` is where it is, `budget` what it may still read."""

    def __init__(self, cluster: Cluster, topic: str, partition: int, leader: int, budget: Budget) -> None:
        self._cluster = cluster
        self._topic = topic
        self.partition = partition
        self._leader = leader
        self.budget = budget
        self._open: dict[int, int] | None = None
        self.next_offset = 0

    def read(self, start: int, end: int, most: int) -> list[Found]:
        """Return at most `most` records from `start` on, below `end`, as far as the budget goes. Raises RequestError,
        WireClientError."""
        found: list[Found] = []
        self.next_offset = start
        stable = end
        while self.next_offset < end and len(found) < most and not self.budget.is_spent:
            isolation = COMMITTED if self.next_offset < stable else UNCOMMITTED
            data = self._fetch(isolation)
            if isolation == COMMITTED:
                stable = min(stable, data.last_stable_offset)
            before = self.next_offset
            self._take(data, isolation, end, most, found)
            if self.next_offset == before and self.next_offset < stable and isolation == COMMITTED:
                break  # nothing is stored there now
            if self.next_offset == before and isolation == UNCOMMITTED:
                break
        return found

    def _fetch(self, isolation: int) -> Any:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            isolation_level=isolation,
            topics=[
                FetchTopic(
                    topic=self._topic,
                    partitions=[
                        FetchPartition(
                            partition=self.partition,
                            fetch_offset=self.next_offset,
                            partition_max_bytes=FETCH_BYTES,
                        )
                    ],
                )
            ],
        )
        answer = self._cluster.ask(request, FETCH_VERSION, self._leader)
        check(answer.error_code)
        data = answer.responses[0].partitions[0]
        check(data.error_code, subject=f"{self._topic}-{self.partition}")
        return data

    def _take(self, data: Any, isolation: int, end: int, most: int, found: list[Found]) -> None:
        """Add what a fetch returned, and move `next_offset` behind it."""
        records = data.records
        if records is None:
            return
        self.budget.fetched_bytes -= len(records)
        aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
        active: set[int] = set()
        first_new = len(found)
        for batch in self._batches(records):
            while aborted and aborted[0][0] <= batch.last_offset:
                active.add(aborted.pop(0)[1])
            # What was fetched is walked, whatever it took of the budget: the next request would fetch it again.
            if len(found) >= most or self.budget.shown_bytes <= 0:
                break
            if batch.base_offset >= end:
                self.next_offset = max(self.next_offset, end)  # nothing is stored between the two
                break
            state = NONE
            if batch.is_transactional and not batch.is_control:
                if isolation == COMMITTED:
                    state = ABORT if batch.producer_id in active else COMMIT
                else:
                    state = OPEN if self._is_open(batch) else ENDED
            elif batch.is_control:
                active.discard(batch.producer_id)
            self._walk(records, batch, state, end, most, found)
        if isolation == UNCOMMITTED:
            _set_outcomes(found[first_new:])

    def _batches(self, records: Any) -> Iterator[Batch]:
        try:
            yield from batches(bytes(records))
        except BatchError as error:
            where = f"{self._topic}-{self.partition}, from offset {self.next_offset}"
            raise WireClientError(
                f"{where}: the broker sent bytes that are not a record batch: {error.verdict.name}"
            ) from error

    def _walk(self, records: Any, batch: Batch, state: str, end: int, most: int, found: list[Found]) -> None:
        try:
            for record in iterate(records, batch.position, batch.end_position, limit_bytes=LARGEST_BATCH_BYTES):
                self.budget.shown_bytes -= len(record.key or b"") + len(record.value or b"")
                if record.offset < self.next_offset:
                    continue
                if record.offset >= end or len(found) >= most:
                    return
                found.append(Found(self.partition, batch, record, state))
                self.next_offset = record.offset + 1
        except BatchError as error:
            found.append(Found(self.partition, batch, None, state, f"the batch cannot be read: {error.verdict.name}"))
        self.next_offset = max(self.next_offset, batch.next_offset)

    def _is_open(self, batch: Batch) -> bool:
        """Whether the transaction of a batch above the last stable offset is open."""
        if self._open is None:
            request = DescribeProducersRequest(
                topics=[TopicRequest(name=self._topic, partition_indexes=[self.partition])]
            )
            part = self._cluster.ask(request, node=self._leader).topics[0].partitions[0]
            self._open = {
                one.producer_id: one.current_txn_start_offset
                for one in part.active_producers or ()
                if one.current_txn_start_offset >= 0
            }
        return self._open.get(batch.producer_id, batch.base_offset + 1) <= batch.base_offset


def marker_of(found: Found) -> tuple[str, int]:
    """Return (the type of a control record, coordinator epoch or -1)."""
    from kafka_shim.cext.records import parse_marker

    record = found.record
    assert record is not None, "a batch that cannot be read has no marker"
    key, value = record.key or b"", record.value or b""
    try:
        is_commit, epoch = parse_marker(key, value)
    except ValueError:
        kind = int.from_bytes(key[2:4], signed=True)
        return CONTROL_TYPES.get(kind, f"UNKNOWN_{kind}"), -1
    return "COMMIT" if is_commit else "ABORT", epoch


def _set_outcomes(found: list[Found]) -> None:
    """Say of transactions that have ended above the last stable offset how, where their markers were read too."""
    outcome: dict[int, str] = {}
    for one in reversed(found):
        if one.batch.is_control and one.record is not None:
            outcome[one.batch.producer_id] = COMMIT if marker_of(one)[0] == "COMMIT" else ABORT
        elif one.state == ENDED:
            one.state = outcome.get(one.batch.producer_id, ENDED)
