"""ShareFetch: sessions, acquired records, waiting."""

from __future__ import annotations

import errno
import socket
import threading
from typing import Any

import pytest

from kafka_shim import turns
from kafka_shim.api import delayed_share_fetch, k78_share_fetch, share_acknowledgements, share_fetch_reads
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.share.shard import FENCED_STATE_EPOCH
from kafka_shim.share.share_partition import PartitionState
from kafka_shim.share.share_partitions import SharePartitions
from kafka_shim.storage.log import PartitionLog
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.tests.share.share_member import ACCEPT, REJECT, RELEASE, RENEW, ShareMember, open_share, ranges, values
from kafka_shim.tests.test_connection import until
from kafka_shim.tests.turns.harness import begun, steps_of
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection

GROUP = "sharers"


@pytest.fixture
def topic_id(broker: Broker, client: Connection) -> bytes:
    """A topic "t" whose partition 0 the group shares from the start."""
    found = make_topic(client, "t", 2, retention_ms="-1")
    open_share(broker, GROUP, found)
    return found


@pytest.fixture
def member(broker: Broker, topic_id: bytes):
    with ShareMember(broker, GROUP, "m1", topic_id) as one:
        yield one


@pytest.fixture
def other(broker: Broker, topic_id: bytes):
    with ShareMember(broker, GROUP, "m2", topic_id) as one:
        yield one


def given(response: Any) -> dict[int, list[tuple[int, int, int]]]:
    """What a fetch acquired, by partition."""
    return {
        part.partition_index: ranges(part) for topic in response.responses for part in topic.partitions if ranges(part)
    }


def test_a_record_belongs_to_one_member_until_it_is_released(
    client: Connection, member: ShareMember, other: ShareMember
):
    produce(client, "t", 0, batch(b"a", b"b", b"c"))
    got = member.poll()
    assert ranges(got) == [(0, 2, 1)]
    assert values(got) == [b"a", b"b", b"c"]
    assert not ranges(other.poll())
    assert member.outcome([(0, 0, [ACCEPT]), (1, 1, [RELEASE]), (2, 2, [REJECT])]) == 0
    again = other.poll()
    assert ranges(again) == [(1, 1, 2)]
    assert values(again) == [b"b"]


def test_what_a_member_is_given_counts_as_bytes_out_of_its_topic(
    broker: Broker, client: Connection, member: ShareMember
):
    """As in Kafka (`KafkaApis.processShareFetchResponse`)."""
    produce(client, "t", 0, batch(b"a", b"b"))
    got = member.poll()
    log, metrics = broker.state.logs.get("t", 0), broker.state.metrics
    assert log.fetched_bytes == metrics.fetched_bytes == len(got.records) > 0


def test_acknowledgements_in_a_fetch_are_carried_out_before_it(client: Connection, member: ShareMember):
    produce(client, "t", 0, batch(b"a", b"b"))
    assert ranges(member.poll()) == [(0, 1, 1)]
    got = member.poll(acks=[(0, 1, [ACCEPT, RELEASE])])
    assert got.acknowledge_error_code == 0
    assert ranges(got) == [(1, 1, 2)]


def test_a_lock_ends_on_the_brokers_clock(broker: Broker, client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(b"a", b"b"))
    response = member.fetch()
    assert response.acquisition_lock_timeout_ms == 30_000
    broker.clock.advance(29_999)
    assert not ranges(other.poll())
    broker.clock.advance(1)
    assert ranges(other.poll()) == [(0, 1, 2)]
    assert member.outcome([(0, 1, [ACCEPT])]) == ErrorCode.INVALID_RECORD_STATE
    assert other.outcome([(0, 1, [ACCEPT])]) == 0


def test_a_waiting_fetch_gets_what_another_member_releases(client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(b"a"))
    member.poll()
    assert other.poll().error_code == 0
    waiting = other.connection.send(other.fetch_request(max_wait_ms=60_000), 2)
    assert member.outcome([(0, 0, [RELEASE])]) == 0
    answered, response = other.connection.receive(78, 2)
    assert answered == waiting
    assert ranges(response.responses[0].partitions[0]) == [(0, 0, 2)]


def test_a_waiting_fetch_gets_what_is_appended(client: Connection, member: ShareMember):
    member.connection.send(member.fetch_request(max_wait_ms=60_000), 2)
    produce(client, "t", 0, batch(b"a"))
    _, response = member.connection.receive(78, 2)
    assert ranges(response.responses[0].partitions[0]) == [(0, 0, 1)]


