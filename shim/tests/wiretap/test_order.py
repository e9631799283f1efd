"""What a replay sends, and when, is not what chance made of the recording."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kafka_shim.cext.records import build, build_marker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafka_shim.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.end_txn_response import EndTxnResponse
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_commit_response import OffsetCommitResponse
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequest
from kafka_shim.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_shim.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kafka_shim.wiretap.calls import calls_of
from kafka_shim.wiretap.capture import Entry, Kind
from kafka_shim.wiretap.frames import Request, build_request, build_response
from kafka_shim.wiretap.order import arranged, windows

LOADING = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Told:
    """A capture in the making."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def ask(self, connection: int, message: Message, version: int, correlation_id: int = 0) -> Request:
        request = Request(message.API_KEY, version, correlation_id, "c", message)
        self.entries.append(Entry(Kind.REQUEST, connection, 0, build_request(request)))
        return request

    def answer(self, connection: int, request: Request, response: Message) -> None:
        self.entries.append(Entry(Kind.RESPONSE, connection, 0, build_response(request, response)))

    @property
    def order(self) -> list[int]:
        return [number for number, _ in arranged(self.entries)]


def produce(value: bytes, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=bytes(build([(None, value, 1, ())])))
    return ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def produced(base_offset: int, partition: int = 0) -> ProduceResponse:
    part = PartitionProduceResponse(index=partition, base_offset=base_offset)
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[part])])


def test_what_was_refused_for_the_time_being_is_sent_once() -> None:
    told = Told()
    for number, error in enumerate((LOADING, LOADING, 0)):
        asked = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, number)
        told.answer(1, asked, InitProducerIdResponse(error_code=error, producer_id=5))
    assert told.order == [4, 5]


def test_what_never_got_through_is_sent_as_often_as_it_was() -> None:
    told = Told()
    for number in range(2):
        asked = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, number)
        told.answer(1, asked, InitProducerIdResponse(error_code=LOADING))
    assert told.order == [0, 1, 2, 3]


def test_a_join_with_other_words_is_the_same_join() -> None:
    told = Told()
    for reason, error in (("", int(ErrorCode.NOT_COORDINATOR)), ("rebalance failed", 0)):
        asked = told.ask(1, JoinGroupRequest(group_id="g", protocol_type="consumer", reason=reason), 9)
        told.answer(1, asked, JoinGroupResponse(error_code=error))
    assert told.order == [2, 3]


def test_appends_that_crossed_go_in_the_order_of_their_offsets() -> None:
    told = Told()
    late = told.ask(1, produce(b"second"), 9)
    early = told.ask(2, produce(b"first"), 9)
    told.answer(1, late, produced(1))
    told.answer(2, early, produced(0))
    # The second connection's request and answer, then the first's.
    assert told.order == [1, 3, 0, 2]


