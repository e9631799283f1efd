from __future__ import annotations

import errno

import pytest

from kafka_shim.api.produce_append import MOST_FAILURES_SHOWN
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.tests.produced import batch, fetch, make_topic, metadata, produce, produce_request
from kafka_shim.wire_client import Connection, ConnectionLostError, WireClientError


@pytest.mark.parametrize("version", range(3, 14))
def test_a_batch_is_appended_and_answered_in_every_version(client, version):
    topic_id = make_topic(client, "t")
    topic = topic_id if version >= 13 else "t"
    first = produce(client, topic, 1, batch(b"a", b"b"), version)
    second = produce(client, topic, 1, batch(b"c"), version)
    assert (first.error_code, first.base_offset, first.index) == (0, 0, 1)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert first.log_append_time_ms == -1
    assert first.log_start_offset == (0 if version >= 5 else -1)
    assert len(fetch(client, "t", 1, 0).records) == len(batch(b"a", b"b")) + len(batch(b"c"))


def test_several_partitions_have_outcomes_of_their_own(client):
    make_topic(client, "t", 2)
    bad = bytearray(batch(b"x"))
    bad[-1] ^= 1
    data = [
        PartitionProduceData(index=index, records=records) for index, records in enumerate((batch(b"a"), bytes(bad)))
    ]
    data.append(PartitionProduceData(index=9, records=batch(b"z")))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    (topic,) = client.request(request, 9).responses
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert told == [
        (0, 0, 0),
        (1, ErrorCode.CORRUPT_MESSAGE, -1),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_acks_other_than_0_1_and_all_are_refused(client):
    make_topic(client, "t")
    for acks in (2, -2, 32767):
        told = produce(client, "t", 0, batch(b"a"), acks=acks)
        assert (told.error_code, told.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert fetch(client, "t", 0, 0).high_watermark == 0


def test_without_acks_nothing_is_answered_and_the_connection_goes_on(client):
    make_topic(client, "t")
    client.send(produce_request("t", 0, batch(b"a"), acks=0), 9)
    client.send(produce_request("t", 0, batch(b"b"), acks=0), 9)
    assert produce(client, "t", 0, batch(b"c")).base_offset == 2


def test_a_fault_at_an_append_drops_the_connection(broker, client):
    """The records are stored, and their producer does not know."""
    make_topic(client, "t")
    broker.faults.arm("log.after_append", "drop", nth=1)
    with pytest.raises(ConnectionLostError):
        produce(client, "t", 0, batch(b"a"))
    with Connection(broker.bootstrap_servers) as another:
        assert fetch(another, "t", 0, 0).high_watermark == 1


def test_without_acks_an_error_closes_the_connection(client, caplog):
    make_topic(client, "t")
    client.send(produce_request("t", 7, batch(b"a"), acks=0), 9)
    with pytest.raises(WireClientError):
        metadata(client, "t")
    assert "acks=0" in caplog.text


def test_without_acks_many_errors_are_counted_behind_the_first(client, caplog):
    make_topic(client, "t", 1)
    data = [PartitionProduceData(index=index, records=batch(b"a")) for index in range(1, MOST_FAILURES_SHOWN + 4)]
    client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)]), 9)
    with pytest.raises(WireClientError):
        metadata(client, "t")
    assert " and 3 more" in caplog.text


