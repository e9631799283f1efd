"""Every API has an answer to a request that failed as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import APIS, Api
from kafka_shim.api.failures import failure, failure_in_steps
from kafka_shim.cext.messages import encode
from kafka_shim.errors import DisconnectError, ErrorCode
from kafka_shim.protocol.message import has_version
from kafka_shim.protocol.messages import (
    create_partitions_request,
    delete_records_request,
    describe_log_dirs_request,
    list_offsets_request,
    offset_fetch_request,
    produce_request,
    write_txn_markers_request,
)


def answer(key: int, version: int, request: object) -> object:
    api = next(api for api in APIS if api.key == key)
    api.load()
    return failure(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR, "why")


def empty_requests(api: Api) -> Iterator[tuple[int, Any]]:
    """Each version of an API and a new request; Produce with acks, because it has no answer without."""
    api.load()
    for version in range(api.first, api.last + 1):
        request = api.request()
        if api.key == 0:
            request.acks = 1
        yield version, request


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_empty_request_of_any_version_gets_an_answer_that_can_be_encoded(api: Api):
    for version, request in empty_requests(api):
        response = failure(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR, "why")
        assert isinstance(response, api.response)
        encode(response, version)


NAMES = {"[]string": "t", "[]int32": 1, "[]uuid": bytes(16)}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_request_with_names_of_any_version_gets_an_answer_that_can_be_encoded(api: Api):
    """Of arrays without structs: DescribeGroups before version 6 has no place for the message."""
    for version, request in empty_requests(api):
        for name, kind, versions, *_ in api.request.FIELDS:
            if kind in NAMES and has_version(versions, version):
                setattr(request, name, [NAMES[kind]])
        encode(failure(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR, "why"), version)


def test_the_error_is_in_every_partition_where_there_is_no_place_at_the_top():
    partitions = [list_offsets_request.ListOffsetsPartition(partition_index=index) for index in (3, 5)]
    topics = [list_offsets_request.ListOffsetsTopic(name="t", partitions=partitions)]
    response = answer(2, 6, list_offsets_request.ListOffsetsRequest(topics=topics))
    told = [(topic.name, one.partition_index, one.error_code) for topic in response.topics for one in topic.partitions]
    assert told == [("t", 3, -1), ("t", 5, -1)]


def test_a_failed_produce_names_each_partition_and_without_acks_closes_the_connection():
    data = [produce_request.PartitionProduceData(index=2, records=b"")]
    request = produce_request.ProduceRequest(
        acks=1, topic_data=[produce_request.TopicProduceData(name="t", partition_data=data)]
    )
    (topic,) = answer(0, 9, request).responses
    (one,) = topic.partition_responses
    assert (topic.name, one.index, one.error_code, one.base_offset, one.error_message) == ("t", 2, -1, -1, "why")
    request.acks = 0
    with pytest.raises(DisconnectError):
        answer(0, 9, request)


def test_version_ranges_are_read_as_the_tables_write_them():
    assert has_version("3+", 3)
    assert not has_version("3+", 2)
    assert has_version("0-2", 2)
    assert not has_version("0-2", 3)
    assert has_version("5", 5)
    assert not has_version("5", 6)
    assert not has_version("", 0)


def test_structs_are_matched_by_their_names():
    partition = delete_records_request.DeleteRecordsPartition(partition_index=1, offset=9)
    topic = delete_records_request.DeleteRecordsTopic(name="t", partitions=[partition])
    (told,) = answer(21, 2, delete_records_request.DeleteRecordsRequest(topics=[topic])).topics
    assert (told.name, told.partitions[0].partition_index, told.partitions[0].error_code) == ("t", 1, -1)
    new = create_partitions_request.CreatePartitionsTopic(name="t", count=3)
    (result,) = answer(37, 3, create_partitions_request.CreatePartitionsRequest(topics=[new])).results
    assert (result.name, result.error_code, result.error_message) == ("t", -1, "why")


def test_old_versions_of_offset_fetch_have_the_error_in_each_partition():
    topics = [offset_fetch_request.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 3])]
    told = answer(9, 1, offset_fetch_request.OffsetFetchRequest(group_id="g", topics=topics))
    found = [(topic.name, part.partition_index, part.error_code) for topic in told.topics for part in topic.partitions]
    assert found == [("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR), ("t", 3, ErrorCode.UNKNOWN_SERVER_ERROR)]


@pytest.mark.parametrize("version", range(1, 6))
def test_a_refused_describe_log_dirs_lists_no_directory(version: int):
    """Java's clients before 3.2 took one without a name for each topic, and no refusal."""
    asked = describe_log_dirs_request.DescribableLogDirTopic(topic="t", partitions=[0])
    told = answer(35, version, describe_log_dirs_request.DescribeLogDirsRequest(topics=[asked]))
    assert told.results == []
    assert told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