@pytest.mark.parametrize("is_late", [False, True], ids=["under way", "Kafka's late marker"])
def test_a_marker_stays_behind_the_batch_that_it_was_written_behind(is_late: bool) -> None:
    told = Told()
    batch = bytes(build([(None, b"a", 1, ())], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    data = PartitionProduceData(index=0, records=batch)
    inside = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    told.answer(1, told.ask(1, inside, 9), produced(0))
    end = told.ask(1, EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=True), 3)
    if is_late:
        told.answer(1, end, EndTxnResponse())
    other = told.ask(2, produce(b"b"), 9)
    if not is_late:
        told.answer(1, end, EndTxnResponse())
    told.answer(2, other, produced(1))
    # Only a reader knows where the marker is.
    written = bytes(build_marker(5, 0, 0, True, 1, base_offset=2))
    part = PartitionData(partition_index=0, records=written)
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    told.answer(3, told.ask(3, FetchRequest(), 12), fetched)
    assert told.order == ([0, 1, 4, 5, 2, 3, 6, 7] if is_late else [0, 1, 3, 5, 2, 4, 6, 7])


def test_a_marker_without_a_batch_is_that_of_the_transaction_that_added_its_partition() -> None:
    """librdkafka drops what it has not sent when a transaction is aborted, whose partitions were added before."""
    told = Told()
    batch = bytes(build([(None, b"a", 1, ())], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    data = PartitionProduceData(index=0, records=batch)
    inside = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    adds = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=5,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )

    def end(*, committed: bool) -> None:
        request = EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=committed)
        told.answer(1, told.ask(1, request, 3), EndTxnResponse())

    told.answer(1, told.ask(1, inside, 9), produced(0))
    end(committed=True)
    end(committed=True)  # of a transaction that is elsewhere
    told.answer(2, told.ask(2, produce(b"b"), 9), produced(2))
    told.answer(1, told.ask(1, adds, 3), AddPartitionsToTxnResponse())
    end(committed=False)
    told.answer(2, told.ask(2, produce(b"c"), 9), produced(4))
    markers = (build_marker(5, 0, 0, commit, 1, base_offset=at) for at, commit in ((1, True), (3, False)))
    part = PartitionData(partition_index=0, records=b"".join(map(bytes, markers)))
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    told.answer(3, told.ask(3, FetchRequest(), 12), fetched)
    assert told.order == list(range(16))


def test_offsets_begin_anew_when_a_topic_is_deleted() -> None:
    told = Told()
    two = [(None, b"a", 1, ())] * 2
    batch = bytes(build(two, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    data = PartitionProduceData(index=0, records=batch)
    inside = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    told.answer(1, told.ask(1, inside, 9), produced(0))
    end = EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=True)
    told.answer(1, told.ask(1, end, 3), EndTxnResponse())
    part = PartitionData(partition_index=0, records=bytes(build_marker(5, 0, 0, True, 1, base_offset=2)))
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    told.answer(3, told.ask(3, FetchRequest(), 12), fetched)
    deleted = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")])
    told.answer(2, told.ask(2, DeleteTopicsRequest(topic_names=["t"]), 4), deleted)
    for offset in (0, 1):
        told.answer(2, told.ask(2, produce(b"b"), 9), produced(offset))
    assert told.order == list(range(12))


@pytest.mark.parametrize("version", [12, 16], ids=["read by name", "read by id"])
def test_a_batch_stays_behind_a_late_marker(version: int) -> None:
    told = Told()
    named = MetadataResponse(topics=[MetadataResponseTopic(name="t", topic_id=b"t" * 16)])
    told.answer(3, told.ask(3, MetadataRequest(), 12), named)
    batch = bytes(build([(None, b"a", 1, ())], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    data = PartitionProduceData(index=0, records=batch)
    inside = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    told.answer(1, told.ask(1, inside, 9), produced(0))
    end = told.ask(1, EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=True), 3)
    told.answer(1, end, EndTxnResponse())
    behind = told.ask(2, produce(b"behind"), 9)
    before = told.ask(4, produce(b"before"), 9)
    told.answer(4, before, produced(1))
    told.answer(2, behind, produced(3))
    part = PartitionData(partition_index=0, records=bytes(build_marker(5, 0, 0, True, 1, base_offset=2)))
    topic = FetchableTopicResponse(topic="t", topic_id=b"t" * 16, partitions=[part])
    told.answer(3, told.ask(3, FetchRequest(), version), FetchResponse(responses=[topic]))
    assert told.order == [0, 1, 2, 3, 7, 8, 4, 5, 6, 9, 10, 11]


def test_an_end_waits_for_an_append_whose_connection_waits_for_that_end() -> None:
    """A producer sends to two partitions at once: the marker of another stands behind its batch in the one and before
    its batch in the other."""
    told = Told()
    batch = bytes(build([(None, b"a", 1, ())], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    for partition in (0, 1):
        data = PartitionProduceData(index=partition, records=batch)
        inside = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        told.answer(1, told.ask(1, inside, 9), produced(0, partition))
    behind, before = told.ask(2, produce(b"b", 1), 9), told.ask(2, produce(b"b", 0), 9)
    end = told.ask(3, EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=True), 3)
    told.answer(3, end, EndTxnResponse())
    told.answer(2, behind, produced(1, 1))
    told.answer(2, before, produced(2, 0))
    parts = [
        PartitionData(partition_index=partition, records=bytes(build_marker(5, 0, 0, True, 1, base_offset=offset)))
        for partition, offset in ((0, 1), (1, 2))
    ]
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])
    told.answer(4, told.ask(4, FetchRequest(), 12), fetched)
    assert told.order == [0, 1, 2, 3, 4, 8, 6, 7, 5, 9, 10, 11]


def committed(offset: int) -> TxnOffsetCommitRequest:
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = TxnOffsetCommitRequestTopic(name="t", partitions=[part])
    return TxnOffsetCommitRequest(transactional_id="x", group_id="g", producer_id=5, producer_epoch=0, topics=[topic])


def returned(offset: int, version: int) -> OffsetFetchResponse:
    if version < 8:
        old = OffsetFetchResponsePartition(partition_index=0, committed_offset=offset)
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[old])])
    part = OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset)
    topic = OffsetFetchResponseTopics(name="t", partitions=[part])
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])


