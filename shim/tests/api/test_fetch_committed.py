"""Fetch under read_committed: the last stable offset, aborted transactions, and parked readers that a marker wakes
(B14, B15)."""

from __future__ import annotations

import pytest

from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce, size_of
from kafka_shim.wire_client import Connection

COMMITTED = {"isolation_level": 1}


class Producer:
    """A transactional producer of the protocol with implicit adds (Produce v12, EndTxn v5)."""

    def __init__(self, client: Connection, name: str) -> None:
        self._client = client
        self._name = name
        client.request(FindCoordinatorRequest(coordinator_keys=[name], key_type=1), 6)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        told = client.request(request, 5)
        assert told.error_code == 0
        self.producer_id, self.producer_epoch = told.producer_id, told.producer_epoch
        self._sequence = 0

    def write(self, value: bytes, partition: int = 0) -> int:
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        told = produce(self._client, "t", partition, records, 12, transactional_id=self._name)
        assert told.error_code == 0
        self._sequence += 1
        return told.base_offset

    def end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._name,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )
        told = self._client.request(request, 5)
        assert told.error_code == 0
        self.producer_epoch, self._sequence = told.producer_epoch, 0


def test_nothing_at_or_above_the_last_stable_offset_is_given(client):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"before"))
    writer = Producer(client, "x")
    assert writer.write(b"open") == 1
    produce(client, "t", 0, batch(b"after"))
    told = fetch(client, "t", 0, 0, **COMMITTED)
    assert (told.high_watermark, told.last_stable_offset) == (3, 1)
    assert b"before" in bytes(told.records)
    assert b"open" not in bytes(told.records)
    assert told.aborted_transactions == []
    between = fetch(client, "t", 0, 2, **COMMITTED)
    assert (between.error_code, size_of(between.records)) == (0, 0)
    assert len(fetch(client, "t", 0, 0).records) > len(told.records)
    writer.end(commit=True)
    assert fetch(client, "t", 0, 0, **COMMITTED).last_stable_offset == 4


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_wakes_a_parked_reader_with_what_it_decided(broker, client, commit):
    make_topic(client, "t", 1)
    writer = Producer(client, "x")
    writer.write(b"data")
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000, **COMMITTED), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        writer.write(b"more")
        assert broker.call(lambda: len(broker.state.parked)) == 1
        writer.end(commit)
        _, response = reader.receive(1, 12)
    (told,) = response.responses[0].partitions
    assert told.last_stable_offset == 3
    assert b"data" in bytes(told.records)
    aborted = [(one.producer_id, one.first_offset) for one in told.aborted_transactions]
    assert aborted == ([] if commit else [(writer.producer_id, 0)])


def test_a_session_tells_of_markers_that_move_only_the_high_watermark(client):
    make_topic(client, "t", 2)
    writer = Producer(client, "x")
    writer.write(b"data", partition=1)
    full = client.request(fetch_request({("t", 0): 0, ("t", 1): 0}, session_epoch=0, **COMMITTED), 12)
    assert size_of(full.responses[0].partitions[0].records) == 0
    writer.end(commit=False)
    news = client.request(fetch_request({}, session_id=full.session_id, session_epoch=1, **COMMITTED), 12)
    (told,) = [one for topic in news.responses for one in topic.partitions]
    assert (told.partition_index, told.high_watermark) == (1, 2)
    assert [one.first_offset for one in told.aborted_transactions] == [0]


@pytest.mark.parametrize(
    ("limit", "offset", "found"), [(0, 0, [0]), (0, 2, [2]), (0, 4, []), (10, 0, None), (10, 4, [])]
)
def test_aborted_transactions_of_a_partition_that_size_limits_leave_empty(client, limit, offset, found):
    """As Apache Kafka 4.3.1: with no bytes left they are those up to the next entry of the offset index, and there is
    no list where some are left and the first batch does not fit."""
    make_topic(client, "t", 2)
    writer = Producer(client, "x")
    produce(client, "t", 0, batch(b"first of all"))
    for _ in range(2):
        writer.write(b"data", partition=1)
        writer.end(commit=False)
    request = fetch_request({("t", 0): 0, ("t", 1): offset}, **COMMITTED)
    request.topics[1].partitions[0].partition_max_bytes = limit
    (told,) = client.request(request, 12).responses[-1].partitions[-1:]
    assert (told.partition_index, told.error_code, size_of(told.records)) == (1, 0, 0)
    aborted = told.aborted_transactions
    assert (None if aborted is None else [one.first_offset for one in aborted]) == found
