from __future__ import annotations

import errno
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_shim import Broker
from kafka_shim.client.classic_membership import JOIN_S, ClassicMember
from kafka_shim.client.cluster import Cluster
from kafka_shim.client.groups import describe_group, list_groups, share_offsets
from kafka_shim.client.offsets import commit_offsets, committed_offsets
from kafka_shim.client.partitioning import murmur2, partition_for
from kafka_shim.client.reading import EARLIEST, LATEST, fetch, is_out_of_range, list_offsets, read_all
from kafka_shim.client.requests import make
from kafka_shim.client.topics import create_topic, delete_topics
from kafka_shim.client.writing import Producer, Written
from kafka_shim.client_security import ClientSecurity
from kafka_shim.errors import ErrorCode
from kafka_shim.targets.base import free_ports
from kafka_shim.wire_client import (
    CannotConnectError,
    Connection,
    ConnectionLostError,
    NoAnswerError,
    RequestError,
    WireClientError,
)


@pytest.fixture
def cluster(broker):
    with Cluster(broker.bootstrap_servers) as cluster:
        yield cluster


@pytest.fixture
def nobody():
    """An address that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_the_hash_is_javas():
    # From Kafka's own UtilsTest.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"": 275646681}
    assert {key: murmur2(key) for key in known} == {key: value & 0xFFFFFFFF for key, value in known.items()}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(cluster, compression):
    create_topic(cluster, "t", partitions=3)
    producer = Producer(cluster, compression=compression)
    for number in range(10):
        producer.send("t", b"v%d" % number, b"k%d" % number, headers=[("h", b"x"), ("h", None)], timestamp_ms=number)
    written = producer.flush()
    assert sum(one.count for one in written) == 10
    found = read_all(cluster, [("t", each) for each in range(3)])
    assert {(one.partition, one.key, one.value) for one in found} == {
        (partition_for(b"k%d" % number, 3), b"k%d" % number, b"v%d" % number) for number in range(10)
    }
    assert {one.headers for one in found} == {(("h", b"x"), ("h", None))}
    assert {one.timestamp_ms for one in found} == set(range(10))


def test_records_without_key_go_in_turn_and_to_named_partitions(cluster):
    create_topic(cluster, "t", partitions=2)
    producer = Producer(cluster)
    for _ in range(4):
        producer.send("t", b"x")
    producer.send("t", None, b"k", partition=1)
    assert producer.flush() == [Written("t", 0, 0, 2), Written("t", 1, 0, 3)]
    assert producer.flush() == []


def test_a_missing_topic_is_made_as_a_producer_does(cluster):
    producer = Producer(cluster)
    producer.send("new", b"x")
    assert producer.flush() == [Written("new", 0, 0, 1)]


def test_large_input_is_cut_into_batches(cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster)
    for _ in range(6):
        producer.send("t", bytes(300_000))
    assert [one.count for one in producer.flush()] == [1] * 6
    producer.send("t", bytes(2 << 20))
    with pytest.raises(RequestError) as failed:
        producer.flush()
    assert failed.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert len(read_all(cluster, [("t", 0)])) == 6


def test_what_is_behind_a_refused_record_is_written(cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster)
    values = [b"before", bytes(2 << 20), b"behind"]
    for value in values:
        producer.send("t", value)
    with pytest.raises(RequestError) as failed:
        producer.flush()
    assert failed.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert [one.value for one in read_all(cluster, [("t", 0)])] == [b"before", b"behind"]


def test_what_passes_beside_a_refused_record_is_tried_again(broker, cluster):
    """Its partition's leader has moved meanwhile: its batch was dropped, and never named."""
    create_topic(cluster, "t", partitions=2)
    where = {"topic": "t", "partition": 1}
    broker.faults.arm("log.before_write", "error", "NOT_LEADER_OR_FOLLOWER", nth=1, where=where)
    producer = Producer(cluster)
    producer.send("t", bytes(2 << 20), partition=0)
    producer.send("t", b"a", partition=1)
    with pytest.raises(RequestError, match="t-0: MESSAGE_TOO_LARGE"):
        producer.flush()
    assert [one.value for one in read_all(cluster, [("t", 1)])] == [b"a"]
    assert producer.flush() == [Written("t", 1, 0, 1)]


