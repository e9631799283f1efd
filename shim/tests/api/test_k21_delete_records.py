from __future__ import annotations

import errno

import pytest

from kafka_shim.api import k21_delete_records
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_shim.storage import checkpoint
from kafka_shim.storage.checkpoint import LOG_START_OFFSETS, read_offsets
from kafka_shim.tests.api.admin import create, new_topic, purge
from kafka_shim.tests.produced import batch, fetch, produce


@pytest.mark.parametrize("version", range(3))
def test_the_start_moves_to_an_offset_or_to_the_end(client, version):
    create(client, new_topic("t"))
    produce(client, "t", 0, batch(b"a", b"b", b"c"))
    assert purge(client, "t", 0, 2, version) == (2, 0)
    assert fetch(client, "t", 0, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert purge(client, "t", 0, -1, version) == (3, 0)
    assert fetch(client, "t", 0, 3).log_start_offset == 3


def test_an_offset_below_the_start_changes_nothing(client):
    create(client, new_topic("t"))
    produce(client, "t", 0, batch(b"a", b"b"))
    assert purge(client, "t", 0, 1) == (1, 0)
    assert purge(client, "t", 0, 0) == (1, 0)


@pytest.mark.parametrize(
    ("name", "partition", "offset", "code"),
    [
        ("t", 0, 1, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 5, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0, 0, ErrorCode.POLICY_VIOLATION),
        ("__consumer_offsets", 0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_deleted_says_why(client, name, partition, offset, code):
    create(client, new_topic("t"), new_topic("compacted", cleanup_policy="compact"), new_topic("__consumer_offsets"))
    assert purge(client, name, partition, offset) == (-1, code)


def test_of_a_partition_named_twice_the_last_offset_counts(client):
    create(client, new_topic("t", 2))
    produce(client, "t", 0, batch(b"a", b"b", b"c"))
    named = [(0, 1), (1, 0)], [], [(0, 2)]
    topics = [
        DeleteRecordsTopic(
            name="t",
            partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in partitions],
        )
        for partitions in named
    ]
    (told,) = client.request(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2).topics
    assert [(one.partition_index, one.low_watermark) for one in told.partitions] == [(0, 2), (1, 0)]


def delete(client, name, count, offset):
    """What DeleteRecords answers for that many partitions of a topic: low watermarks and error codes."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index in range(count)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=partitions)], timeout_ms=1000)
    (told,) = client.request(request, 2).topics
    assert [one.partition_index for one in told.partitions] == list(range(count))
    return [one.low_watermark for one in told.partitions], {one.error_code for one in told.partitions}


def test_starts_of_many_partitions_are_written_together_before_the_answer(client, broker, monkeypatch):
    monkeypatch.setattr(k21_delete_records, "SLICE", 4)
    create(client, new_topic("t", 10))
    for index in range(10):
        produce(client, "t", index, batch(b"a", b"b"))
    written = []
    right = checkpoint.write_offsets

    def note(path, offsets, *, sync):
        right(path, offsets, sync=sync)
        if path.endswith(LOG_START_OFFSETS):
            written.append(len(offsets))

    monkeypatch.setattr(checkpoint, "write_offsets", note)
    assert delete(client, "t", 10, 1) == ([1] * 10, {0})
    assert written == [4, 8, 10]
    assert delete(client, "t", 10, 1) == ([1] * 10, {0})
    assert written == [4, 8, 10]
    assert set(read_offsets(f"{broker.data_dir}/{LOG_START_OFFSETS}").values()) == {1}


def test_starts_that_could_not_be_written_are_refused_together(client, monkeypatch):
    create(client, new_topic("t", 3))
    produce(client, "t", 1, batch(b"a", b"b"))

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_offsets", full)
        assert delete(client, "t", 3, -1) == ([0, -1, 0], {0, ErrorCode.KAFKA_STORAGE_ERROR})
    assert fetch(client, "t", 1, 0).log_start_offset == 0
    assert delete(client, "t", 3, -1) == ([0, 2, 0], {0})
