"""An exactly-once consume-transform-produce application on raw requests that survives kills of its broker.

It is deterministic for a seed: it sends the same requests in the same order until the broker dies, so that "the n-th
write" identifies one moment. After a kill it does what a client library would do: find the coordinator, retry the
EndTxn or restart as a new instance, read its committed offset, continue.
"""

from __future__ import annotations

import random
import time

from kafka_shim.cext.records import iterate, parse_marker
from kafka_shim.errors import ErrorCode
from kafka_shim.targets.requests import create_topic, fetch, make, produce
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection, RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SOURCE, SINK, GROUP, TRANSACTIONAL_ID = "source", "sink", "pipeline-group", "pipeline"
SINK_PARTITIONS = 2
ABORT_SHARE = 0.25
GIVE_UP_S = 90
# Transient errors while the broker completes an earlier request, or loads its state after a start.
BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def fill(bootstrap: str, count: int) -> None:
    """Creates the topics and writes `count` input records in idempotent batches of three."""
    with Connection(bootstrap) as client:
        create_topic(client, SOURCE, 1)
        create_topic(client, SINK, SINK_PARTITIONS)
        for first in range(0, count, 3):
            records = [(None, str(number).encode()) for number in range(first, min(first + 3, count))]
            answer = client.request(produce(SOURCE, 0, records), 9)
            check(answer.responses[0].partition_responses[0].error_code)


class Restart(Exception):
    """The application starts again, as a new instance."""


