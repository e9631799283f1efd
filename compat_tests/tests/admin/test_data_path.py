"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch with state behind them: the same batches, offsets and sessions
on both brokers, in the versions where answers change, and field by field the same answers, stored bytes included."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka_shim.compat.comparison import lines
from kafka_shim.compat.tests.admin.compare import Pair, plain
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.fetch_request import FetchRequest, ForgottenTopic
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_shim.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.protocol.message import Message
    from kafka_shim.targets import Target
    from kafka_shim.wire_client import Connection

PRODUCE_VERSIONS = (3, 5, 7, 8, 9, 11, 12)
FETCH_VERSIONS = (4, 5, 6, 7, 9, 11, 12)
FETCH_ID_VERSIONS = (13, 15, 16, 17, 18)
UNKNOWN_ID = b"\x09" * 16
DAY_MS = 86_400_000

pytestmark = pytest.mark.timeout(600)


class Topics(Pair):
    """Both brokers with the topics that the cases are about; `ids` are theirs by name, (shim, kafka)."""

    def __init__(self, shim: str, kafka: str) -> None:
        super().__init__(shim, kafka)
        self.ids: dict[str, tuple[bytes, bytes]] = {}
        # One time for all batches: what is stored is compared byte for byte.
        self.now_ms = int(time.time() * 1000)

    def make(self, name: str, partitions: int = 1, **options: str) -> None:
        shim, kafka = (make_topic(side, name, partitions, **options) for side in (self.shim, self.kafka))
        self.ids[name] = (shim, kafka)

    def batch(self, *values: bytes, **header: Any) -> bytes:
        return batch(*values, timestamp_ms=self.now_ms, **header)


@pytest.fixture(scope="module")
def topics(shim: Target, kafka: Target) -> Iterator[Topics]:
    both = Topics(shim.bootstrap, kafka.bootstrap)
    both.make("path", 4)
    both.make("path-compacted", cleanup_policy="compact")
    both.make("path-small", max_message_bytes="300")
    both.make("path-empty")
    for values in ((b"a",), (b"b", b"c"), (b"d",)):
        request = produce_request("path", 0, both.batch(*values))
        assert both.ask(request, [9]) == []
    yield both
    both.close()


def broken(records: bytes, at: int, value: int | None = None) -> bytes:
    changed = bytearray(records)
    changed[at] = changed[at] ^ 1 if value is None else value
    return bytes(changed)


# Null records are left out: Apache Kafka never answers them, the shim closes the connection.
BATCHES = {
    "two records": lambda one: one(b"a", b"b"),
    "nothing": lambda _: b"",
    "two batches": lambda one: one(b"a") + one(b"a"),
    "magic 1": lambda one: broken(one(b"a"), 16, 1),
    "wrong CRC": lambda one: broken(one(b"a"), -1),
    "wrong length": lambda one: broken(one(b"a"), 11),
    "three bytes": lambda _: b"abc",
    "bytes behind": lambda one: one(b"a") + b"xyz",
    "control batch": lambda one: one(b"a", control=True),
    "negative sequence": lambda one: one(b"a", producer_id=5, producer_epoch=0, base_sequence=-1),
    "any first sequence": lambda one: one(b"a", producer_id=6, producer_epoch=0, base_sequence=7),
    "gap": lambda one: one(b"a", producer_id=6, producer_epoch=0, base_sequence=90),
    "no transactional id": lambda one: one(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
    "base offset 5": lambda one: broken(one(b"a"), 7, 5),
    "gzip": lambda one: one(b"a", codec=1),
    "snappy": lambda one: one(b"a", codec=2),
    "lz4": lambda one: one(b"a", codec=3),
    "zstd": lambda one: one(b"a", codec=4),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batches_good_and_bad(topics: Topics, case: str) -> None:
    records = BATCHES[case](topics.batch)
    assert topics.ask(produce_request("path", 1, records), PRODUCE_VERSIONS) == []


def test_what_was_stored_is_the_same_bytes(topics: Topics) -> None:
    assert topics.ask(fetch_request({("path", 0): 0, ("path", 1): 0}), FETCH_VERSIONS) == []
    for offset in range(4):
        assert topics.ask(fetch_request({("path", 0): offset}), [12]) == []


def test_records_from_the_future(topics: Topics) -> None:
    records = batch(b"a", b"b", timestamp_ms=topics.now_ms + 2 * DAY_MS)
    assert topics.ask(produce_request("path", 1, records), PRODUCE_VERSIONS) == []


def test_produce_requests_good_and_bad(topics: Topics) -> None:
    records = topics.batch(b"a")
    twice = [PartitionProduceData(index=3, records=records), PartitionProduceData(index=3, records=records)]
    cases: list[Message] = [
        produce_request("path", 77, records),
        produce_request("nowhere", 0, records),
        produce_request("a b", 0, records),
        produce_request("path", 1, records, acks=2),
        produce_request("nowhere", 1, records, acks=-3),
        produce_request("path-compacted", 0, records),
        produce_request("path-small", 0, topics.batch(bytes(500))),
        ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="path", partition_data=twice)]),
        ProduceRequest(acks=5),
    ]
    for request in cases:
        assert topics.ask(request, (8, 12)) == []


