from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.api.k02_list_offsets import EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED
from kafka_shim.api.k02_list_offsets import MAX_TIMESTAMP as NEWEST
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.tests.turns.harness import begun, steps_of
from kafka_shim.wire_client import Connection

START_MS = 1_700_000_000_000


def ask(client, *timestamps: int, version: int = 11, epoch: int = -1, topic: str = "t", isolation_level: int = 0):
    """The answers for partition 0, one request for each."""
    found = []
    for timestamp in timestamps:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
        topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
        (told,) = client.request(request, version).topics[0].partitions
        found.append((told.error_code, told.timestamp, told.offset))
    return found


@pytest.mark.parametrize("version", range(1, 12))
def test_ends_and_times_are_found_in_every_version(client, version):
    make_topic(client, "t")
    for number in range(3):
        produce(client, "t", 0, batch(b"a", b"b", timestamp_ms=START_MS + number * 1000))
    asked = ask(client, LATEST, EARLIEST, START_MS, START_MS + 1, START_MS + 2001, version=version)
    assert asked == [
        (0, -1, 6),
        (0, -1, 0),
        (0, START_MS, 0),
        (0, START_MS + 1000, 2),
        (0, -1, -1),
    ]


def test_special_times_need_their_versions_and_nothing_is_tiered(client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a", timestamp_ms=START_MS + 5))
    produce(client, "t", 0, batch(b"a", timestamp_ms=START_MS))
    for timestamp, first_version, told in (
        (NEWEST, 7, (0, START_MS + 5, 0)),
        (EARLIEST_LOCAL, 8, (0, -1, 0)),
        (LATEST_TIERED, 9, (0, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, 11, (0, -1, -1)),
    ):
        assert ask(client, timestamp, version=first_version) == [told]
        assert ask(client, timestamp, version=first_version - 1) == [(ErrorCode.UNSUPPORTED_VERSION, -1, -1)]
    assert ask(client, -99) == [(ErrorCode.UNSUPPORTED_VERSION, -1, -1)]


def test_an_empty_log_has_ends_but_no_newest_record(client):
    make_topic(client, "t")
    assert ask(client, LATEST, EARLIEST, NEWEST) == [(0, -1, 0), (0, -1, 0), (0, -1, -1)]


def test_repeats_unknown_partitions_and_epochs_are_errors(client):
    make_topic(client, "t")
    twice = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)] * 2
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=twice)])
    (told,) = client.request(request, 6).topics[0].partitions
    assert told.error_code == ErrorCode.INVALID_REQUEST
    assert ask(client, LATEST, topic="nowhere") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
    assert ask(client, LATEST, epoch=4) == [(ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)]
    assert ask(client, LATEST, epoch=-5) == [(ErrorCode.FENCED_LEADER_EPOCH, -1, -1)]


def test_a_topic_is_answered_once_and_not_without_partitions(client):
    """As by Apache Kafka."""
    make_topic(client, "t", 2)
    rows = [("t", [0]), ("absent", [0]), ("t", []), ("none", []), ("t", [1, 0])]
    topics = [
        ListOffsetsTopic(
            name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes]
        )
        for name, indexes in rows
    ]
    answer = client.request(ListOffsetsRequest(replica_id=-1, topics=topics), 11)
    assert [
        (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions]) for topic in answer.topics
    ] == [
        ("t", [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE)]),
        ("absent", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_an_isolation_level_that_does_not_exist_fails_every_partition(client):
    make_topic(client, "t")
    assert ask(client, LATEST, EARLIEST, 0, isolation_level=9) == [(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)] * 3
    assert client.request(ListOffsetsRequest(replica_id=-1, isolation_level=9), 11).topics == []


def restart_with_segments(broker: Broker) -> None:
    """Start again with sixty segments of one record, a second after each other, of which none was read."""
    with Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1, internal_segment_bytes="200", retention_ms="-1")
        for number in range(60):
            produce(client, "t", 0, batch(b"a" * 50, timestamp_ms=START_MS + number * 1000))
    broker.restart()


@pytest.mark.parametrize(("timestamp", "least", "offset"), [(START_MS + 50_000, 51, 50), (NEWEST, 60, 59)])
def test_after_a_restart_each_segment_is_a_step(tmp_path: Path, timestamp: int, least: int, offset: int):
    """Its index is read then: 2,000 segments held the event loop for a third of a second."""
    asked = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
    with Broker(data_dir=tmp_path) as broker:
        restart_with_segments(broker)
        answer, steps = broker.call(lambda state: steps_of(begun(state, request, 11, 0)), broker.state)
        (told,) = answer.topics[0].partitions
        assert (told.error_code, told.offset) == (0, offset)
        assert least <= steps < least + 8
        _, again = broker.call(lambda state: steps_of(begun(state, request, 11, 0)), broker.state)
        assert again < 8


def test_a_segment_that_is_deleted_between_two_steps_is_not_read(tmp_path: Path):
    asked = [ListOffsetsPartition(partition_index=0, timestamp=START_MS + 50_000)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])

    def look_up(state):
        steps = begun(state, request, 11, 8)
        log = state.logs.get("t", 0)
        log.release_before(55, START_MS)
        return log.is_offline, steps_of(steps)[0]

    with Broker(data_dir=tmp_path) as broker:
        restart_with_segments(broker)
        is_offline, answer = broker.call(look_up, broker.state)
    (told,) = answer.topics[0].partitions
    assert (is_offline, told.error_code, told.offset) == (False, 0, 55)
