"""What readers see of transactions, over a socket: B14, B15, B16, D5, D6, D9, D12, D14, D15."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim import Broker
from kafka_shim.cext.batch import scan_all
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_shim.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_shim.targets.parked import Parked
from kafka_shim.tests.txn.raw import Client
from kafka_shim.wire_client import Connection

NONE = ErrorCode.NONE
UNCOMMITTED, COMMITTED = 0, 1
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(transaction_state_log_num_partitions=2, offsets_topic_num_partitions=2) as started:
        with Connection(started.bootstrap_servers) as setup:
            for key_type in (0, 1):
                setup.request(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"]), 4)
        yield started


NUMBERS = itertools.count()


class Bench:
    """One topic of one partition, and as many transactional clients as a test wants."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.topic = f"t{next(NUMBERS)}"
        self.connection = Connection(bootstrap)
        topic = CreatableTopic(name=self.topic, num_partitions=1, replication_factor=1)
        self.connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)

    def client(self) -> Client:
        made = Client(self.connection, f"{self.name}-{next(NUMBERS)}")
        made.topic = self.topic
        assert made.init() is NONE
        return made

    def fetch_request(
        self, offset: int, isolation: int = COMMITTED, wait_ms: int = 0, max_bytes: int = 1 << 20
    ) -> FetchRequest:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=self.topic, partitions=[part])],
        )

    def fetch(self, offset: int, isolation: int = COMMITTED, wait_ms: int = 0, max_bytes: int = 1 << 20) -> Any:
        request = self.fetch_request(offset, isolation, wait_ms, max_bytes)
        return self.connection.request(request, 12).responses[0].partitions[0]

    def offsets(self, offset: int, isolation: int = COMMITTED) -> list[int]:
        """Base offsets of the batches that come."""
        return [batch.base_offset for batch in scan_all(bytes(self.fetch(offset, isolation).records or b""))]

    def aborted(self, offset: int) -> list[int]:
        return [entry.first_offset for entry in self.fetch(offset).aborted_transactions]

    def list_offset(self, timestamp: int, isolation: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name=self.topic, partitions=[part])]
        )
        answer = self.connection.request(request, 7)
        assert answer.topics[0].partitions[0].error_code == 0
        return int(answer.topics[0].partitions[0].offset)