ENTRIES = 30


def filled(message: Any, version: int) -> Any:
    """The message with `ENTRIES` entries in each array that the version has, and so on inside of these."""
    module = sys.modules[message.__class__.__module__]
    for name, kind, versions, *rest in message.FIELDS:
        if not kind.startswith("[]") or not has_version(versions, version) or len(rest) > 3:
            continue
        struct = getattr(module, kind[2:], None)
        if struct is not None:
            setattr(message, name, [filled(struct(), version) for _ in range(ENTRIES)])
        elif kind in NAMES:
            setattr(message, name, [one(kind, number) for number in range(ENTRIES)])
    return message


def one(kind: str, number: int) -> object:
    return {"[]string": f"t{number}", "[]int32": number, "[]uuid": number.to_bytes(16)}[kind]


def messages_in(answer: Any) -> int:
    found = 0
    for name, kind, *_ in answer.FIELDS:
        if kind.startswith("[]"):
            entries = [entry for entry in getattr(answer, name) or () if hasattr(entry, "FIELDS")]
            found += len(entries) + sum(map(messages_in, entries))
    return found


def codes_in(answer: Any, version: int) -> Iterator[int]:
    for name, kind, versions, *_ in answer.FIELDS:
        if not has_version(versions, version):
            continue
        # Why a new topic's options are not told, which is no failure of the request.
        if name.endswith("error_code") and name != "topic_config_error_code":
            yield getattr(answer, name)
        elif kind.startswith("[]"):
            for entry in getattr(answer, name) or ():
                if hasattr(entry, "FIELDS"):
                    yield from codes_in(entry, version)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_no_code_of_an_answer_says_that_nothing_failed(api: Api):
    """AddPartitionsToTxn before version 4 said so: its only code has a name of its own."""
    for version, request in empty_requests(api):
        told = list(
            codes_in(failure(api, version, filled(request, version), ErrorCode.UNKNOWN_SERVER_ERROR, "why"), version)
        )
        # A refused DescribeLogDirs lists no directory, and below version 3 has no other place for a code.
        has_place = api.key != 35 or version >= 3
        assert set(told) == ({ErrorCode.UNKNOWN_SERVER_ERROR} if has_place else set()), version


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_answer_with_many_entries_is_made_in_as_many_steps(api: Api):
    """One step for each of the innermost entries at least, so that a turn makes few of very many."""
    for version, request in empty_requests(api):
        steps = failure_in_steps(api, version, filled(request, version), ErrorCode.UNKNOWN_SERVER_ERROR, "why")
        taken = 0
        try:
            while True:
                next(steps)
                taken += 1
        except StopIteration as end:
            assert taken >= messages_in(end.value) * ENTRIES // (ENTRIES + 1)


def test_a_failed_write_txn_markers_lists_each_partition_once_under_its_topic():
    """As in Kafka, which keeps them by partition: a topic without one is not listed."""
    listed = [("t", [0, 1]), ("u", []), ("t", [2, 1])]
    topics = [
        write_txn_markers_request.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
        for name, indexes in listed
    ]
    marker = write_txn_markers_request.WritableTxnMarker(producer_id=7, topics=topics)
    response = answer(27, 1, write_txn_markers_request.WriteTxnMarkersRequest(markers=[marker]))
    (result,) = response.markers
    (topic,) = result.topics
    told = [(one.partition_index, one.error_code) for one in topic.partitions]
    assert (result.producer_id, topic.name, told) == (7, "t", [(0, -1), (1, -1), (2, -1)])
