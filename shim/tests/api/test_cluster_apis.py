"""Metadata, DescribeTopicPartitions, DescribeCluster, FindCoordinator, ApiVersions, OffsetForLeaderEpoch."""

from __future__ import annotations

import pytest

from kafka_shim.api import APIS, TELEMETRY
from kafka_shim.api.k18_api_versions import is_valid_name
from kafka_shim.embedded import Broker
from kafka_shim.errors import MALFORMED_REQUEST, ErrorCode
from kafka_shim.line_limit import MAX_LINES
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kafka_shim.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_shim.protocol.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import batch, make_topic, metadata, produce
from kafka_shim.wire_client import Connection

COMMITTED = OffsetCommitRequestTopic(
    name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
)

# --- Metadata


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_broker_topic_and_partitions_in_every_version(broker, client, version):
    topic_id = make_topic(client, "t", 3)
    response = metadata(client, "t", version=version)
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [(1, "127.0.0.1", broker.port)]
    (topic,) = response.topics
    assert (topic.error_code, topic.name, [one.partition_index for one in topic.partitions]) == (0, "t", [0, 1, 2])
    assert {(one.leader_id, tuple(one.replica_nodes), tuple(one.isr_nodes)) for one in topic.partitions} == {
        (1, (1,), (1,))
    }
    if version >= 2:
        assert response.cluster_id == broker.cluster_id
    assert topic.topic_id == (topic_id if version >= 10 else ZERO_UUID)


def test_an_unknown_topic_is_made_behind_the_answer_where_client_and_broker_allow_it(client):
    assert metadata(client, "no", allow_auto_topic_creation=False).topics[0].error_code == 3
    first = metadata(client, "yes").topics[0]
    assert (first.error_code, first.topic_id, first.partitions) == (3, ZERO_UUID, [])
    assert len(metadata(client, "yes").topics[0].partitions) == 2
    assert [topic.name for topic in metadata(client).topics] == ["yes"]
    assert metadata(client, "a b").topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert metadata(client, "a b", allow_auto_topic_creation=False).topics[0].error_code == 17
    with Broker(auto_create_topics_enable=False) as strict, Connection(strict.bootstrap_servers) as other:
        assert metadata(other, "yes").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_whose_disk_failed_has_no_leader(broker, client):
    make_topic(client, "t", 2)
    assert {one.leader_id for one in metadata(client, "t").topics[0].partitions} == {1}
    broker.faults.arm("log.before_write", "oserror", "EIO", where={"topic": "t", "partition": 1})
    assert produce(client, "t", 1, batch(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    told = [
        (one.error_code, one.leader_id, one.isr_nodes, one.offline_replicas)
        for one in metadata(client, "t").topics[0].partitions
    ]
    assert told == [(0, 1, [1], []), (ErrorCode.LEADER_NOT_AVAILABLE, -1, [], [1])]
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")], response_partition_limit=9)
    told = [
        (one.error_code, one.leader_id, one.isr_nodes, one.last_known_elr, one.offline_replicas)
        for one in client.request(request, 0).topics[0].partitions
    ]
    assert told == [(0, 1, [1], [], []), (0, -1, [], [1], [1])]


def test_version_0_takes_an_empty_list_for_all_and_later_ones_for_none(client):
    make_topic(client, "t")
    for version, count in ((0, 1), (1, 0), (12, 0)):
        assert len(client.request(MetadataRequest(topics=[]), version).topics) == count
    assert len(metadata(client).topics) == 1


def test_topics_are_found_by_id_from_version_12(client):
    topic_id = make_topic(client, "t")
    wanted = [MetadataRequestTopic(name=None, topic_id=one) for one in (topic_id, b"\x05" * 16)]
    told = {
        topic.topic_id: (topic.error_code, topic.name)
        for topic in client.request(MetadataRequest(topics=wanted), 12).topics
    }
    assert told == {topic_id: (0, "t"), b"\x05" * 16: (ErrorCode.UNKNOWN_TOPIC_ID, None)}
    (refused, _) = client.request(MetadataRequest(topics=wanted), 11).topics
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    neither = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 12)
    assert neither.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    both = MetadataRequest(topics=[MetadataRequestTopic(name=None), MetadataRequestTopic(name=None, topic_id=topic_id)])
    assert [topic.name for topic in client.request(both, 12).topics] == ["t"]


def test_operations_are_told_when_they_are_asked_for(client):
    topic_id = make_topic(client, "t")
    how = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    response = metadata(client, "t", version=9, **how)
    assert (response.cluster_authorized_operations, response.topics[0].topic_authorized_operations) == (8096, 3576)
    assert metadata(client, "t", version=9).cluster_authorized_operations == -2147483648
    assert metadata(client, "nope", version=9, allow_auto_topic_creation=False, **how).topics[0].error_code == 3
    by_id = [MetadataRequestTopic(name=None, topic_id=one) for one in (topic_id, b"\x05" * 16)]
    told = client.request(MetadataRequest(topics=by_id, include_topic_authorized_operations=True), 12).topics
    assert [(one.error_code, one.topic_authorized_operations) for one in told] == [
        (0, 3576),
        (ErrorCode.UNKNOWN_TOPIC_ID, -2147483648),
    ]


# --- DescribeTopicPartitions


def pages(client, limit: int, *names: str) -> list[list[tuple[str, list[int]]]]:
    found, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        response = client.request(request, 0)
        found.append([(topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics])
        if response.next_cursor is None:
            return found
        cursor = Cursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


def test_pages_go_through_topics_by_name_and_break_inside_them(client):
    for name, partitions in (("b", 3), ("a", 2)):
        make_topic(client, name, partitions)
    assert pages(client, 2, "b", "a") == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2])]]
    assert pages(client, 100) == [[("a", [0, 1]), ("b", [0, 1, 2])]]
    assert pages(client, 0, "a") == [[("a", [0])], [("a", [1])]]


