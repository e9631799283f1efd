from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.protocol.messages.fetch_request import FetchRequest, ForgottenTopic, ReplicaState
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce, size_of
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("version", range(4, 19))
def test_stored_bytes_come_back_in_every_version(client, version):
    topic_id = make_topic(client, "t")
    records = batch(b"a", b"b")
    produce(client, "t", 0, records)
    told = fetch(client, topic_id if version >= 13 else "t", 0, 0, version)
    assert (told.error_code, told.high_watermark, told.last_stable_offset) == (0, 2, 2)
    assert bytes(told.records)[61:] == records[61:]
    assert told.aborted_transactions is None
    if version >= 5:
        assert told.log_start_offset == 0
    if version >= 11:
        assert told.preferred_read_replica == -1


def test_an_offset_inside_a_batch_gives_the_whole_batch(client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    produce(client, "t", 0, batch(b"b", b"c", b"d"))
    for offset in (1, 2, 3):
        records = bytes(fetch(client, "t", 0, offset).records)
        assert int.from_bytes(records[:8]) == 1
        assert len(records) == len(batch(b"b", b"c", b"d"))


def test_offsets_outside_the_log_are_out_of_range_and_its_end_is_empty(client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    at_end = fetch(client, "t", 0, 1)
    assert (at_end.error_code, size_of(at_end.records), at_end.high_watermark) == (0, 0, 1)
    for offset in (2, -1):
        told = fetch(client, "t", 0, offset)
        assert told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert told.high_watermark == -1


def test_unknown_topics_partitions_and_ids_have_their_own_errors(client):
    make_topic(client, "t", 1)
    assert fetch(client, "nowhere", 0, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, "t", 5, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, b"\x07" * 16, 0, 0, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_isolation_level_that_does_not_exist_fails_the_request(client):
    make_topic(client, "t")
    for version in (4, 12):
        response = client.request(fetch_request({("t", 0): 0}, isolation_level=7), version)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_isolation_level_matters_only_where_something_is_read(client):
    make_topic(client, "t")
    for wanted, version, code in (
        ({("nowhere", 0): 0}, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({("t", 99): 0}, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({(b"\x07" * 16, 0): 0}, 13, ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        response = client.request(fetch_request(wanted, isolation_level=7), version)
        assert (response.error_code, response.responses[0].partitions[0].error_code) == (0, code)
    request = fetch_request({("t", 0): 0}, isolation_level=7, session_id=5, session_epoch=3)
    assert client.request(request, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("version", [4, 12, 15, 17])
def test_a_follower_is_told_that_it_is_none(client, version):
    topic_id = make_topic(client, "t")
    who = {"replica_state": ReplicaState(replica_id=3)} if version >= 15 else {"replica_id": 3}
    told = fetch(client, topic_id if version >= 13 else "t", 0, 0, version, **who)
    assert (told.error_code, told.high_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    request = fetch_request({(topic_id if version >= 13 else "t", 0): 0}, **who)
    request.topics[0].partitions[0].current_leader_epoch = 0
    if version >= 9:
        told = client.request(request, version).responses[0].partitions[0]
        assert (told.error_code, told.high_watermark) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)


def test_what_does_not_exist_is_answered_last(client):
    make_topic(client, "t")
    response = client.request(fetch_request({("nowhere", 0): 0, ("t", 0): 0}), 12)
    assert [topic.topic for topic in response.responses] == ["t", "nowhere"]


def test_unknown_ids_are_answered_before_what_a_known_topic_has_not(client):
    topic_id, unknown_id = make_topic(client, "t"), b"\x09" * 16
    response = client.request(fetch_request({(topic_id, 9): 0, (unknown_id, 0): 0, (topic_id, 0): 0}), 13)
    answers = [(topic.topic_id, part.error_code) for topic in response.responses for part in topic.partitions]
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == [(topic_id, 0), (unknown_id, ErrorCode.UNKNOWN_TOPIC_ID), (topic_id, code)]


def test_leader_epochs_fence_both_ways(client):
    make_topic(client, "t")
    for epoch, code in ((-1, 0), (0, 0), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        request = fetch_request({("t", 0): 0})
        request.topics[0].partitions[0].current_leader_epoch = epoch
        assert client.request(request, 12).responses[0].partitions[0].error_code == code


def fetched_from(client: Connection, topic_id: bytes, version: int, epoch: int, replica_id: int = -1):
    request = fetch_request({(topic_id, 0): 0}, replica_state=ReplicaState(replica_id=replica_id))
    request.topics[0].partitions[0].current_leader_epoch = epoch
    response = client.request(request, version)
    return response, response.responses[0].partitions[0]


@pytest.mark.parametrize("version", [15, 16, 18])
def test_a_client_of_another_leader_is_told_the_leader_from_version_16_on(broker, client, version):
    topic_id = make_topic(client, "t")
    partition = broker.state.metadata.image.topics["t"].partitions[0]
    broker.call(lambda: setattr(broker.state.logs.get("t", 0), "leader_epoch", 4))
    broker.call(lambda: setattr(partition, "leader_epoch", 4))
    response, told = fetched_from(client, topic_id, version, 3)
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    leader = (told.current_leader.leader_id, told.current_leader.leader_epoch)
    if version < 16:
        assert (leader, response.node_endpoints) == ((-1, -1), [])
        return
    (endpoint,) = response.node_endpoints
    assert (leader, endpoint.node_id, endpoint.port) == ((1, 4), 1, broker.port)
    response, told = fetched_from(client, topic_id, version, -1, replica_id=3)
    assert (told.error_code, told.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    assert not response.node_endpoints, "a follower knows the brokers"
    response, told = fetched_from(client, topic_id, version, 5)
    assert (told.error_code, told.current_leader.leader_id) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)
    assert not response.node_endpoints


def test_a_reader_whose_epoch_is_unknown_is_out_of_range(client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    request = fetch_request({("t", 0): 1})
    request.topics[0].partitions[0].last_fetched_epoch = 9
    told = client.request(request, 12).responses[0].partitions[0]
    assert told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    request.topics[0].partitions[0].last_fetched_epoch = 0
    told = client.request(request, 12).responses[0].partitions[0]
    assert (told.error_code, told.diverging_epoch.epoch) == (0, -1)


def test_a_reader_of_an_epoch_without_records_reads_on(client):
    make_topic(client, "t")
    request = fetch_request({("t", 0): 0})
    request.topics[0].partitions[0].last_fetched_epoch = 0
    told = client.request(request, 12).responses[0].partitions[0]
    assert (told.error_code, told.diverging_epoch.epoch, told.high_watermark) == (0, -1, 0)


def test_a_reader_beyond_the_end_of_its_epoch_is_told_where_it_ended(broker, client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    broker.call(lambda: setattr(broker.state.logs.get("t", 0), "leader_epoch", 4))
    produce(client, "t", 0, batch(b"b"))
    request = fetch_request({("t", 0): 2})
    request.topics[0].partitions[0].last_fetched_epoch = 0
    told = client.request(request, 12).responses[0].partitions[0]
    assert (told.error_code, told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (0, 0, 1)
    assert not told.records


def test_a_reader_below_the_start_of_the_log_is_out_of_range_whatever_its_epoch(broker, client):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a", b"b"))
    broker.call(lambda: setattr(broker.state.logs.get("t", 0), "leader_epoch", 4))
    produce(client, "t", 0, batch(b"c"))
    broker.call(lambda: broker.state.logs.get("t", 0).delete_records_before(1))
    for offset, code, diverging in ((0, ErrorCode.OFFSET_OUT_OF_RANGE, -1), (1, ErrorCode.NONE, 0)):
        request = fetch_request({("t", 0): offset})
        request.topics[0].partitions[0].last_fetched_epoch = 2
        told = client.request(request, 12).responses[0].partitions[0]
        assert (told.error_code, told.diverging_epoch.epoch) == (code, diverging)


def test_the_first_batch_comes_whole_and_the_rest_keeps_the_limits(client):
    make_topic(client, "t", 2)
    one = batch(bytes(1000))
    for _ in range(3):
        produce(client, "t", 0, one)
        produce(client, "t", 1, one)
    both = {("t", 0): 0, ("t", 1): 0}

    def sizes(**limits: int) -> list[int]:
        topics = client.request(fetch_request(both, **limits), 12).responses
        return [len(partition.records) // len(one) for topic in topics for partition in topic.partitions]

    assert sizes(max_bytes=1) == [1, 0]
    assert sizes(max_bytes=0) == [1, 0]
    assert sizes(partition_max_bytes=2 * len(one)) == [2, 2]
    assert sizes(max_bytes=4 * len(one)) == [3, 1]
    assert sizes() == [3, 3]


@pytest.mark.parametrize(
    ("offsets", "limits", "expected"),
    [
        ((0, 0, 0), {"max_bytes": -5}, [(-1, 0), (0, 1), (0, 0)]),
        ((1, 0, 0), {"max_bytes": -5}, [(0, 0), (0, 1), (0, 0)]),
        ((0, 1, 0), {"max_bytes": -5}, [(-1, 0), (0, 0), (0, 1)]),
        ((0, 1, 0), {"partition_max_bytes": -1}, [(-1, 0), (0, 0), (-1, 0)]),
    ],
)
def test_a_negative_number_of_bytes_cannot_be_read(client, offsets, limits, expected):
    """As Apache Kafka 4.3.1 answers: of a limit of the request only what is read first has the rest."""
    make_topic(client, "t", 3)
    one = batch(b"a")
    for partition in range(3):
        produce(client, "t", partition, one)
    asked = {("t", partition): offset for partition, offset in enumerate(offsets)}
    (topic,) = client.request(fetch_request(asked, **limits), 12).responses
    assert [(each.error_code, len(each.records) // len(one)) for each in topic.partitions] == expected


@pytest.mark.parametrize("limits", [{"max_bytes": -5}, {"partition_max_bytes": -1}])
def test_a_negative_number_of_bytes_matters_below_the_last_stable_offset(client, limits):
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    Producer(client, "x").write(b"open")
    for isolation_level, offset, code in ((1, 0, -1), (1, 1, 0), (0, 1, -1), (0, 2, 0)):
        told = fetch(client, "t", 0, offset, isolation_level=isolation_level, **limits)
        assert (told.error_code, len(told.records or b"")) == (code, 0)


def test_what_does_not_exist_takes_nothing_of_a_negative_limit(client):
    """Kafka sorts it out before it reads."""
    make_topic(client, "t", 2)
    for partition in range(2):
        produce(client, "t", partition, batch(b"a"))
    request = fetch_request({("nowhere", 0): 0, ("t", 9): 0, ("t", 0): 0, ("t", 1): 0}, max_bytes=-5)
    told = [
        (each.error_code, bool(each.records))
        for one in client.request(request, 12).responses
        for each in one.partitions
    ]
    assert told == [(-1, False), (0, True), (3, False), (3, False)]


def test_a_fetch_without_news_parks_until_an_append(broker, client):
    make_topic(client, "t", 2)
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0, ("t", 1): 0}, max_wait_ms=60_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        produce(client, "t", 1, batch(b"a"))
        _, response = reader.receive(1, 12)
    told = [(one.partition_index, size_of(one.records)) for topic in response.responses for one in topic.partitions]
    assert told == [(0, 0), (1, len(batch(b"a")))]
    assert broker.call(lambda: len(broker.state.parked)) == 0


def test_a_parked_fetch_answers_empty_at_its_deadline_on_the_brokers_clock(broker, client):
    make_topic(client, "t")
    client.send(fetch_request({("t", 0): 0}, max_wait_ms=500), 12)
    while not broker.call(lambda: len(broker.state.parked)):
        pass
    broker.clock.advance(499)
    assert broker.call(lambda: len(broker.state.parked)) == 1
    broker.clock.advance(1)
    _, response = client.receive(1, 12)
    assert size_of(response.responses[0].partitions[0].records) == 0
    assert response.responses[0].partitions[0].error_code == 0


def test_a_fetch_waits_for_min_bytes_over_several_appends(broker, client):
    make_topic(client, "t")
    one = batch(bytes(100))
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000, min_bytes=3 * len(one)), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        for _ in range(2):
            produce(client, "t", 0, one)
        assert broker.call(lambda: len(broker.state.parked)) == 1
        produce(client, "t", 0, one)
        _, response = reader.receive(1, 12)
    assert len(response.responses[0].partitions[0].records) == 3 * len(one)


@pytest.mark.parametrize("in_session", [False, True])
def test_what_has_no_room_in_the_response_counts_for_min_bytes(broker, client, in_session):
    """A wait would not make room for it (DelayedFetch.tryComplete)."""
    make_topic(client, "t", 2)
    one = batch(bytes(1000))
    produce(client, "t", 0, one)
    wanted = {("t", 0): 0, ("t", 1): 0}
    how = {"max_wait_ms": 60_000, "max_bytes": 3 * len(one) // 2, "min_bytes": 3 * len(one) // 2}
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request(wanted, session_epoch=0 if in_session else -1, **how), 12)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)), "the fetch waits")
        produce(client, "t", 1, one)
        _, response = reader.receive(1, 12)
    sizes = [size_of(part.records) for topic in response.responses for part in topic.partitions]
    assert sizes == [len(one), 0]
    response = client.request(fetch_request(wanted, **how), 12)
    assert [size_of(part.records) for topic in response.responses for part in topic.partitions] == sizes


def test_less_than_min_bytes_without_room_waits_on(broker, client):
    make_topic(client, "t", 2)
    one = batch(bytes(1000))
    for partition in range(2):
        produce(client, "t", partition, one)
    request = fetch_request({("t", 0): 0, ("t", 1): 0}, max_wait_ms=60_000, min_bytes=2 * len(one))
    request.topics[1].partitions[0].partition_max_bytes = len(one) - 1  # so much of it counts
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(request, 12)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)), "the fetch waits")
        produce(client, "t", 0, one)
        _, response = reader.receive(1, 12)
    assert [size_of(part.records) for topic in response.responses for part in topic.partitions] == [2 * len(one), 0]


def test_nobody_waits_for_min_bytes_in_a_segment_that_is_not_the_last(client):
    """The rest of the segment does not grow."""
    one = fill_segments(client)
    for isolation_level in (0, 1):
        how = {"min_bytes": 100 * len(one), "partition_max_bytes": len(one), "isolation_level": isolation_level}
        for offset in range(IN_SEGMENT):
            told = fetch(client, "t", 0, offset, max_wait_ms=60_000, **how)
            assert len(told.records) == len(one)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("room", [0, 2])
@pytest.mark.parametrize("behind", [0, 1])
def test_a_new_segment_ends_the_wait_for_min_bytes(broker, client, behind, room, in_session, isolation_level):
    one = fill_segments(client)
    end = 2 * IN_SEGMENT - room
    for _ in range(IN_SEGMENT + 1, end):
        produce(client, "t", 0, one)
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        wanted, how = {("t", 0): end - behind}, {"isolation_level": isolation_level}
        if in_session:
            opened = reader.request(fetch_request(wanted, session_id=0, session_epoch=0, **how), 12)
            wanted, how = {}, {**how, "session_id": opened.session_id, "session_epoch": 1}
        reader.send(fetch_request(wanted, max_wait_ms=60_000, min_bytes=100 * len(one), **how), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        for _ in range(room):
            produce(client, "t", 0, one)
        assert broker.call(lambda: len(broker.state.parked)) == 1
        produce(client, "t", 0, one)
        _, response = reader.receive(1, 12)
    assert response.responses[0].partitions[0].high_watermark == end + room + 1


def test_a_session_at_the_end_of_an_empty_log_waits_for_min_bytes(broker, client):
    """Its only segment begins where the reader is, and is no new one."""
    make_topic(client, "t")
    one = batch(bytes(100))
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        opened = reader.request(fetch_request({("t", 0): 0}, session_id=0, session_epoch=0, max_wait_ms=0), 12)
        how = {"session_id": opened.session_id, "session_epoch": 1, "max_wait_ms": 60_000}
        wait_for_a_second_batch(broker, client, reader, one, min_bytes=2 * len(one), **how)


def wait_for_a_second_batch(broker, client, reader: Connection, one: bytes, **how: int) -> None:
    """A fetch of the session that waits for two such batches is not answered with the first."""
    reader.send(fetch_request({}, **how), 12)
    while not broker.call(lambda: len(broker.state.parked)):
        pass
    produce(client, "t", 0, one)
    assert broker.call(lambda: len(broker.state.parked)) == 1
    produce(client, "t", 0, one)
    _, response = reader.receive(1, 12)
    assert len(response.responses[0].partitions[0].records) == 2 * len(one)


def test_a_session_at_the_start_of_an_empty_segment_waits_for_min_bytes(broker, client):
    """The segment was there when the session last looked."""
    one = fill_segments(client)
    end = IN_SEGMENT + 1
    broker.call(lambda: broker.state.logs.get("t", 0).roll(broker.clock.now_ms()))
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        how = {"min_bytes": 2 * len(one), "session_id": 0, "session_epoch": 0, "max_wait_ms": 0}
        opened = reader.request(fetch_request({("t", 0): end}, **how), 12)
        how |= {"session_id": opened.session_id, "session_epoch": 1, "max_wait_ms": 60_000}
        wait_for_a_second_batch(broker, client, reader, one, **how)


IN_SEGMENT = 3


def fill_segments(client: Connection) -> bytes:
    """Fill one segment of topic t, and begin the next with one of these batches."""
    one = batch(bytes(400_000))
    make_topic(client, "t", segment_bytes=str(1 << 20 | 1 << 18))
    for _ in range(IN_SEGMENT + 1):
        produce(client, "t", 0, one)
    return one


def test_what_came_by_the_deadline_is_given_even_if_it_is_less_than_min_bytes(broker, client):
    make_topic(client, "t")
    one = batch(bytes(100))
    produce(client, "t", 0, one)
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=500, min_bytes=100_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        produce(client, "t", 0, one)
        broker.clock.advance(500)
        _, response = reader.receive(1, 12)
    assert len(response.responses[0].partitions[0].records) == 2 * len(one)


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("has_data", [False, True])
def test_what_is_deleted_under_a_parked_fetch_keeps_its_place(broker, client, has_data, in_session):
    """Last are only those that were unknown before the fetch waited."""
    for name in ("t", "u"):
        make_topic(client, name)
    if has_data:
        produce(client, "u", 0, batch(b"a"))
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        wanted, how = {(name, 0): 0 for name in ("nowhere", "t", "u")}, {}
        if in_session:
            opened = reader.request(fetch_request(wanted, session_id=0, session_epoch=0), 12)
            wanted, how = {}, {"session_id": opened.session_id, "session_epoch": 1}
        reader.send(fetch_request(wanted, max_wait_ms=60_000, min_bytes=100_000, **how), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
        _, response = reader.receive(1, 12)
    gone, *rest, nowhere = [(one.topic, one.partitions[0]) for one in response.responses]
    assert (gone[0], [name for name, _ in rest], nowhere[0]) == (
        "t",
        ["u"] if has_data or not in_session else [],
        "nowhere",
    )
    for (_, told), aborted in ((gone, None), (nowhere, [])):
        assert (told.error_code, told.aborted_transactions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, aborted)


def test_a_parked_fetch_hears_that_its_topic_is_deleted(broker, client):
    make_topic(client, "t")
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
        _, response = reader.receive(1, 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_waiting_reader_hears_that_its_records_are_deleted(broker, client):
    """The clock stands still: Kafka tells it when `max_wait_ms` has passed."""
    make_topic(client, "t")
    produce(client, "t", 0, batch(b"a"))
    deleted = DeleteRecordsPartition(partition_index=0, offset=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000, min_bytes=1000), 12)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)), "the fetch waits")
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[deleted])], timeout_ms=1000)
        assert client.request(request, 2).topics[0].partitions[0].low_watermark == 1
        told = reader.receive(1, 12)[1].responses[0].partitions[0]
    assert told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_error_in_one_partition_answers_the_rest_at_once(client):
    make_topic(client, "t")
    response = client.request(fetch_request({("t", 0): 0, ("t", 1): 9}, max_wait_ms=60_000), 12)
    assert sum(len(topic.partitions) for topic in response.responses) == 2


@pytest.mark.parametrize("missing", ["partition", "topic", "id"])
def test_what_does_not_exist_ends_no_wait_for_others(broker, client, missing):
    topic_id = make_topic(client, "t")
    topic, version = (topic_id, 13) if missing == "id" else ("t", 12)
    unknown = {"partition": ("t", 9), "topic": ("nowhere", 0), "id": (b"\x07" * 16, 0)}[missing]
    for wanted in ({unknown: 0, (topic, 0): 0}, {(topic, 0): 0, unknown: 0}):
        client.send(fetch_request(wanted, max_wait_ms=500), version)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        broker.clock.advance(500)
        _, response = client.receive(1, version)
        codes = [one.error_code for topic in response.responses for one in topic.partitions]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID if missing == "id" else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    alone = client.request(fetch_request({unknown: 0}, max_wait_ms=60_000), version)
    assert alone.responses[0].partitions[0].error_code == codes[1]


def test_a_session_of_something_that_does_not_exist_waits_for_the_rest(broker, client):
    make_topic(client, "t")
    opened = session_fetch(client, 0, 0, {("t", 0): 0, ("nowhere", 0): 0})
    request = fetch_request({}, session_id=opened.session_id, session_epoch=1, max_wait_ms=60_000)
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(request, 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        produce(client, "t", 0, batch(b"a"))
        _, response = reader.receive(1, 12)
    assert [topic.topic for topic in response.responses] == ["t", "nowhere"]
    alone = session_fetch(client, 0, 0, {("nowhere", 0): 0}, max_wait_ms=60_000)
    assert session_fetch(client, alone.session_id, 1, {}, max_wait_ms=60_000).responses[0].topic == "nowhere"


@pytest.mark.parametrize("min_bytes", [1, 1000])
def test_a_topic_that_goes_beside_one_that_never_was_ends_the_wait(broker, client, min_bytes):
    """With something to give already, everything is read again."""
    make_topic(client, "t")
    make_topic(client, "gone")
    if min_bytes > 1:
        produce(client, "t", 0, batch(b"a"))
    wanted = {("nowhere", 0): 0, ("gone", 0): 0, ("t", 0): 0}
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request(wanted, max_wait_ms=60_000, min_bytes=min_bytes), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=1000), 6)
        _, response = reader.receive(1, 12)
    codes = {topic.topic: topic.partitions[0].error_code for topic in response.responses}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {"t": 0, "gone": unknown, "nowhere": unknown}


def test_a_parked_fetch_of_a_client_that_left_is_forgotten(broker, client):
    make_topic(client, "t")
    reader = Connection(broker.bootstrap_servers, timeout_s=60)
    reader.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
    while not broker.call(lambda: len(broker.state.parked)):
        pass
    reader.close()
    while broker.call(lambda: len(broker.state.parked)):
        pass
    assert produce(client, "t", 0, batch(b"a")).base_offset == 0


# --- sessions


def session_fetch(
    client: Connection,
    session_id: int,
    epoch: int,
    wanted: dict,
    forgotten: tuple = (),
    version: int = 12,
    **how: int,
):
    request: FetchRequest = fetch_request(wanted, session_id=session_id, session_epoch=epoch, **how)
    request.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forgotten]
    return client.request(request, version)


def told(response) -> list[tuple[int, int]]:
    return [(one.partition_index, size_of(one.records)) for topic in response.responses for one in topic.partitions]


def test_a_session_tells_everything_once_and_then_only_news(client):
    make_topic(client, "t", 2)
    full = session_fetch(client, 0, 0, {("t", 0): 0, ("t", 1): 0})
    assert full.session_id > 0
    assert told(full) == [(0, 0), (1, 0)]
    assert told(session_fetch(client, full.session_id, 1, {})) == []
    produce(client, "t", 1, batch(b"a"))
    news = session_fetch(client, full.session_id, 2, {})
    assert told(news) == [(1, len(batch(b"a")))]
    assert news.session_id == full.session_id
    # The reader goes on: only the partition that moved is named.
    assert told(session_fetch(client, full.session_id, 3, {("t", 1): 1})) == []


def test_a_session_grows_and_forgets(client):
    make_topic(client, "t", 2)
    produce(client, "t", 0, batch(b"a"))
    full = session_fetch(client, 0, 0, {("t", 1): 0})
    grown = session_fetch(client, full.session_id, 1, {("t", 0): 0})
    assert told(grown) == [(0, len(batch(b"a")))]
    assert told(session_fetch(client, full.session_id, 2, {}, forgotten=(("t", 0),))) == []
    gone = session_fetch(client, full.session_id, 3, {}, forgotten=(("t", 1),))
    assert (gone.error_code, gone.session_id) == (0, 0)
    lost = session_fetch(client, full.session_id, 4, {})
    assert lost.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_wrong_sessions_and_epochs_are_refused(client):
    topic_id = make_topic(client, "t")
    full = session_fetch(client, 0, 0, {("t", 0): 0})
    assert session_fetch(client, 12345, 1, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session_fetch(client, full.session_id, 7, {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    by_id = fetch_request({(topic_id, 0): 0}, session_id=full.session_id, session_epoch=1)
    assert client.request(by_id, 13).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert session_fetch(client, full.session_id, 1, {}).error_code == 0


def test_a_session_cannot_tell_of_a_diverging_epoch_in_an_older_version(client):
    make_topic(client, "t")
    request = fetch_request({("t", 0): 5}, session_epoch=0)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    opened = client.request(request, 12)
    assert opened.responses[0].partitions[0].diverging_epoch.end_offset == 0
    for epoch in (1, 2):
        told = session_fetch(client, opened.session_id, epoch, {}, version=11)
        assert (told.error_code, told.responses) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert session_fetch(client, opened.session_id, 3, {}).responses[0].partitions[0].diverging_epoch.epoch == 0


def test_the_final_epoch_closes_the_session(client):
    make_topic(client, "t")
    full = session_fetch(client, 0, 0, {("t", 0): 0})
    last = session_fetch(client, full.session_id, -1, {("t", 0): 0})
    assert (last.session_id, told(last)) == (0, [(0, 0)])
    assert session_fetch(client, full.session_id, 1, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_error_is_told_in_each_answer_and_its_end_too(client):
    make_topic(client, "t")
    full = session_fetch(client, 0, 0, {("t", 0): 5})
    for epoch in (1, 2):
        again = session_fetch(client, full.session_id, epoch, {})
        assert again.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    healed = session_fetch(client, full.session_id, 3, {("t", 0): 0})
    assert healed.responses[0].partitions[0].error_code == 0


def test_partitions_that_gave_data_go_to_the_end_of_the_order(client):
    make_topic(client, "t", 3)
    one = batch(bytes(1000))
    for partition in range(3):
        for _ in range(2):
            produce(client, "t", partition, one)
    everything = {("t", partition): 0 for partition in range(3)}
    full = session_fetch(client, 0, 0, everything, max_bytes=1)
    order = []
    for epoch in range(1, 4):
        response = session_fetch(client, full.session_id, epoch, {}, max_bytes=1)
        order += [index for index, size_bytes in told(response) if size_bytes]
    assert order == [0, 1, 2]


def test_a_session_by_ids_names_ids(client):
    topic_id = make_topic(client, "t")
    request = fetch_request({(topic_id, 0): 0}, session_id=0, session_epoch=0)
    full = client.request(request, 15)
    assert full.responses[0].topic_id == topic_id
    produce(client, "t", 0, batch(b"a"))
    request = fetch_request({}, session_id=full.session_id, session_epoch=1)
    assert client.request(request, 15).responses[0].topic_id == topic_id