def test_a_closed_connection_releases_what_its_member_had(client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(b"a"))
    member.poll()
    assert other.poll().error_code == 0
    other.connection.send(other.fetch_request(max_wait_ms=60_000), 2)
    member.connection.close()
    _, response = other.connection.receive(78, 2)
    assert ranges(response.responses[0].partitions[0]) == [(0, 0, 2)]


def test_a_closed_connection_ends_all_of_its_sessions(broker: Broker, client: Connection, topic_id: bytes):
    """Of a client that speaks for several members, and groups, over one connection."""
    produce(client, "t", 0, batch(b"v"))
    open_share(broker, "others", topic_id)
    shares = share_acknowledgements.shares_of(broker.state)
    with ShareMember(broker, GROUP, "m1", topic_id) as one:
        others = [ShareMember(broker, group, member, topic_id) for group in (GROUP, "others") for member in "ab"]
        one.fetch()
        for member in others:
            member.connection.close()
            member.connection = one.connection
            member.fetch()
        assert len(shares.sessions) == 5
        others[0].fetch(share_session_epoch=-1)
        assert len(list(shares.loaded())) == 2
    until(broker, lambda: not len(shares.sessions) and not list(shares.loaded()))
    assert not shares.sessions._by_connection
    assert not shares.sessions._members
    with ShareMember(broker, GROUP, "m2", topic_id) as two:
        assert ranges(two.poll()) == [(0, 0, 2)]


def test_the_final_epoch_ends_the_session_and_releases(client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(b"a", b"b"))
    member.poll()
    member.epoch = -1
    response = member.fetch(acks=[(0, 0, [ACCEPT])])
    assert response.error_code == 0
    assert response.responses[0].partitions[0].acknowledge_error_code == 0
    assert ranges(other.poll()) == [(1, 1, 2)]
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_session_errors(member: ShareMember, other: ShareMember):
    member.epoch = 5
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert member.fetch(acks=[(0, 0, [ACCEPT])]).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch().error_code == 0
    member.epoch = 7
    assert member.fetch().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge([(0, 0, [ACCEPT])]).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert other.acknowledge([(0, 0, [ACCEPT])], share_session_epoch=0).error_code == (
        ErrorCode.INVALID_SHARE_SESSION_EPOCH
    )
    assert other.acknowledge([(0, 0, [ACCEPT])], share_session_epoch=-1).error_code == (
        ErrorCode.SHARE_SESSION_NOT_FOUND
    )


@pytest.mark.parametrize("member_id", ["", "m" * 37, None])
def test_a_member_id_is_required(member: ShareMember, member_id: str | None):
    member.member_id = member_id
    assert member.fetch().error_code == ErrorCode.INVALID_REQUEST


def test_an_incremental_answer_has_what_is_new_alone(client: Connection, member: ShareMember):
    assert [one.partition_index for one in member.fetch().responses[0].partitions] == [0]
    assert member.fetch().responses == []
    produce(client, "t", 0, batch(b"a"))
    assert ranges(member.fetch().responses[0].partitions[0]) == [(0, 0, 1)]


def test_a_forgotten_partition_is_not_read(client: Connection, member: ShareMember):
    member.fetch()
    produce(client, "t", 0, batch(b"a"))
    assert member.fetch(partitions=(), forget=(0,)).responses == []
    assert ranges(member.fetch().responses[0].partitions[0]) == [(0, 0, 1)]


