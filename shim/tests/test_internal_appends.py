"""`max.message.bytes` of the internal topics holds for what coordinators append. Apache Kafka 4.3.1 was asked the same
and gave the same answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.storage.batch_sizes import divided
from kafka_shim.targets import requests
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture
def client() -> Iterator[Connection]:
    with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        make_topic(connection, "t", 3)
        for key, kind in (("g", 0), ("x", 1)):
            connection.request(requests.make("FindCoordinator", key_type=kind, coordinator_keys=[key]), 4)
        yield connection


def limit(client: Connection, topic: str, size_bytes: int) -> None:
    config = {"name": "max.message.bytes", "config_operation": 0, "value": str(size_bytes)}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [config]}
    (changed,) = client.request(requests.make("IncrementalAlterConfigs", resources=[resource]), 1).responses
    assert changed.error_code == 0


def commit(client: Connection, metadata: str, partitions: int = 1) -> list[int]:
    rows = [
        {"partition_index": number, "committed_offset": 1, "committed_metadata": metadata}
        for number in range(partitions)
    ]
    asked = requests.make(
        "OffsetCommit", group_id="g", generation_id_or_member_epoch=-1, topics=[{"name": "t", "partitions": rows}]
    )
    return [one.error_code for one in client.request(asked, 8).topics[0].partitions]


def committed(client: Connection) -> list[tuple[int, str]]:
    group = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0, 1, 2]}]}
    told = client.request(requests.make("OffsetFetch", groups=[group]), 8).groups[0]
    return [(one.committed_offset, one.metadata) for topic in told.topics for one in topic.partitions]


def test_offsets_that_are_too_large_for_their_topic_are_refused(
    client: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    limit(client, GROUP_METADATA_TOPIC, 300)
    assert commit(client, "m") == [0]
    with caplog.at_level(logging.WARNING):
        assert commit(client, "m" * 500) == [UNKNOWN]
    assert "exceeds the maximum configured value of 300" in caplog.text
    assert commit(client, "m" * 100, 3) == [UNKNOWN] * 3  # one batch, whole or not at all
    assert committed(client) == [(1, "m"), (-1, ""), (-1, "")]
    assert commit(client, "n") == [0]


def test_a_member_that_is_too_large_for_the_topic_is_refused_and_is_none(client: Connection) -> None:
    limit(client, GROUP_METADATA_TOPIC, 300)

    def beat(member_id: str) -> Any:
        asked = requests.make(
            "ConsumerGroupHeartbeat",
            group_id="k",
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        return client.request(asked, 1)

    told = beat("m" * 400)
    assert (told.error_code, told.error_message) == (UNKNOWN, None)
    limit(client, GROUP_METADATA_TOPIC, 1 << 20)
    told = beat("m")
    assert told.error_code == 0
    assert len(told.assignment.topic_partitions[0].partitions) == 3  # of all of them: it is the only member


def test_a_transaction_that_is_too_large_for_its_topic_is_refused(client: Connection) -> None:
    asked = requests.make(
        "InitProducerId", transactional_id="x", transaction_timeout_ms=60000, producer_id=-1, producer_epoch=-1
    )
    first = client.request(asked, 4)
    assert first.error_code == 0
    limit(client, TRANSACTION_STATE_TOPIC, 100)
    assert client.request(asked, 4).error_code == UNKNOWN
    limit(client, TRANSACTION_STATE_TOPIC, 1 << 20)
    assert client.request(asked, 4).producer_epoch == first.producer_epoch + 1


def test_what_need_not_be_whole_is_divided(client: Connection) -> None:
    """The tombstones of a group that is deleted: a topic with a low limit takes them in several batches."""
    assert commit(client, "m", 3) == [0] * 3
    limit(client, GROUP_METADATA_TOPIC, 110)
    told = client.request(requests.make("DeleteGroups", groups_names=["g"]), 2)
    assert [one.error_code for one in told.results] == [0]
    assert committed(client) == [(-1, "")] * 3


def test_pairs_are_divided_by_count_and_size() -> None:
    pairs: list[tuple[bytes, bytes | None]] = [(b"k" * 9, b"v" * 10)] * 10
    sizes = [(part.start, part.stop) for part in divided(pairs, 4, 1 << 20)]
    assert sizes == [(0, 4), (4, 8), (8, 10)]
    sizes = [(part.start, part.stop) for part in divided(pairs, 100, 61 + 3 * 40)]
    assert sizes == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert [(part.start, part.stop) for part in divided([*pairs[:1], (b"k", b"v" * 999), *pairs[:1]], 9, 200)] == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    assert list(divided([], 4, 100)) == []