@pytest.mark.parametrize("acks", [-1, 0])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_partition_without_a_leader_keeps_no_record_from_the_others(broker, cluster, is_known, acks):
    create_topic(cluster, "t", partitions=3)
    with Cluster(broker.bootstrap_servers) as impatient:
        impatient.any()  # answers are waited for as always, and a leader not long
        impatient.timeout_s = 0.2
        producer = Producer(impatient, acks=acks)
        if is_known:
            for partition in range(3):
                producer.send("t", b"known", partition=partition)
            producer.flush()
            impatient.forget_leaders()
        log = broker.state.logs.get("t", 1)
        broker.call(log.fail, OSError(errno.EIO, "broken"))
        for number in range(3):
            producer.send("t", b"named", partition=number)
        with pytest.raises(RequestError, match="t-1: LEADER_NOT_AVAILABLE"):
            producer.flush()
        for _ in range(4):
            producer.send("t", b"turns")
        producer.flush()
    for partition in (0, 2):
        found = [one.value for one in read_all(cluster, [("t", partition)])]
        assert found == [b"known"] * is_known + [b"named"] + [b"turns"] * 2


def test_transactions_are_seen_as_their_end_decides(cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster, transactional_id="x")
    for value, ends in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin()
        producer.send("t", value)
        producer.flush()
        if ends:
            producer.commit()
        else:
            producer.abort()
    producer.begin()
    producer.send("t", b"open")
    producer.flush()
    assert [one.value for one in read_all(cluster, [("t", 0)], read_committed=True)] == [b"kept", b"kept too"]
    assert len(read_all(cluster, [("t", 0)])) == 4
    (got,) = fetch(cluster, {("t", 0): 0}, read_committed=True)
    assert [one.control or one.is_aborted for one in got.records] == [False, "COMMIT", True, "ABORT", False, "COMMIT"]
    assert (got.last_stable_offset, got.high_watermark) == (6, 7)
    Producer(cluster, transactional_id="x")  # takes the id over
    producer.send("t", b"late")
    with pytest.raises(RequestError) as fenced:
        producer.flush()
    assert fenced.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


def test_offsets_by_time_and_beyond(cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster)
    for number in range(5):
        producer.send("t", b"x", timestamp_ms=1000 * number)
    producer.flush()
    assert list_offsets(cluster, {("t", 0): 1500}) == {("t", 0): 2}
    assert list_offsets(cluster, {("t", 0): EARLIEST}) == {("t", 0): 0}
    assert list_offsets(cluster, {("t", 0): LATEST}) == {("t", 0): 5}
    with pytest.raises(RequestError, match="t-7: UNKNOWN_TOPIC_OR_PARTITION"):
        list_offsets(cluster, {("t", 7): LATEST})
    with pytest.raises(RequestError) as failed:
        fetch(cluster, {("t", 0): 99})
    assert is_out_of_range(failed.value)