def test_unknown_topics_and_partitions(broker: Broker, member: ShareMember):
    (answer,) = member.fetch(partitions=(9,)).responses[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with ShareMember(broker, GROUP, "m3", bytes(15) + b"x") as lost:
        (answer,) = lost.fetch().responses[0].partitions
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    (answer,) = member.fetch(partitions=(9,)).responses[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_record_limit_takes_a_part_of_a_stored_batch(client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(*[b"%d" % number for number in range(10)]))
    got = member.poll(max_records=4, share_acquire_mode=1)
    assert ranges(got) == [(0, 3, 1)]
    rest = other.poll(max_records=4, share_acquire_mode=1)
    assert ranges(rest) == [(4, 7, 1)]
    assert values(rest) == [b"4", b"5", b"6", b"7"]


def test_batch_optimized_exceeds_the_limit_to_the_end_of_a_stored_batch(client: Connection, member: ShareMember):
    produce(client, "t", 0, batch(*[b"%d" % number for number in range(10)]))
    assert ranges(member.poll(max_records=4)) == [(0, 9, 1)]


def test_pieces_begin_where_stored_batches_begin(client: Connection, member: ShareMember):
    for _ in range(6):
        produce(client, "t", 0, batch(b"a", b"b"))
    assert ranges(member.poll(batch_size=4)) == [(0, 3, 1), (4, 7, 1), (8, 11, 1)]


@pytest.fixture
def both(broker: Broker, member: ShareMember) -> ShareMember:
    """A member that has looked for records in both partitions."""
    open_share(broker, GROUP, member.topic_id, 1)
    member.fetch((0, 1))
    return member


def test_partitions_whose_place_in_the_log_is_known_are_served_first(client: Connection, both: ShareMember):
    """As in Kafka (`DelayedShareFetch.combineLogReadResponse`): it reads them after the others."""
    produce(client, "t", 1, batch(*[b"%d" % number for number in range(7)]))
    assert given(both.fetch((), max_records=5, share_acquire_mode=1)) == {1: [(0, 4, 1)]}
    both.acknowledge(())  # the session epoch puts partition 1 first
    produce(client, "t", 0, batch(b"a", b"b"))
    assert given(both.fetch((), max_records=1)) == {0: [(0, 1, 1)]}


def test_known_and_other_partitions_are_read_apart_and_each_read_has_a_whole_batch(
    client: Connection, both: ShareMember
):
    produce(client, "t", 0, batch(b"a"))
    assert given(both.fetch((), max_bytes=1)) == {0: [(0, 0, 1)]}
    for partition in (0, 1):
        produce(client, "t", partition, batch(b"b"))
    assert given(both.fetch((), max_bytes=1)) == {0: [(1, 1, 1)], 1: [(0, 0, 1)]}


def test_a_whole_batch_leaves_less_bytes_for_the_other_partitions(client: Connection, both: ShareMember):
    produce(client, "t", 1, batch(bytes(150)))
    produce(client, "t", 0, batch(b"a"))
    assert given(both.fetch((), max_bytes=200)) == {1: [(0, 0, 1)]}


def test_renewed_locks_last_longer(broker: Broker, client: Connection, member: ShareMember, other: ShareMember):
    produce(client, "t", 0, batch(b"a", b"b"))
    member.poll()
    broker.clock.advance(20_000)
    assert member.outcome([(0, 0, [RENEW])], is_renew_ack=True) == 0
    broker.clock.advance(20_000)
    assert ranges(other.poll()) == [(1, 1, 2)]
    assert member.outcome([(0, 0, [ACCEPT])]) == 0


def test_a_fetch_that_renews_reads_nothing(client: Connection, member: ShareMember):
    produce(client, "t", 0, batch(b"a"))
    member.poll()
    produce(client, "t", 0, batch(b"b"))
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    got = member.poll(acks=[(0, 0, [RENEW])], is_renew_ack=True, **nothing)
    assert (got.acknowledge_error_code, ranges(got)) == (0, [])
    assert member.fetch(acks=[(0, 0, [RENEW])], is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST


def test_the_last_delivery_of_a_record_is_alone(broker: Broker, client: Connection, member: ShareMember):
    produce(client, "t", 0, batch(*[b"%d" % number for number in range(8)]))
    seen = []
    for _ in range(12):
        seen.append(ranges(member.poll()))
        broker.clock.advance(30_000)
    # Halved from the third delivery on, and one by one for the fifth.
    assert seen[:3] == [[(0, 7, 1)], [(0, 7, 2)], [(0, 7, 3)]]
    assert seen[3] == [(0, 3, 4)]
    assert seen[4] == [(0, 0, 5)]
    assert all(part[2] <= 5 for parts in seen for part in parts)


def test_read_committed_skips_aborted_and_waits_for_open_transactions(
    broker: Broker, client: Connection, member: ShareMember, topic_id: bytes
):
    from kafka_shim.protocol.messages.incremental_alter_configs_request import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    change = AlterableConfig(name="share.isolation.level", config_operation=0, value="read_committed")
    resource = AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=[change])
    assert client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
    log = broker.call(broker.state.logs.get, "t", 0)
    for number, commit in enumerate((False, True)):
        records = bytearray(
            batch(b"x%d" % number, b"y%d" % number, producer_id=7, producer_epoch=0, transactional=True)
        )
        broker.call(lambda records=records: log.append_batch(records, now_ms=broker.state.clock.now_ms()))
        assert not ranges(member.poll())
        broker.call(lambda commit=commit: log.append_marker(7, 0, 0, commit, 1, broker.state.clock.now_ms()))
    got = member.poll()
    # 0-1 are aborted; 2 is their marker.
    assert values(got) == [b"x1", b"y1"]
    assert ranges(got) == [(2, 5, 1)]


@pytest.mark.option("group.share.max.share.sessions")
def test_no_more_sessions_than_the_limit():
    with Broker(clock="virtual", group_share_max_share_sessions=1, group_share_max_size=1) as broker:
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            topic_id = make_topic(client, "t", 1)
        open_share(broker, GROUP, topic_id)
        with ShareMember(broker, GROUP, "m1", topic_id) as one, ShareMember(broker, GROUP, "m2", topic_id) as two:
            assert one.fetch().error_code == 0
            assert two.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            # Refused when its time is over, so that it does not ask again at once.
            two.connection.send(two.fetch_request(max_wait_ms=1000), two.version)
            until(broker, lambda: len(broker.state.parked) == 1)
            broker.clock.advance("1s")
            refused = two.connection.receive(two.fetch_request().API_KEY, two.version)[1]
            assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            one.epoch = -1
            assert one.fetch().error_code == 0
            assert two.fetch().error_code == 0


@pytest.mark.parametrize("is_refused", [False, True])
def test_waiting_members_do_not_hold_the_clock_up_at_each_end_of_their_waits(is_refused: bool):
    """Nor those whose sessions are too many. They ask again at once, on the machine's time."""
    limits = {"group_share_max_share_sessions": 1, "group_share_max_size": 1} if is_refused else {}
    with Broker(clock="virtual", **limits) as broker:
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            topic_id = make_topic(client, "t", 1)
        open_share(broker, GROUP, topic_id)
        found, is_over = [], threading.Event()
        code = ErrorCode.SHARE_SESSION_LIMIT_REACHED if is_refused else ErrorCode.NONE

        def poll(member: ShareMember) -> None:
            while not is_over.is_set():
                found.append(member.fetch(max_wait_ms=500).error_code)

        with ShareMember(broker, GROUP, "m1", topic_id) as one, ShareMember(broker, GROUP, "m2", topic_id) as two:
            if is_refused:
                assert one.fetch().error_code == 0
            polling = threading.Thread(target=poll, args=(two,))
            polling.start()
            until(broker, lambda: len(broker.state.parked) == 1)
            broker.clock.advance("10h")
            count = len(found)
            is_over.set()
            while polling.is_alive():
                broker.clock.advance("1s")
                polling.join(0.01)
    assert set(found) == {code}
    assert count <= 12


def test_a_deleted_topic(broker: Broker, client: Connection, member: ShareMember):
    from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest

    produce(client, "t", 0, batch(b"a"))
    member.poll()
    client.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    (answer,) = member.fetch().responses[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.state.share_partitions._by_group == {}


def test_records_that_the_log_lost_are_skipped(broker: Broker, client: Connection, member: ShareMember):
    from kafka_shim.protocol.messages.delete_records_request import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )

    for _ in range(4):
        produce(client, "t", 0, batch(b"a", b"b"))
    part = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=3)])
    client.request(DeleteRecordsRequest(topics=[part], timeout_ms=1000), 2)
    assert ranges(member.poll()) == []
    assert ranges(member.poll()) == [(3, 7, 1)]