def by_id(topics: Topics, make: Any) -> tuple[Message, Message]:
    shim, kafka = topics.ids["path"]
    return make(shim), make(kafka)


def test_topics_by_id(topics: Topics) -> None:
    records = topics.batch(b"a")
    assert topics.ask(produce_request(UNKNOWN_ID, 0, records), [13]) == []
    assert topics.ask_each(by_id(topics, lambda topic_id: produce_request(topic_id, 2, records)), [13]) == []
    assert topics.ask(fetch_request({(UNKNOWN_ID, 0): 0}), FETCH_ID_VERSIONS) == []
    for offset in (0, 1, 50):
        requests = by_id(topics, lambda topic_id, at=offset: fetch_request({(topic_id, 2): at}))
        assert topics.ask_each(requests, FETCH_ID_VERSIONS) == []


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_fetches_good_and_bad(topics: Topics, isolation_level: int) -> None:
    for offset in (0, 1, 99, -1):
        request = fetch_request({("path", 0): offset}, isolation_level=isolation_level)
        assert topics.ask(request, FETCH_VERSIONS) == []
    for wanted in ({("path-empty", 0): 0}, {("nowhere", 0): 0, ("path", 44): 0, ("path", 0): 0}, {("a b", 0): 0}, {}):
        request = fetch_request(wanted, isolation_level=isolation_level)  # type: ignore[arg-type]
        assert topics.ask(request, FETCH_VERSIONS) == []


def test_an_isolation_level_that_is_none(topics: Topics) -> None:
    assert topics.ask(fetch_request({("path", 0): 0}, isolation_level=7), FETCH_VERSIONS) == []


# Limits inside a batch are left out: there Apache Kafka sends a part of it, which clients drop, and the shim does not.
@pytest.mark.parametrize("limit_bytes", [0, 1, 69, 1 << 20])
def test_limits_of_a_fetch(topics: Topics, limit_bytes: int) -> None:
    both = {("path", 0): 0, ("path", 1): 0}
    assert topics.ask(fetch_request(both, max_bytes=limit_bytes), (4, 12)) == []
    assert topics.ask(fetch_request(both, partition_max_bytes=limit_bytes), (4, 12)) == []


@pytest.mark.parametrize("current", [-1, 0, 1, -5])
def test_leader_epochs(topics: Topics, current: int) -> None:
    for last in (-1, 0, 1, 5):
        for offset in (0, 1, 99):
            request = fetch_request({("path", 0): offset})
            request.topics[0].partitions[0].current_leader_epoch = current
            request.topics[0].partitions[0].last_fetched_epoch = last
            assert topics.ask(request, [12]) == [], (last, offset)
        asked = [OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=last)]
        for name in ("path", "path-empty", "nowhere"):
            request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=asked)])
            assert topics.ask(request, (2, 3, 4)) == [], (last, name)