def transaction(told: Told, offset: int) -> Request:
    """The steps of a transaction that commits an offset, up to the request of its end."""
    told.answer(1, told.ask(1, committed(offset), 3), TxnOffsetCommitResponse())
    return told.ask(1, EndTxnRequest(transactional_id="x", producer_id=5, producer_epoch=0, committed=True), 3)


@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize(
    ("offset", "order"),
    [
        pytest.param(1, [0, 1, 2, 3, 4, 5, 7, 8, 6, 9], id="before the marker"),
        pytest.param(2, [0, 1, 2, 3, 4, 5, 6, 9, 7, 8], id="behind the marker"),
    ],
)
def test_an_offset_that_was_read_during_the_end_of_a_transaction(version: int, offset: int, order: list[int]) -> None:
    told = Told()
    told.answer(1, transaction(told, 1), EndTxnResponse())
    end = transaction(told, 2)
    reading = told.ask(2, OffsetFetchRequest(group_id="g" if version < 8 else ""), version)
    told.answer(2, reading, returned(offset, version))
    told.answer(1, end, EndTxnResponse())
    assert told.order == order


@pytest.mark.parametrize(
    ("offset", "order"),
    [
        pytest.param(1, [0, 1, 2, 3, 4, 5, 8, 9, 6, 7], id="the offset before"),
        pytest.param(-1, [0, 1, 8, 9, 2, 3, 4, 5, 6, 7], id="nothing before"),
    ],
)
def test_an_offset_that_was_read_before_kafka_s_late_marker(offset: int, order: list[int]) -> None:
    told = Told()
    told.answer(1, transaction(told, 1), EndTxnResponse())
    told.answer(1, transaction(told, 2), EndTxnResponse())
    told.answer(2, told.ask(2, OffsetFetchRequest(), 9), returned(offset, 9))
    assert told.order == order


def test_an_offset_that_another_commit_may_have_brought_back_moves_nothing() -> None:
    told = Told()
    told.answer(1, transaction(told, 1), EndTxnResponse())
    told.answer(1, transaction(told, 2), EndTxnResponse())
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    told.answer(2, told.ask(2, OffsetCommitRequest(group_id="g", topics=[topic]), 8), OffsetCommitResponse())
    told.answer(2, told.ask(2, OffsetFetchRequest(), 9), returned(1, 9))
    assert told.order == list(range(12))


def test_what_a_request_was_recorded_behind_stays_before_it() -> None:
    """librdkafka adds partitions on another connection than it produces on."""
    told = Told()
    late = told.ask(1, produce(b"second"), 9)
    adding = told.ask(3, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4)
    told.answer(3, adding, InitProducerIdResponse(producer_id=5))
    early = told.ask(2, produce(b"first"), 9)
    told.answer(2, early, produced(0))
    told.answer(1, late, produced(1))
    after = told.ask(3, InitProducerIdRequest(transactional_id="y", transaction_timeout_ms=1), 4)
    told.answer(3, after, InitProducerIdResponse(producer_id=6))
    assert told.order == [1, 2, 3, 4, 0, 5, 6, 7]