class _Denies:
    """An authorizer that denies one topic to all."""

    def allowed(self, principal, host, operation, resource_type, names):
        return {name for name in names if name != "t"}

    def allowed_on_any(self, principal, host, operation, resource_type):
        return True


def test_topics_that_the_client_may_not_read(broker: Broker, client: Connection, member: ShareMember):
    produce(client, "t", 0, batch(b"a"))
    member.poll()
    broker.state.authorizer = _Denies()
    (answer,) = member.fetch(acks=[(0, 0, [ACCEPT])]).responses[0].partitions
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (answer.error_code, answer.acknowledge_error_code) == (denied, denied)
    assert member.outcome([(0, 0, [ACCEPT])]) == denied
    broker.state.authorizer = None
    assert member.outcome([(0, 0, [ACCEPT])]) == 0


def until_parked(broker: Broker) -> None:
    """Until the request that was sent waits."""
    while not broker.call(len, broker.state.parked):
        pass


def test_a_waiting_fetch_hears_nothing_of_a_deleted_topic(broker: Broker, client: Connection, member: ShareMember):
    from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest

    assert member.poll().error_code == 0
    member.connection.send(member.fetch_request(max_wait_ms=1_000), 2)
    until_parked(broker)
    client.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    broker.clock.advance(1_000)
    _, response = member.connection.receive(78, 2)
    assert (response.error_code, response.responses) == (0, [])