def test_internal_topics_are_marked_whether_they_exist_or_not(client):
    make_topic(client, "t")
    names = ("t", "__consumer_offsets", "__transaction_state", "unknown")
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=9
    )
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {one.name: (one.error_code, one.is_internal) for one in client.request(request, 0).topics} == {
        "t": (0, False),
        "__consumer_offsets": (missing, True),
        "__transaction_state": (missing, True),
        "unknown": (missing, False),
    }
    for kind, name in enumerate(("__consumer_offsets", "__transaction_state")):
        client.request(FindCoordinatorRequest(key="k", key_type=kind), 3)
        (told,) = client.request(
            DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)], response_partition_limit=1), 0
        ).topics
        assert (told.error_code, told.is_internal) == (0, True)


def test_wrong_cursors_and_unknown_topics_have_errors(client):
    make_topic(client, "t")
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="t")], cursor=Cursor(topic_name="t", partition_index=-1)
    )
    assert client.request(request, 0).topics[0].error_code == ErrorCode.INVALID_REQUEST
    request.cursor = Cursor(topic_name="zz", partition_index=0)
    assert client.request(request, 0).topics[0].error_code == ErrorCode.INVALID_REQUEST
    unknown = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="nowhere"), TopicRequest(name="a b")])
    assert [topic.error_code for topic in client.request(unknown, 0).topics] == [17, 3]


# --- DescribeCluster, FindCoordinator