class Pipeline:
    """`run()` returns when all `count` inputs are transformed and committed. `revive` is called when the broker is gone
    and returns when it is back.
    """

    def __init__(self, bootstrap: str, count: int, seed: int, revive: Callable[[], None]) -> None:
        self._bootstrap = bootstrap
        self._count = count
        self._chance = random.Random(seed)
        self._revive = revive
        self._client: Connection | None = None
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._position = 0
        self.deaths = 0
        self.transactions = 0

    def run(self) -> None:
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            try:
                self._start()
                while self._position < self._count:
                    self._transact()
            except RequestError as refused:
                raise AssertionError(f"refused: {refused}") from refused
            except WireClientError:
                self._reconnect()
            except Restart:
                pass
            else:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"no end after {GIVE_UP_S} s, at input {self._position}")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # --- requests

    def _ask(self, name: str, version: int, **fields: object) -> Any:
        assert self._client is not None
        return self._client.request(make(name, **fields), version)

    def _reconnect(self) -> None:
        self.deaths += 1
        self.close()
        self._revive()

    def _start(self) -> None:
        """Starts as a new instance: fences the old one and reads the committed offset."""
        if self._client is None:
            self._client = Connection(self._bootstrap, timeout_s=PATIENCE_S)
        self._ask("FindCoordinator", 4, key_type=1, coordinator_keys=[TRANSACTIONAL_ID])
        self._ask("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP])
        while True:
            answer = self._ask("InitProducerId", 5, transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
            if answer.error_code not in BUSY:
                check(answer.error_code, subject="InitProducerId")
                break
            time.sleep(0.005)
        self._adopt(answer.producer_id, answer.producer_epoch)
        self._position = self._committed()

    def _adopt(self, producer_id: int, producer_epoch: int) -> None:
        self._producer = producer_id, producer_epoch
        self._sequences.clear()

    def _committed(self) -> int:
        """The group's offset with requireStable. Kafka that becomes a follower while it loads can lose the markers of a
        commit, and then the offset stays unstable."""
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            answer = self._ask(
                "OffsetFetch",
                8,
                require_stable=True,
                groups=[{"group_id": GROUP, "topics": [{"name": SOURCE, "partition_indexes": [0]}]}],
            )
            if answer.groups[0].error_code in BUSY:
                time.sleep(0.005)
                continue
            check(answer.groups[0].error_code, subject="OffsetFetch")
            part = answer.groups[0].topics[0].partitions[0]
            if part.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                check(part.error_code, subject="OffsetFetch")
                committed: int = part.committed_offset
                return max(committed, 0)
            time.sleep(0.005)
        raise AssertionError(f"the offset of {GROUP} is not stable after {GIVE_UP_S} s")

    def _read(self, limit: int) -> list[tuple[int, str]]:
        assert self._client is not None
        request = fetch(SOURCE, 0, self._position, isolation_level=1, max_wait_ms=500)
        answer = self._client.request(request, 12)
        part = answer.responses[0].partitions[0]
        check(part.error_code, subject="Fetch")
        values = [(record.offset, (record.value or b"").decode()) for record in iterate(part.records or b"")]
        return [found for found in values if found[0] >= self._position][:limit]

    def _write(self, values: list[str]) -> None:
        producer_id, epoch = self._producer
        for partition in range(SINK_PARTITIONS):
            mine = [value for value in values if int(value) % SINK_PARTITIONS == partition]
            if not mine:
                continue
            sequence = self._sequences.get(partition, 0)
            request = produce(
                SINK,
                partition,
                [(None, value.encode()) for value in mine],
                transactional_id=TRANSACTIONAL_ID,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
            assert self._client is not None
            answer = self._client.request(request, 12)
            code = answer.responses[0].partition_responses[0].error_code
            if code:
                raise Restart(ErrorCode(code).name)
            self._sequences[partition] = sequence + len(mine)

    def _commit_offset(self, offset: int) -> None:
        answer = self._ask(
            "TxnOffsetCommit",
            5,
            transactional_id=TRANSACTIONAL_ID,
            group_id=GROUP,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[{"name": SOURCE, "partitions": [{"partition_index": 0, "committed_offset": offset}]}],
        )
        code = answer.topics[0].partitions[0].error_code
        if code:
            raise Restart(ErrorCode(code).name)

    def _transact(self) -> None:
        values = self._read(self._chance.randint(1, 3))
        commit = self._chance.random() >= ABORT_SHARE
        retries = self._chance.random() < 0.5
        self._write([value for _, value in values])
        self._commit_offset(values[-1][0] + 1)
        self.transactions += 1
        try:
            self._end(commit)
        except RequestError:
            raise
        except WireClientError:
            self._reconnect()
            if not retries:
                raise Restart("the broker died under EndTxn") from None
            # Retry with the same epoch, as client libraries do. The response must be the same as without the kill.
            self._client = Connection(self._bootstrap, timeout_s=PATIENCE_S)
            self._end(commit)
        if commit:
            self._position = values[-1][0] + 1

    def _end(self, commit: bool) -> None:
        answer = self._ask(
            "EndTxn",
            5,
            transactional_id=TRANSACTIONAL_ID,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        check(answer.error_code, subject="EndTxn")
        assert answer.producer_epoch == self._producer[1] + 1, "the epoch is bumped by one, also for a retry"
        self._adopt(answer.producer_id, answer.producer_epoch)


def verify(bootstrap: str, count: int) -> None:
    """Asserts exactly-once: the sink holds every input once and in order, the offset is at the end, no transaction
    hangs.
    """
    with Connection(bootstrap, timeout_s=PATIENCE_S) as client:
        for partition in range(SINK_PARTITIONS):
            found = read_committed(client, SINK, partition)
            expected = [str(number) for number in range(count) if number % SINK_PARTITIONS == partition]
            assert found == expected, f"{SINK}-{partition}: {found} instead of {expected}"
        answer = client.request(
            make(
                "OffsetFetch",
                require_stable=True,
                groups=[{"group_id": GROUP, "topics": [{"name": SOURCE, "partition_indexes": [0]}]}],
            ),
            8,
        )
        part = answer.groups[0].topics[0].partitions[0]
        assert (part.error_code, part.committed_offset) == (0, count), (part.error_code, part.committed_offset)
        _nothing_hangs(client)


def _nothing_hangs(client: Connection) -> None:
    topics = [{"name": SINK, "partition_indexes": list(range(SINK_PARTITIONS))}]
    topics.append({"name": "__consumer_offsets", "partition_indexes": list(range(50))})
    answer = client.request(make("DescribeProducers", topics=topics), 0)
    for topic in answer.topics:
        for part in topic.partitions:
            for producer in part.active_producers:
                assert producer.current_txn_start_offset < 0, f"{topic.name}-{part.partition_index} hangs"
    listed = client.request(make("ListTransactions"), 0)
    states = {txn.transactional_id: txn.transaction_state for txn in listed.transaction_states}
    assert states[TRANSACTIONAL_ID] in ("CompleteCommit", "CompleteAbort", "Empty"), states


def read_committed(client: Connection, topic: str, partition: int) -> list[str]:
    """Returns all values that a read_committed reader gets, filtered with the list of aborted transactions as readers
    do.
    """
    from kafka_shim.cext.batch import scan_all

    values: list[str] = []
    offset = 0
    while True:
        answer = client.request(fetch(topic, partition, offset, isolation_level=1), 12)
        part = answer.responses[0].partitions[0]
        check(part.error_code, subject="Fetch")
        data = bytes(part.records or b"")
        if not data:
            assert offset == part.high_watermark, f"{topic}-{partition}: hangs at {offset}"
            return values
        pending = sorted((entry.first_offset, entry.producer_id) for entry in part.aborted_transactions or [])
        skipping: set[int] = set()
        for batch in scan_all(data):
            while pending and pending[0][0] <= batch.last_offset:
                skipping.add(pending.pop(0)[1])
            records = list(iterate(data, batch.position, batch.position + batch.size_bytes))
            if batch.is_control:
                committed, _ = parse_marker(records[0].key or b"", records[0].value or b"")
                if not committed:
                    skipping.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipping):
                values += [(record.value or b"").decode() for record in records if record.offset >= offset]
            offset = batch.next_offset