def test_a_waiting_fetch_keeps_the_permission_it_began_with(broker: Broker, client: Connection, member: ShareMember):
    assert member.poll().error_code == 0
    member.connection.send(member.fetch_request(max_wait_ms=60_000), 2)
    until_parked(broker)
    broker.state.authorizer = _Denies()
    log = broker.state.logs.get("t", 0)
    broker.call(lambda: log.append_batch(bytearray(batch(b"a")), now_ms=broker.clock.now_ms()))
    _, response = member.connection.receive(78, 2)
    assert ranges(response.responses[0].partitions[0]) == [(0, 0, 1)]
    member.epoch += 1
    (answer,) = member.fetch().responses[0].partitions
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_share_groups_may_be_disabled(broker: Broker, member: ShareMember):
    member.fetch()
    features = broker.state.metadata.image.features
    broker.call(features.pop, "share.version")
    assert member.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    broker.call(features.__setitem__, "share.version", 1)
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_many_records_are_read_from_the_file(client: Connection, member: ShareMember):
    for _ in range(3):
        produce(client, "t", 0, batch(b"x" * 60_000))
    assert [len(value) for value in values(member.poll())] == [60_000] * 3


def test_a_fetch_waits_for_enough_bytes(broker: Broker, client: Connection, member: ShareMember):
    member.connection.send(member.fetch_request(max_wait_ms=1_000, min_bytes=100_000), 2)
    produce(client, "t", 0, batch(b"a"))
    broker.clock.advance(999)
    assert not broker.state.share_partitions.find((GROUP, member.topic_id, 0)).batches
    broker.clock.advance(1)
    _, response = member.connection.receive(78, 2)
    assert ranges(response.responses[0].partitions[0]) == [(0, 0, 1)]


@pytest.mark.parametrize(
    "acks",
    [
        [(2, 1, [ACCEPT])],
        [(0, 1, [])],
        [(0, 1, [ACCEPT, ACCEPT, ACCEPT])],
        [(0, 0, [9])],
        [(0, 0, [RENEW])],
        [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])],
    ],
)
def test_malformed_acknowledgements(client: Connection, member: ShareMember, acks: list[tuple[int, int, list[int]]]):
    produce(client, "t", 0, batch(b"a", b"b"))
    member.poll()
    assert member.outcome(acks) == ErrorCode.INVALID_REQUEST
    assert member.outcome([(0, 1, [ACCEPT])]) == 0


