"""Transactions as administrators see and end them. A cluster of two: compat_tests/tests/admin/test_two_brokers.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim.client.cluster import Cluster
from kafka_shim.client.reading import LATEST, list_offsets, read_all
from kafka_shim.client.topics import create_topic
from kafka_shim.client.transactions import abort, describe_transaction, list_transactions, producers_of
from kafka_shim.client.writing import Producer
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as cluster:
        yield cluster


def begin(cluster: Cluster, name: str) -> None:
    producer = Producer(cluster, transactional_id=name)
    producer.begin()
    producer.send("t", b"open", partition=0)
    producer.flush()


def test_they_are_listed_by_their_filters(cluster: Cluster) -> None:
    create_topic(cluster, "t", partitions=1)
    begin(cluster, "open")
    Producer(cluster, transactional_id="empty")
    found, unknown = list_transactions(cluster, state_filters=["Ongoing", "Nonsense"], duration_filter=-1)
    assert [(node_id, one.transactional_id) for node_id, one in found] == [(1, "open")]
    assert unknown == ["Nonsense"]
    found, unknown = list_transactions(cluster, duration_filter=-1)
    assert sorted(one.transactional_id for _, one in found) == ["empty", "open"]
    assert unknown == []


def test_a_pattern_that_is_none_is_named(cluster: Cluster) -> None:
    with pytest.raises(RequestError) as caught:
        list_transactions(cluster, duration_filter=-1, transactional_id_pattern="a(")
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "a(" in str(caught.value)


def test_one_is_described_with_its_coordinator(cluster: Cluster) -> None:
    create_topic(cluster, "t", partitions=1)
    begin(cluster, "open")
    node_id, found = describe_transaction(cluster, "open")
    assert (node_id, found.transactional_id, found.transaction_state) == (1, "open", "Ongoing")
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0])]
    _, unknown = describe_transaction(cluster, "nobody")
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_what_a_producer_has_open_in_a_partition_is_aborted(cluster: Cluster) -> None:
    create_topic(cluster, "t", partitions=2)
    begin(cluster, "open")
    ((topic, partition, producer),) = producers_of(cluster, [("t", 0), ("t", 1)])
    assert (topic, partition, producer.current_txn_start_offset) == ("t", 0, 0)
    abort(cluster, ("t", 0), producer)
    ((_, _, producer),) = producers_of(cluster, [("t", 0)])
    assert producer.current_txn_start_offset == -1
    assert list_offsets(cluster, {("t", 0): LATEST}) == {("t", 0): 2}  # the record and the marker
    assert len(read_all(cluster, [("t", 0)])) == 1
    assert read_all(cluster, [("t", 0)], read_committed=True) == []


def test_producers_of_a_partition_that_is_none_are_an_error(cluster: Cluster) -> None:
    create_topic(cluster, "t", partitions=1)
    with pytest.raises(RequestError) as caught:
        producers_of(cluster, [("t", 7)])
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