def test_an_unknown_topic_id_is_told_apart_from_an_unknown_name(client):
    assert produce(client, b"\x01" * 16, 0, batch(b"a"), 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(client, "nowhere", 0, batch(b"a"), 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_batch_two_batches_and_old_formats_are_invalid_records(client):
    make_topic(client, "t")
    old = bytearray(batch(b"a"))
    old[16] = 1
    for records in (b"", b"abc", batch(b"a") + batch(b"b"), bytes(old)):
        told = produce(client, "t", 0, records)
        assert told.error_code == ErrorCode.INVALID_RECORD, records
        assert (told.base_offset, told.log_start_offset, told.error_message) == (-1, -1, None)


def test_null_records_close_the_connection(client):
    make_topic(client, "t")
    with pytest.raises(WireClientError, match="closed"):
        produce(client, "t", 0, None)


def test_null_records_of_what_does_not_exist_are_unknown_and_topics_without_partitions_are_passed_over(client):
    make_topic(client, "t", 1)
    for name, index in (("nowhere", 0), ("t", 9)):
        request = produce_request(name, index, None)
        request.topic_data.append(TopicProduceData(name="t"))
        (told,) = client.request(request, 9).responses
        assert (told.name, told.partition_responses[0].error_code) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert client.request(ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t")]), 9).responses == []


def test_of_a_partition_named_twice_the_last_one_counts(client):
    make_topic(client, "t", 2)
    data = [PartitionProduceData(index=0, records=batch(bytes(size))) for size in (10, 500)]
    topics = [TopicProduceData(name="t", partition_data=data), TopicProduceData(name="t", partition_data=data[1:])]
    (topic,) = client.request(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 9).responses
    assert [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses] == [(0, 0, 0)]
    stored = fetch(client, "t", 0, 0)
    assert (stored.high_watermark, len(stored.records)) == (1, len(batch(bytes(500))))


def test_a_request_that_is_refused_as_a_whole_lists_each_partition_once(client):
    make_topic(client, "t", 2)
    records = batch(b"a", transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    data = [PartitionProduceData(index=index, records=records) for index in (1, 0, 1)]
    topics = [TopicProduceData(name="t", partition_data=data), TopicProduceData(name="t", partition_data=data)]
    (topic,) = client.request(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 9).responses
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [(one.index, one.error_code) for one in topic.partition_responses] == [(1, refused), (0, refused)]


def test_only_an_admin_client_writes_to_internal_topics(broker, client):
    broker.call(lambda: broker.state.metadata.ensure_internal_topic("__transaction_state"))
    told = produce(client, "__transaction_state", 0, batch(b"a"))
    assert told.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_bad_records_are_named_one_by_one(client):
    make_topic(client, "t", cleanup_policy="compact")
    told = produce(client, "t", 0, batch(b"a", b"b"))
    assert told.error_code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in told.record_errors] == [0, 1]
    assert told.error_message


def test_a_duplicate_is_answered_with_its_first_offset(client):
    make_topic(client, "t")
    one = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    assert [produce(client, "t", 0, one).base_offset for _ in range(3)] == [0, 0, 0]
    gap = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=5)
    assert produce(client, "t", 0, gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert fetch(client, "t", 0, 0).high_watermark == 1


def test_a_transactional_batch_needs_a_transactional_id(client):
    make_topic(client, "t")
    records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    told = produce(client, "t", 0, records)
    assert told.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_transactional_batches_of_two_producers_fail_as_a_whole(client):
    make_topic(client, "t", 2)
    data = [
        PartitionProduceData(
            index=index,
            records=batch(b"a", producer_id=7 + index, producer_epoch=0, base_sequence=0, transactional=True),
        )
        for index in (0, 1)
    ]
    request = ProduceRequest(
        transactional_id="x", acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )
    (topic,) = client.request(request, 9).responses
    assert {one.error_code for one in topic.partition_responses} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_flush_messages_holds_the_answer_until_the_disk_has_it(client):
    make_topic(client, "t", flush_messages="1")
    for offset in range(3):
        assert produce(client, "t", 0, batch(b"a")).base_offset == offset


def test_failed_flush_is_told_to_the_partitions_that_it_concerns(broker, client):
    make_topic(client, "t", 2, flush_messages="1")

    def fail(path: str) -> None:
        if "/t-1/" in path:
            raise OSError(errno.EIO, "the disk is gone")

    broker.faults.arm("log.before_fsync", fail)
    data = [PartitionProduceData(index=index, records=batch(b"a")) for index in range(2)]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    (topic,) = client.request(request, 9).responses
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert told == [(0, 0, 0), (1, ErrorCode.KAFKA_STORAGE_ERROR, -1)]


def test_an_unexpected_exception_is_logged_once_and_answered(broker, client, caplog):
    make_topic(client, "t")

    def explode(**facts: object) -> None:
        raise RuntimeError("not as it should be")

    broker.faults.arm("log.before_write", explode)
    told = produce(client, "t", 0, batch(b"a"))
    assert told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    broker.faults.disarm()
    assert caplog.text.count("Traceback") == 1
    assert produce(client, "t", 0, batch(b"a")).base_offset == 0