@pytest.fixture
def bench(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(broker.bootstrap_servers, request.node.name)
    yield made
    made.connection.close()


def sent(client: Client, sequence: int = 0) -> None:
    assert client.produce(12, sequence=sequence) is NONE


def test_d5_the_stable_offset_is_an_exclusive_bound(bench: Bench) -> None:
    first, second = bench.client(), bench.client()
    sent(first)  # 0
    assert first.end() is NONE  # 1
    sent(second)  # 2: open
    sent(first)  # 3
    assert first.end() is NONE  # 4
    part = bench.fetch(0)
    assert (part.last_stable_offset, part.high_watermark) == (2, 5)
    assert bench.offsets(0) == [0, 1]
    assert bench.offsets(1) == [1]
    assert bench.offsets(2) == []
    assert bench.offsets(3) == []
    assert bench.offsets(0, UNCOMMITTED) == [0, 1, 2, 3, 4]
    assert second.end() is NONE  # 5
    assert bench.offsets(2) == [2, 3, 4, 5]


def test_b14_list_offsets_stops_at_the_stable_offset(bench: Bench) -> None:
    first, second = bench.client(), bench.client()
    sent(first)
    assert first.end() is NONE
    sent(second)
    assert [bench.list_offset(LATEST, isolation) for isolation in (UNCOMMITTED, COMMITTED)] == [3, 2]
    assert [bench.list_offset(EARLIEST, isolation) for isolation in (UNCOMMITTED, COMMITTED)] == [0, 0]
    assert bench.list_offset(0, COMMITTED) == 0
    assert second.end() is NONE
    assert bench.list_offset(LATEST, COMMITTED) == 4


def test_b14_a_time_look_up_above_the_stable_offset_finds_nothing(bench: Bench) -> None:
    only = bench.client()
    sent(only)
    assert bench.list_offset(0, COMMITTED) == -1
    assert bench.list_offset(0, UNCOMMITTED) == 0
    assert bench.list_offset(MAX_TIMESTAMP, COMMITTED) == -1
    assert only.end() is NONE
    assert bench.list_offset(0, COMMITTED) == 0


def test_b14_lists_are_null_or_empty(bench: Bench) -> None:
    only = bench.client()
    sent(only)
    assert only.end() is NONE
    assert bench.fetch(0, COMMITTED).aborted_transactions == []
    assert bench.fetch(0, UNCOMMITTED).aborted_transactions is None


def test_d6_the_aborted_list_is_in_the_order_of_the_markers(bench: Bench) -> None:
    first, second, third = bench.client(), bench.client(), bench.client()
    for client in (first, second, third):
        sent(client)  # 0, 1, 2
    assert third.end(commit=False) is NONE  # 3
    assert first.end(commit=False) is NONE  # 4
    assert second.end(commit=False) is NONE  # 5
    assert bench.aborted(0) == [2, 0, 1]
    assert set(bench.aborted(2)) >= {2}


def test_d12_between_the_stable_offset_and_the_end_is_empty_and_beyond_is_out_of_range(bench: Bench) -> None:
    only = bench.client()
    sent(only)
    sent(only, 1)
    for offset in (0, 1, 2):
        part = bench.fetch(offset)
        assert (part.error_code, bytes(part.records or b"")) == (0, b"")
    assert bench.fetch(3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert only.end() is NONE


def test_b15_a_marker_wakes_a_parked_reader(bench: Bench) -> None:
    only = bench.client()
    sent(only)
    request = bench.fetch_request(0, COMMITTED, wait_ms=600_000)
    parked = Parked(bench.bootstrap, request, 12, client_id="reader", timeout_s=60)
    assert parked.is_waiting
    assert only.end(commit=False) is NONE
    (part,) = parked.receive().responses[0].partitions
    assert [batch.base_offset for batch in scan_all(bytes(part.records))] == [0, 1]
    assert [entry.first_offset for entry in part.aborted_transactions] == [0]


def fetched(bench: Bench, group: str, version: int, *, all_topics: bool = False, stable: bool = True) -> Any:
    """The partitions that OffsetFetch answers for the group, by (topic, partition)."""
    if version >= 8:
        topics = None if all_topics else [OffsetFetchRequestTopics(name=bench.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(
            require_stable=stable, groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]
        )
        (answer,) = bench.connection.request(request, version).groups
    else:
        from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestTopic

        named = None if all_topics else [OffsetFetchRequestTopic(name=bench.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(group_id=group, topics=named, require_stable=stable)
        answer = bench.connection.request(request, version)
    return {(topic.name, part.partition_index): part for topic in answer.topics for part in topic.partitions}


@pytest.mark.parametrize("version", [7, 8, 9])
def test_d14_require_stable_tells_a_pending_commit(bench: Bench, version: int) -> None:
    client = bench.client()
    assert client.commit_offsets(5, topic=bench.topic) is NONE
    here = bench.topic, 0
    pending = fetched(bench, client.name, version)[here]
    assert pending.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert (pending.committed_offset, pending.metadata) == (-1, "")
    assert fetched(bench, client.name, version, stable=False)[here].committed_offset == -1
    assert fetched(bench, client.name, version, all_topics=True) == {}
    assert client.end() is NONE
    assert fetched(bench, client.name, version)[here].committed_offset == 5
    assert fetched(bench, client.name, version, all_topics=True)[here].committed_offset == 5


def test_d8_an_abort_takes_one_offset_and_leaves_the_group_where_it_was(bench: Bench) -> None:
    client = bench.client()
    assert client.commit_offsets(5, topic=bench.topic) is NONE
    assert client.end() is NONE
    for _ in range(2):
        sent(client)
        assert client.commit_offsets(5, topic=bench.topic, offset=9) is NONE
        assert client.end(commit=False) is NONE
    assert fetched(bench, client.name, 8)[bench.topic, 0].committed_offset == 5
    assert bench.list_offset(LATEST, COMMITTED) == 4


def test_d9_every_offset_inside_a_batch_can_be_fetched(bench: Bench) -> None:
    client = bench.client()
    assert client.produce(12, records=5) is NONE
    assert client.end() is NONE
    for offset in range(5):
        assert bench.offsets(offset) == [0, 5]
    assert bench.offsets(5) == [5]


def test_d3_every_answer_has_its_true_offset(bench: Bench) -> None:
    clients = [bench.client() for _ in range(3)]
    answered = []
    for turn in range(6):
        client = clients[turn % 3]
        client.send_produce(12, sequence=turn // 3)
        _, answer = client.connection.receive(0, 12)
        answered.append(answer.responses[0].partition_responses[0].base_offset)
    for client in clients:
        assert client.end() is NONE
    assert answered == list(range(6))
    assert bench.offsets(0) == list(range(9))