def test_other_registered_brokers_are_told_as_fenced_to_a_client_that_asks_for_fenced_ones(broker, client):
    """They are of the cluster that the directory comes from, and an administrator may unregister them."""
    listeners = {"PLAINTEXT": 9093, "OTHER": 9094}
    endpoints = [BrokerEndpoint(name=name, host="h", port=port) for name, port in listeners.items()]
    known = RegisterBrokerRecord(broker_id=7, broker_epoch=3, rack="r", end_points=endpoints, fenced=False)
    broker.call(broker.state.metadata.commit, [known])
    (own,) = client.request(DescribeClusterRequest(), 2).brokers
    assert (own.broker_id, own.is_fenced) == (1, False)
    answer = client.request(DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert [(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in answer.brokers] == [
        (1, "127.0.0.1", broker.port, None, False),
        (7, "h", 9093, "r", True),
    ]


@pytest.mark.parametrize(
    ("option", "kind", "name"),
    [
        ("offsets_topic_segment_bytes", 0, "__consumer_offsets"),
        ("transaction_state_log_segment_bytes", 1, "__transaction_state"),
        ("share_coordinator_state_topic_segment_bytes", 2, "__share_group_state"),
    ],
)
def test_an_internal_topic_with_segments_that_no_topic_may_have_is_not_created(option, kind, name, caplog):
    """Apache Kafka's controller refuses it (INVALID_CONFIG), and a directory that has it stops Kafka's start."""
    key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
    with Broker(**{option: (1 << 20) - 1}) as broker, Connection(broker.bootstrap_servers) as client:
        asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (found,) = client.request(asked, 6).coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        (topic,) = metadata(client, name, version=5).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[COMMITTED])
        make_topic(client, "t")
        client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        told = client.request(commit, 9).topics[0].partitions[0].error_code
        assert told == (ErrorCode.NOT_COORDINATOR if kind == 0 else ErrorCode.NONE)
    assert (
        f"the topic {name} is not created on demand: INVALID_CONFIG: Invalid value 1048575 for configuration "
        f"segment.bytes: Value must be at least 1048576 (it comes from {option.replace('_', '.')})"
    ) in caplog.text


def test_a_full_disk_that_refuses_topics_on_demand_does_not_write_a_line_for_each_request(broker, client, caplog):
    broker.faults.arm("log.before_write", "oserror", "ENOSPC")
    for number in range(MAX_LINES):
        (topic,) = metadata(client, f"new-{number}").topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        (found,) = client.request(asked, 6).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.faults.disarm()
    assert len([one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]) == MAX_LINES
    assert "the topic new-0 is not created on demand: KAFKA_STORAGE_ERROR" in caplog.text


def test_a_commit_lists_a_topic_that_it_names_twice_once_if_something_is_refused(client):
    make_topic(client, "t")
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def answers(*topics):
        rows = [{"name": name, "partitions": [{"partition_index": index}]} for name, index in topics]
        told = client.request(make("OffsetCommit", group_id="g", topics=rows), 9)
        return [
            (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
            for topic in told.topics
        ]

    assert answers(("t", 0), ("t", 0)) == [("t", [(0, 0)])] * 2
    assert answers(("no", 0), ("no", 1)) == [("no", [(0, unknown), (1, unknown)])]
    assert answers(("t", 0), ("no", 0), ("t", 0), ("no", 1)) == [
        ("no", [(0, unknown), (1, unknown)]),
        ("t", [(0, 0), (0, 0)]),
    ]


def test_a_deletion_of_offsets_lists_a_topic_once_if_something_of_it_is_refused(client):
    """As by Apache Kafka, which lists topics that do not exist without partitions too."""
    make_topic(client, "t", 2)
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
    commit = [{"name": "t", "partitions": [{"partition_index": index} for index in range(2)]}]
    client.request(make("OffsetCommit", group_id="g", topics=commit), 9)

    def answers(*topics):
        rows = [
            {"name": name, "partitions": [{"partition_index": index} for index in indexes]} for name, indexes in topics
        ]
        told = client.request(make("OffsetDelete", group_id="g", topics=rows), 0)
        return [
            (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
            for topic in told.topics
        ]

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers(("no", []), ("t", [])) == [("no", [])]
    assert answers(("t", [0]), ("no", [])) == [("no", []), ("t", [(0, 0)])]
    assert answers(("t", [0]), ("t", [1])) == [("t", [(0, 0)]), ("t", [(1, 0)])]
    assert answers(("t", [0]), ("t", [-1, 1, 9])) == [("t", [(-1, unknown), (9, unknown), (0, 0), (1, 0)])]


def test_groups_have_no_coordinator_until_it_is_looked_up(broker, client):
    make_topic(client, "t")
    beat = make("Heartbeat", group_id="g", generation_id=1, member_id="m")
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[COMMITTED])

    def codes():
        committed = client.request(commit, 9).topics[0].partitions[0]
        (described,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 1).groups
        (deleted,) = client.request(make("DeleteGroups", groups_names=["no"]), 2).results
        return [each.error_code for each in (client.request(beat, 4), committed, described, deleted)]

    assert codes() == [ErrorCode.NOT_COORDINATOR] * 4
    assert client.request(make("ListGroups"), 5).groups == []
    assert "__consumer_offsets" not in broker.state.metadata.image.topics
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
    gone = ErrorCode.GROUP_ID_NOT_FOUND
    assert codes() == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, gone, gone]
    broker.call(broker.state.metadata.delete_topic, "__consumer_offsets")
    assert codes() == [ErrorCode.NOT_COORDINATOR] * 4


def test_the_cluster_is_described_to_who_wants_brokers(broker, client):
    for version in range(3):
        response = client.request(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        assert (response.error_code, response.cluster_id, response.controller_id) == (0, broker.cluster_id, 1)
        assert [(one.broker_id, one.port) for one in response.brokers] == [(1, broker.port)]
        assert response.cluster_authorized_operations == 8096
    for kind, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        response = client.request(DescribeClusterRequest(endpoint_type=kind), 2)
        assert (response.error_code, response.brokers) == (code, [])
        assert response.error_message


@pytest.mark.parametrize("version", range(7))
def test_this_node_coordinates_groups_and_transactions(broker, client, version):
    for kind in (0, 1) if version else (0,):
        if version < 4:
            told = client.request(FindCoordinatorRequest(key="k", key_type=kind), version)
            assert (told.error_code, told.node_id, told.host, told.port) == (0, 1, "127.0.0.1", broker.port)
        else:
            response = client.request(FindCoordinatorRequest(coordinator_keys=["k", "l"], key_type=kind), version)
            assert [(one.key, one.error_code, one.port) for one in response.coordinators] == [
                ("k", 0, broker.port),
                ("l", 0, broker.port),
            ]
    names = {topic.name for topic in metadata(client).topics}
    assert names == ({"__consumer_offsets", "__transaction_state"} if version else {"__consumer_offsets"})


@pytest.mark.parametrize("kind", [0, 1])
def test_nobody_coordinates_what_is_in_an_offline_partition(broker, client, kind):
    def ask(version: int):
        if version < 4:
            return client.request(FindCoordinatorRequest(key="k", key_type=kind), version)
        return client.request(FindCoordinatorRequest(coordinator_keys=["k"], key_type=kind), version).coordinators[0]

    assert ask(3).error_code == 0
    state = broker.state
    partition = (state.groups, state.transactions)[kind].partition_for("k")
    name = ("__consumer_offsets", "__transaction_state")[kind]
    broker.call(lambda: state.logs.get(name, partition).fail(OSError(5, "the disk")))
    for version in (3, 6):
        told = ask(version)
        assert (told.error_code, told.node_id, told.port) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)


def test_unknown_kinds_of_coordinators_are_refused(client):
    told = client.request(FindCoordinatorRequest(key="k", key_type=7), 3)
    assert (told.error_code, told.node_id, told.port) == (ErrorCode.INVALID_REQUEST, -1, -1)
    (one,) = client.request(FindCoordinatorRequest(coordinator_keys=["k"], key_type=7), 4).coordinators
    assert (one.key, one.error_code, one.node_id) == ("k", ErrorCode.INVALID_REQUEST, -1)
    for kind in (7, -1, 2):
        told = client.request(FindCoordinatorRequest(key="k", key_type=kind), 3)
        assert told.error_message == MALFORMED_REQUEST


def test_the_partitions_of_share_groups_have_a_coordinator(client):
    topic_id = "A" * 22
    good = (f"group:{topic_id}:0", f"a:b:{topic_id}:0", f"group:{topic_id}:-1", f"group:{topic_id}==:0")
    bad = ["malformed", "", f":{topic_id}:0", f" :{topic_id}:0", f"{topic_id}:0", "group:AAAA:0"]
    bad += [f"group:{topic_id}:{number}" for number in ("x", " 1", "1_0", "", "-")]
    bad.append(f"group:?{topic_id[1:]}:0")
    for version, keys, code in (
        (5, good, ErrorCode.INVALID_REQUEST),
        (6, good, ErrorCode.NONE),
        (6, bad, ErrorCode.INVALID_REQUEST),
    ):
        request = FindCoordinatorRequest(coordinator_keys=list(keys), key_type=2)
        assert {one.error_code for one in client.request(request, version).coordinators} == {code}


# --- ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_the_list(client, version):
    response = client.request(ApiVersionsRequest(client_software_name="test", client_software_version="1.0"), version)
    told = [(one.api_key, one.min_version, one.max_version) for one in response.api_keys]
    assert told == [(api.key, api.advertised_min, api.last) for api in APIS if api.key not in TELEMETRY]
    if version >= 3:
        finalized = {one.name: one.max_version_level for one in response.finalized_features}
        assert finalized["metadata.version"] == 30
        assert response.finalized_features_epoch > 0
        supported = {one.name: one.min_version for one in response.supported_features}
        assert ("transaction.version" in supported) == (version >= 4)
        assert supported["metadata.version"] == 7


def test_a_client_says_who_it_is_in_a_proper_form(client):
    assert is_valid_name("librdkafka")
    assert is_valid_name("a.b-1")
    for name in ("", "-a", "a-", ".", "a b", "ä", "a_b"):
        assert not is_valid_name(name)
        response = client.request(ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3)
        assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


# --- OffsetForLeaderEpoch


@pytest.mark.parametrize("version", range(2, 5))
def test_the_end_of_the_current_epoch_is_the_end_of_the_log(client, version):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a", b"b"))

    def ask(leader_epoch: int, current: int = -1, topic: str = "t", partition: int = 0) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
        (told,) = client.request(request, version).topics[0].partitions
        return told.error_code, told.leader_epoch, told.end_offset

    assert ask(0) == (0, 0, 2)
    assert ask(7) == (0, -1, -1)
    assert ask(0, current=5) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert ask(0, partition=4) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask(0, topic="nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