def test_groups_of_every_kind_are_told(cluster):
    create_topic(cluster, "t", partitions=1)
    commit_offsets(cluster, "g", {("t", 0): 3})
    assert committed_offsets(cluster, "g") == {("t", 0): 3}
    assert committed_offsets(cluster, "none") == {}
    member = "a" * 22
    beat = make(
        "ConsumerGroupHeartbeat",
        group_id="new",
        member_id=member,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert not cluster.coordinator("new").request(beat).error_code
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    cluster.any().request(make("AlterShareGroupOffsets", group_id="shared", topics=topics))
    assert [(one.group_id, one.kind, one.state) for one in list_groups(cluster)] == [
        ("g", "classic", "Empty"),
        ("new", "consumer", "Stable"),
        ("shared", "share", "Empty"),
    ]
    assert describe_group(cluster, "g").kind == "classic"
    found = describe_group(cluster, "new")
    assert (found.kind, found.assignor, [one.held for one in found.members]) == ("consumer", "uniform", [{("t", 0)}])
    assert describe_group(cluster, "shared").kind == "share"
    assert share_offsets(cluster, "shared") == {("t", 0): (0, 0)}
    with pytest.raises(RequestError) as failed:
        describe_group(cluster, "nobody")
    assert failed.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_topics_are_made_and_deleted(cluster):
    create_topic(cluster, "t", partitions=2, configs={"retention.ms": "5"})
    create_topic(cluster, "t", may_exist=True)
    with pytest.raises(RequestError, match="TOPIC_ALREADY_EXISTS"):
        create_topic(cluster, "t")
    assert cluster.partitions("t") == [0, 1]
    delete_topics(cluster, ["t"])
    with pytest.raises(RequestError, match="t: UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.partitions("t")


def test_bootstrap_servers_are_tried_in_turn(broker, nobody):
    with Cluster(f"{nobody},{broker.bootstrap_servers}") as cluster:
        assert cluster.any() is cluster.any()
        node = cluster.metadata(()).brokers[0].node_id
        assert cluster.to(node) is cluster.any()
        with pytest.raises(WireClientError, match="no broker 99"):
            cluster.to(99)
    with pytest.raises(WireClientError, match="cannot connect"):
        Cluster(f"{nobody},{nobody}").any()
    with pytest.raises(WireClientError, match="no bootstrap server"):
        Cluster(" ").any()


def test_what_had_no_answer_is_sent_again_and_written_once(broker, cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster, reconnects=True)
    producer.send("t", b"a")
    assert producer.flush() == [Written("t", 0, 0, 1)]
    broker.faults.arm("response.ready", "drop", nth=1, where={"api_key": 0})
    producer.send("t", b"b")
    assert producer.flush() == [Written("t", 0, 1, 1)]
    broker.restart()
    producer.send("t", b"c")
    assert producer.flush() == [Written("t", 0, 2, 1)]
    assert [one.value for one in read_all(cluster, [("t", 0)])] == [b"a", b"b", b"c"]


def test_records_behind_a_refused_one_are_written(cluster):
    """Whose sequence they would continue, if they were of the same producer id."""
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster, reconnects=True)
    for value in (b"a", bytes(2 << 20), b"b"):
        producer.send("t", value)
    with pytest.raises(RequestError):
        producer.flush()
    producer.send("t", b"c")
    producer.flush()
    assert [one.value for one in read_all(cluster, [("t", 0)])] == [b"a", b"b", b"c"]


def test_a_connection_is_made_again_only_where_that_is_asked_for(broker, cluster):
    create_topic(cluster, "t", partitions=1)
    producer = Producer(cluster)
    producer.send("t", b"a")
    broker.restart()
    with pytest.raises(ConnectionLostError):
        producer.flush()


def test_a_handshake_of_tls_that_a_restart_cuts_is_made_again():
    """It was an error like that of a wrong certificate: no tool survived with TLS what it survives without."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    with Broker(tls=True, listen=address) as broker, ThreadPoolExecutor(1) as pool:
        security = ClientSecurity(broker.client_config("java"))
        with Cluster(broker.bootstrap_servers, security=security) as cluster:
            cluster.metadata(())
            broker.stop()

            def cut_and_start(server):
                with server:
                    server.accept()[0].close()
                broker.start()

            started = pool.submit(cut_and_start, socket.create_server(("127.0.0.1", port)))
            answer = cluster.patiently(lambda: cluster.metadata(()), reconnects=True)
            started.result()
            assert answer.cluster_id == broker.cluster_id


def test_a_handshake_of_tls_without_an_answer_is_told_as_such():
    security = ClientSecurity({"security.protocol": "SSL"})
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswerError, match="timed out"):
        Connection(f"127.0.0.1:{silent.getsockname()[1]}", security=security, timeout_s=0.1)


def test_nothing_is_tried_again_where_nobody_ever_answered(nobody):
    with Cluster(nobody) as cluster, pytest.raises(CannotConnectError):
        Producer(cluster, reconnects=True).send("t", b"a")


def test_a_member_waits_for_slow_ones_longer_than_for_other_answers(broker, cluster, monkeypatch):
    """It gave up after the time for any answer, and so ended kafka-console-consumer."""
    create_topic(cluster, "t", partitions=2)
    first = ClassicMember(cluster, "g", lambda: ["t"])
    assert len(first.positions()) == 2
    with Cluster(broker.bootstrap_servers) as impatient, ThreadPoolExecutor(1) as pool:
        connection = impatient.any()
        ask = connection.request

        def impatiently(message, *arguments, **named):
            """Has time for any answer but that which slow members hold up, unless more is asked for."""
            if connection._timeout_s != JOIN_S:
                is_held_up = type(message).__name__ == "JoinGroupRequest" and message.member_id
                connection._timeout_s = 0.5 if is_held_up else 60
                connection._socket.settimeout(connection._timeout_s)
            return ask(message, *arguments, **named)

        monkeypatch.setattr(connection, "request", impatiently)
        second = ClassicMember(impatient, "g", lambda: ["t"])
        joined = pool.submit(second.positions)
        try:
            with pytest.raises(TimeoutError):
                joined.result(1)
        finally:
            first.close()
        assert len(joined.result(60)) == 2
        second.close()