def test_a_chain_of_appends_that_crossed() -> None:
    told = Told()
    asked = [told.ask(connection, produce(b"x"), 9) for connection in range(4)]
    for connection, request in enumerate(asked):
        told.answer(connection, request, produced(3 - connection))
    assert told.order == [3, 7, 2, 6, 1, 5, 0, 4]


@pytest.mark.parametrize("seed", range(100))
def test_whatever_crossed_nothing_is_lost_and_connections_keep_their_order(seed: int) -> None:
    chance, told = random.Random(seed), Told()
    offsets = list(range(12))
    chance.shuffle(offsets)
    waiting: dict[int, list[Request]] = {connection: [] for connection in range(4)}
    left = 12
    while left or any(waiting.values()):
        connection = chance.randrange(4)
        if left and chance.random() < 0.5:
            waiting[connection].append(told.ask(connection, produce(b"x", left % 2), 9))
            left -= 1
        elif waiting[connection]:
            request = waiting[connection].pop(0)
            partition = request.message.topic_data[0].partition_data[0].index
            told.answer(connection, request, produced(offsets.pop(), partition))
    assert sorted(told.order) == list(range(len(told.entries)))
    place = {number: at for at, number in enumerate(told.order)}
    for connection in range(4):
        for kind in (Kind.REQUEST, Kind.RESPONSE):
            mine = [n for n, entry in enumerate(told.entries) if (entry.connection, entry.kind) == (connection, kind)]
            assert mine == sorted(mine, key=place.__getitem__)
    assert all(place[call.sent] < place[call.answered] for call in calls_of(told.entries))


def test_appends_to_different_partitions_stay_where_they_are() -> None:
    told = Told()
    one = told.ask(1, produce(b"a", 0), 9)
    two = told.ask(2, produce(b"b", 1), 9)
    told.answer(1, one, produced(7, 0))
    told.answer(2, two, produced(3, 1))
    assert told.order == [0, 1, 2, 3]


def test_a_connection_s_own_order_is_never_changed() -> None:
    told = Told()
    one: Any = told.ask(1, produce(b"a"), 9)
    two: Any = told.ask(1, produce(b"b"), 9)
    told.answer(1, one, produced(1))
    told.answer(1, two, produced(0))
    assert told.order == [0, 1, 2, 3]


def pieces(told: Told) -> list[list[int]]:
    """What is replayed at a time while the recording goes on."""

    async def arriving() -> AsyncIterator[Entry]:
        for entry in told.entries:
            yield entry

    async def run() -> list[list[int]]:
        return [[number for number, _ in piece] async for piece in windows(arriving())]

    return asyncio.run(run())


def test_a_twin_gets_each_request_when_it_is_answered() -> None:
    told = Told()
    for number in range(2):
        asked = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, number)
        told.answer(1, asked, InitProducerIdResponse(producer_id=5))
    assert pieces(told) == [[0, 1], [2, 3]]


def test_a_twin_is_not_asked_twice_what_was_refused_for_the_time_being() -> None:
    told = Told()
    for number, error in enumerate((LOADING, 0)):
        asked = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, number)
        told.answer(1, asked, InitProducerIdResponse(error_code=error, producer_id=5))
    assert pieces(told) == [[2, 3]]


def test_an_answer_finds_its_request_across_pieces() -> None:
    told = Told()
    parked = told.ask(1, FetchRequest(), 4, 1)
    other = told.ask(2, produce(b"a"), 9)
    told.answer(2, other, produced(0))
    refused = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, 2)
    told.answer(1, parked, FetchResponse())
    told.answer(1, refused, InitProducerIdResponse(error_code=LOADING))
    again = told.ask(1, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, 3)
    told.answer(1, again, InitProducerIdResponse(producer_id=5))
    assert pieces(told) == [[0], [1, 2], [4, 6, 7]]