def test_partitions_that_cannot_be_acknowledged(broker: Broker, member: ShareMember):
    member.poll()
    assert member.outcome([(0, 0, [ACCEPT])], partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    member.topic_id = bytes(15) + b"x"
    assert member.outcome([(0, 0, [ACCEPT])]) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_fenced_state_names_the_leader(broker: Broker, client: Connection, member: ShareMember, topic_id: bytes):
    produce(client, "t", 0, batch(b"a", b"b"))
    member.poll()
    broker.call(broker.state.share_state.initialize_state, GROUP, topic_id, 0, 5, 1)
    response = member.acknowledge([(0, 0, [ACCEPT])])
    (answer,) = response.responses[0].partitions
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.error_message == f"Error in write state RPC. {FENCED_STATE_EPOCH}"
    (endpoint,) = response.node_endpoints
    assert (answer.current_leader.leader_id, endpoint.node_id, endpoint.port) == (1, 1, broker.port)
    assert ranges(member.poll()) == [(1, 1, 1)]


def test_a_partition_that_goes_offline_is_fenced_with_its_locks(
    broker: Broker, client: Connection, member: ShareMember
):
    """What is in memory of it counts no more: no lock of before ends later."""
    produce(client, "t", 0, batch(b"a"))
    assert ranges(member.poll()) == [(0, 0, 1)]
    (share,) = broker.call(lambda: list(broker.state.share_partitions.loaded()))
    broker.call(lambda: share.log.fail(OSError(errno.EIO, "a broken disk")))
    assert broker.call(lambda: broker.state.share_partitions.find(share.key)) is None
    assert broker.call(lambda: (share.state, list(broker.state.share_partitions.loaded()))) == (
        PartitionState.FENCED,
        [],
    )


@pytest.mark.parametrize("error", ["EIO", "EMFILE"])
def test_nothing_is_acquired_that_cannot_be_read(
    broker: Broker, client: Connection, member: ShareMember, other: ShareMember, error: str
):
    """Of two partitions one cannot be read: its records stay available, and those of the other are delivered."""
    open_share(broker, GROUP, member.topic_id, 1)
    for partition in (0, 1):
        produce(client, "t", partition, batch(b"a"))
    broker.faults.arm("share.before_read", "oserror", error, where={"partition": 1})
    response = member.fetch((0, 1))
    assert response.error_code == 0
    answers = {one.partition_index: one for one in response.responses[0].partitions}
    assert ranges(answers[0]) == [(0, 0, 1)]
    assert (answers[1].error_code, ranges(answers[1])) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    broker.faults.disarm()
    (answer,) = other.fetch((1,)).responses[0].partitions
    for _ in range(10):  # an I/O error took it offline: it is opened again soon, before a lock could end
        if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            broker.clock.advance(1000)
            (answer,) = other.fetch((1,)).responses[0].partitions
    assert ranges(answer) == [(0, 0, 1)]


def test_very_many_partitions_are_served_in_steps_and_read_again_when_they_are_acquired(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
):
    """A turn of the loop that found, read and acquired 5,000 partitions took 88 ms."""
    count = 12
    topic_id = make_topic(client, "many", count, retention_ms="-1")
    for number in range(count):
        open_share(broker, GROUP, topic_id, number)
        produce(client, "many", number, batch(b"a", b"b"))
    monkeypatch.setattr(k78_share_fetch, "MANY", count - 1)
    for module in (share_fetch_reads, k78_share_fetch, delayed_share_fetch):
        monkeypatch.setattr(module, "PARTITIONS_PER_STEP", 1)
    monkeypatch.setattr(turns, "STEPS_BETWEEN_LOOKS", 1)
    monkeypatch.setattr(turns, "MOST_LOOKS", 1)
    shares: list[int] = [0]
    took, read = turns.Turns._take_share, share_fetch_reads.ShareFetchReads._read
    reads: list[int] = []

    def take_share(self: Any, steps: Any) -> None:
        shares.append(0)
        took(self, steps)

    def read_one(self: Any, share: Any, *arguments: Any, **how: Any) -> Any:
        shares[-1] += 1
        reads.append(share.log.partition)
        if len(reads) == count:  # all were read, none was acquired
            broker.state.logs.get("many", 5).release_before(1, broker.clock.now_ms())
        return read(self, share, *arguments, **how)

    calls: dict[str, int] = {}

    def count_calls(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def counted(*arguments: Any, **how: Any) -> Any:
            shares[-1] += 1
            calls[name] = calls.get(name, 0) + 1
            return function(*arguments, **how)

        monkeypatch.setattr(owner, name, counted)

    monkeypatch.setattr(turns.Turns, "_take_share", take_share)
    monkeypatch.setattr(share_fetch_reads.ShareFetchReads, "_read", read_one)
    count_calls(k78_share_fetch, "_is_readable")
    count_calls(SharePartitions, "get")
    count_calls(PartitionLog, "subscribe")
    count_calls(PartitionLog, "unsubscribe")
    with ShareMember(broker, GROUP, "m1", topic_id) as member:
        response = member.fetch(range(count), max_wait_ms=60_000)
        assert {one.partition_index: ranges(one) for one in response.responses[0].partitions} == {
            number: [] if number == 5 else [(0, 1, 1)] for number in range(count)
        }
        assert sorted(reads) == sorted([*range(count), *range(count)])
        assert max(shares) <= 2
        response = member.fetch(range(count), max_wait_ms=60_000)
        assert [ranges(one) for one in response.responses[0].partitions if one.records] == [[(1, 1, 1)]]
        # One that waits is served in steps too.
        reads.clear()
        request = member.fetch_request(range(count), max_wait_ms=60_000)
        member.connection.send(request, 2)
        until(broker, lambda: len(reads) >= count)
        produce(client, "many", 7, batch(b"c"))
        _, response = member.connection.receive(78, 2)
        assert [(one.partition_index, ranges(one)) for one in response.responses[0].partitions if one.records] == [
            (7, [(2, 2, 1)])
        ]
        assert max(shares) <= 2
        assert calls == {"_is_readable": 3 * count, "get": 3 * count, "subscribe": count, "unsubscribe": count}


def test_acknowledgements_of_very_many_partitions_are_carried_out_in_steps(
    broker: Broker, client: Connection, member: ShareMember, topic_id: bytes
) -> None:
    produce(client, "t", 0, batch(b"a"))
    assert given(member.fetch()) == {0: [(0, 0, 1)]}
    count = k78_share_fetch.MANY + 1
    acks = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    rows = [{"partition_index": index, "acknowledgement_batches": acks} for index in range(count)][::-1]
    who = {"group_id": member.group_id, "member_id": member.member_id, "share_session_epoch": 1}
    limits = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "max_records": 10, "batch_size": 10}
    topics = [{"topic_id": topic_id, "partitions": rows}]

    async def run() -> Any:
        (share,) = broker.state.share_partitions.loaded()
        steps = begun(broker.state, make("ShareFetch", **who, **limits, topics=topics), 2, count - 8)
        assert share.start_offset == 0, "that of the last partition is still to come"
        return (await steps_of(steps)[0]).response

    answer = broker.call(run)
    codes = {part.partition_index: part.acknowledge_error_code for part in answer.responses[0].partitions}
    assert codes.pop(0) == 0
    assert codes.pop(1) != 0, "it was never fetched"
    assert set(codes.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    (share,) = [one for one in broker.state.share_partitions.loaded() if one.key[2] == 0]
    assert share.start_offset == 1


def test_of_two_entries_of_a_partition_the_later_acknowledges(
    client: Connection, member: ShareMember, other: ShareMember
) -> None:
    produce(client, "t", 0, batch(b"a", b"b"))
    assert given(member.fetch()) == {0: [(0, 1, 1)]}
    rows = [
        {
            "partition_index": 0,
            "acknowledgement_batches": [{"first_offset": offset, "last_offset": offset, "acknowledge_types": [kind]}],
        }
        for offset, kind in ((0, REJECT), (1, RELEASE))
    ]
    who = {"group_id": GROUP, "member_id": member.member_id, "share_session_epoch": 1}
    topics = [{"topic_id": member.topic_id, "partitions": rows}]
    answer = member.connection.request(make("ShareAcknowledge", **who, topics=topics), 2)
    assert [part.error_code for part in answer.responses[0].partitions] == [0]
    member.epoch = -1
    member.fetch()
    assert given(other.fetch()) == {0: [(0, 1, 2)]}


@pytest.mark.parametrize("how", ["half-closed", "closed by an administrator"])
def test_a_connection_that_ends_with_the_answer_has_it_at_once(
    broker: Broker,
    client: Connection,
    member: ShareMember,
    other: ShareMember,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer says what became of the acknowledgements; nobody waits for records."""
    produce(client, "t", 0, batch(b"a"))
    assert ranges(member.poll()) == [(0, 0, 1)]
    is_begun, is_held, entries = threading.Event(), [True], share_acknowledgements._entries

    def held(request: Any) -> Any:
        is_begun.set()
        while is_held:
            yield
        return (yield from entries(request))

    monkeypatch.setattr(share_acknowledgements, "_entries", held)
    member.connection.send(member.fetch_request(acks=[(0, 0, [ACCEPT])], max_wait_ms=10**6), 2)
    assert is_begun.wait(PATIENCE_S)
    port = member.connection._socket.getsockname()[1]
    registry = broker._server._registry
    (served,) = [one for one in registry.connections if one.session.peer_port == port]
    if how == "half-closed":
        member.connection._socket.shutdown(socket.SHUT_WR)
        until(broker, lambda: served._closing_reason is not None or served.is_closing)
    else:
        broker.call(registry.close, served, "its password has changed")
        until(broker, lambda: served._closing_reason is not None)
    is_held.clear()
    _, response = member.connection.receive(78, 2)
    (answer,) = response.responses[0].partitions
    assert (answer.partition_index, answer.acknowledge_error_code) == (0, 0)
    until(broker, lambda: served not in registry.connections)
    assert ranges(other.poll()) == []