# Epoch of the request, partitions wanted, partitions forgotten.
SESSION = [
    (0, {("path", 0): 0, ("path", 9): 0, ("nowhere", 0): 0}, ()),
    (1, {}, ()),
    (2, {("path", 1): 0}, ()),
    (3, {("path", 1): 500}, ()),
    (3, {}, ()),
    (9, {}, ()),
    (4, {}, (("path", 0), ("path", 1), ("path", 9))),
    (5, {}, (("nowhere", 0),)),
    (6, {}, ()),
    (-1, {("path", 0): 0}, ()),
    (0, {}, ()),
]


def converse(connection: Connection) -> list[Any]:
    """The answers of one session; its random id is only there or not."""
    session_id, answers = 0, []
    for epoch, wanted, forgotten in SESSION:
        request: FetchRequest = fetch_request(wanted, session_id=session_id, session_epoch=epoch)  # type: ignore[arg-type]
        request.forgotten_topics_data = [ForgottenTopic(topic=name, partitions=[at]) for name, at in forgotten]
        response = connection.request(request, 12)
        if epoch == 0:
            session_id = response.session_id
        answers.append({**plain(response), "session_id": bool(response.session_id)})
    return answers


def test_sessions(topics: Topics) -> None:
    pairs = zip(converse(topics.shim), converse(topics.kafka), strict=True)
    assert [(step, lines(ours, theirs)) for step, (ours, theirs) in enumerate(pairs)] == [
        (step, []) for step in range(len(SESSION))
    ]


def read_on(connection: Connection) -> list[Any]:
    """The answers of a session by ids, the topic of which is deleted, and made again with fewer partitions."""
    name, answers = "path-again", []

    def are_there(count: int) -> bool:
        """Kafka leads one partition of a new topic after the other."""
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
        return not any(each.error_code for each in connection.request(request, 6).topics[0].partitions)

    topic_id = make_topic(connection, name, 2)
    wait_until(lambda: are_there(2), "the topic")
    session_id, wanted = 0, {(topic_id, 0): 0, (topic_id, 1): 0}
    for epoch in range(3):
        request: FetchRequest = fetch_request(wanted if not epoch else {}, session_id=session_id, session_epoch=epoch)  # type: ignore[arg-type]
        response = connection.request(request, 17)
        session_id = response.session_id
        answers.append({**plain(response), "session_id": bool(session_id)})
        if epoch == 0:
            connection.request(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
            wait_until(lambda: not are_there(1), "the end of the topic")
        elif epoch == 1:
            make_topic(connection, name, 1)
            wait_until(lambda: are_there(1), "the new topic")
    answers.append(plain(connection.request(fetch_request(wanted), 17)))  # type: ignore[arg-type]
    return answers


def test_a_session_whose_topic_is_made_again(topics: Topics) -> None:
    pairs = zip(read_on(topics.shim), read_on(topics.kafka), strict=True)
    assert [lines(ours, theirs) for ours, theirs in pairs] == [[]] * 4


@pytest.mark.parametrize("when", [-1, -2, -3, -4, -5, -6, -7, 0, "before", "now", "after"])
def test_offsets_of_times(topics: Topics, when: int | str) -> None:
    relative = {"before": -DAY_MS, "now": 0, "after": DAY_MS}
    timestamp = topics.now_ms + relative[when] if isinstance(when, str) else when
    asked = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    for name in ("path", "path-empty", "nowhere"):
        for isolation_level, versions in ((0, range(1, 12)), (1, range(2, 12))):
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[ListOffsetsTopic(name=name, partitions=asked)],
            )
            assert topics.ask(request, versions) == [], (name, isolation_level)


def test_offsets_of_a_partition_that_comes_twice(topics: Topics) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=-1)] * 2
    topic = ListOffsetsTopic(name="path", partitions=asked)
    assert topics.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), [6]) == []
