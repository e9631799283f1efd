"""The smaller admin APIs: partitions, directories, elections, reassignments, the quorum, features, resources."""

from __future__ import annotations

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_shim.protocol.messages.create_topics_request import CreateTopicsRequest
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kafka_shim.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kafka_shim.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafka_shim.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from kafka_shim.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafka_shim.tests.api.admin import GROUP, METRICS, SET, TOPIC, alter, create, grow, new_topic
from kafka_shim.tests.produced import batch, make_topic, metadata, produce
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_in_every_version(client, version):
    create(client, new_topic("t"))
    assert grow(client, "t", 3, version=version).error_code == 0
    assert produce(client, "t", 2, batch(b"a")).error_code == 0
    result = grow(client, "t", 3, version=version)
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 3 partition(s).",
    )


def test_growth_may_be_tried_first(client):
    create(client, new_topic("t"))
    assert grow(client, "t", 3, validate_only=True).error_code == 0
    assert produce(client, "t", 2, batch(b"a")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(1, 6))
def test_directories_list_partitions_and_sizes(client, version):
    create(client, new_topic("t", 2), new_topic("u"))
    produce(client, "t", 1, batch(b"a"))
    (result,) = client.request(DescribeLogDirsRequest(topics=None), version).results
    sizes = {
        (topic.name, one.partition_index): one.partition_size for topic in result.topics for one in topic.partitions
    }
    assert sizes == {("t", 0): 0, ("t", 1): len(batch(b"a")), ("u", 0): 0}
    if version >= 4:
        assert result.total_bytes >= result.usable_bytes > 0
    wanted = [DescribableLogDirTopic(topic="t", partitions=[1, 7])]
    (result,) = client.request(DescribeLogDirsRequest(topics=wanted), version).results
    assert [(topic.name, len(topic.partitions)) for topic in result.topics] == [("t", 1)]


@pytest.mark.parametrize("version", range(1, 6))
def test_a_directory_that_failed_is_listed_with_its_error(tmp_path, version):
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.write_text("no directory")
    with Broker(log_dirs=f"{good},{bad}") as broker, Connection(broker.bootstrap_servers) as client:
        create(client, new_topic("t"))
        told = client.request(DescribeLogDirsRequest(topics=None), version).results
    assert [(one.error_code, one.log_dir, len(one.topics)) for one in told] == [
        (0, str(good), 1),
        (ErrorCode.KAFKA_STORAGE_ERROR, str(bad), 0),
    ]
    assert told[1].total_bytes == -1


def test_nobody_needs_an_election_or_is_moved(client):
    create(client, new_topic("t"))
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 1])], timeout_ms=1000)
    (result,) = client.request(request, 2).replica_election_results
    assert [one.error_code for one in result.partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert client.request(ElectLeadersRequest(topic_partitions=None), 2).error_code == 0
    assert client.request(ListPartitionReassignmentsRequest(topics=None), 0).topics == []


@pytest.mark.parametrize("timeout_ms", [1000, 0])
def test_a_reassignment_of_nothing_has_the_defaults_of_the_response(client, timeout_ms):
    """As observed on 4.3.1: the controller does not look at the rest of such a request."""
    request = AlterPartitionReassignmentsRequest(
        topics=[], timeout_ms=timeout_ms, allow_replication_factor_change=False
    )
    answer = client.request(request, 1)
    assert (answer.error_code, answer.error_message, answer.allow_replication_factor_change) == (0, "", True)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_this_broker(tmp_path, version):
    wanted = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    with Broker(data_dir=tmp_path, clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        create(client, new_topic("t", 3))
        answer = client.request(DescribeQuorumRequest(topics=[wanted]), version)
        stored = (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    *_, last = scan_all(stored)
    assert partition.high_watermark == last.next_offset > 4
    assert [(one.replica_id, one.log_end_offset) for one in partition.current_voters] == [(1, last.next_offset)]


def finalised(client):
    answer = client.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    return {one.name: one.max_version_level for one in answer.finalized_features}


@pytest.mark.parametrize("version", [1, 2])
def test_a_feature_goes_down_and_up_again(client, version):
    assert finalised(client)["transaction.version"] == 2
    for level, kind in ((1, 2), (2, 1)):
        key = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)
        answer = client.request(UpdateFeaturesRequest(feature_updates=[key]), version)
        results = [(one.feature, one.error_code, one.error_message) for one in answer.results]
        assert (answer.error_code, results) == (0, [("transaction.version", 0, "NONE")] if version < 2 else [])
        assert finalised(client)["transaction.version"] == level


@pytest.mark.parametrize("allow_downgrade", [False, True])
def test_version_0_goes_up_only(client, allow_downgrade):
    """Kafka's controller reads the type of upgrade alone, which version 0 does not have."""
    down = FeatureUpdateKey(feature="transaction.version", max_version_level=1, allow_downgrade=allow_downgrade)
    answer = client.request(UpdateFeaturesRequest(feature_updates=[down]), 0)
    assert (answer.error_code, finalised(client)["transaction.version"]) == (ErrorCode.INVALID_UPDATE_VERSION, 2)
    down = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    assert client.request(UpdateFeaturesRequest(feature_updates=[down]), 1).error_code == 0
    up = FeatureUpdateKey(feature="transaction.version", max_version_level=2, allow_downgrade=allow_downgrade)
    assert client.request(UpdateFeaturesRequest(feature_updates=[up]), 0).error_code == 0
    assert finalised(client)["transaction.version"] == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_feature_that_is_only_tried_stays_as_it_is(client, version):
    key = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    answer = client.request(UpdateFeaturesRequest(feature_updates=[key], validate_only=True), version)
    assert (answer.error_code, len(answer.results)) == (0, 1 if version < 2 else 0)
    assert finalised(client)["transaction.version"] == 2
    bad = FeatureUpdateKey(feature="transaction.version", max_version_level=9, upgrade_type=1)
    answer = client.request(UpdateFeaturesRequest(feature_updates=[bad], validate_only=True), version)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_level_that_cannot_be_changes_nothing(client):
    key = FeatureUpdateKey(feature="metadata.version", max_version_level=7, upgrade_type=3)
    answer = client.request(UpdateFeaturesRequest(feature_updates=[key]), 2)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert finalised(client)["metadata.version"] == 30


def test_resources_with_options_are_listed_by_type(client):
    create(client, new_topic("t"))
    alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    alter(client, METRICS, "m", ("interval.ms", SET, "5000"))
    listed = client.request(ListConfigResourcesRequest(), 1).config_resources
    assert {(one.resource_type, one.resource_name) for one in listed} == {
        (TOPIC, "t"),
        (4, "1"),
        (8, "1"),
        (METRICS, "m"),
        (GROUP, "g"),
    }
    assert [one.resource_name for one in client.request(ListConfigResourcesRequest(), 0).config_resources] == ["m"]
    answer = client.request(ListConfigResourcesRequest(resource_types=[3]), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_timeout_that_is_over_changes_nothing(client, timeout_ms):
    """As Kafka's controller, which looks at the clock before it looks at the request (observed on 4.3.1)."""
    create(client, new_topic("t"))
    late = {"timeout_ms": timeout_ms}
    made = client.request(CreateTopicsRequest(topics=[new_topic("new"), new_topic("b/ad")], **late), 7)
    assert [(topic.name, topic.error_code, topic.error_message, topic.num_partitions) for topic in made.topics] == [
        (name, ErrorCode.REQUEST_TIMED_OUT, None, -1) for name in ("new", "b/ad")
    ]
    grown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3)], **late)
    assert [result.error_code for result in client.request(grown, 3).results] == [ErrorCode.REQUEST_TIMED_OUT]
    gone = client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], **late), 6)
    assert [(topic.name, topic.error_code) for topic in gone.responses] == [("t", ErrorCode.REQUEST_TIMED_OUT)]
    (topic,) = client.request(MetadataRequest(topics=None), 12).topics
    assert (topic.name, len(topic.partitions)) == ("t", 1)


def test_what_is_refused_before_the_controller_is_asked_does_not_time_out(client):
    """As ControllerApis, whose controller answers a request without topics at once (observed on 4.3.1)."""
    topic_id = create(client, new_topic("t"))["t"].topic_id

    def made(*names: str) -> list[tuple[str, int]]:
        request = CreateTopicsRequest(topics=[new_topic(name) for name in names], timeout_ms=0)
        return [(topic.name, topic.error_code) for topic in client.request(request, 7).topics]

    def gone(*wanted: tuple[str | None, bytes]) -> list[int]:
        topics = [DeleteTopicState(name=name, topic_id=of) for name, of in wanted]
        return [one.error_code for one in client.request(DeleteTopicsRequest(topics=topics, timeout_ms=0), 6).responses]

    def grown(*names: str) -> list[tuple[str, int]]:
        topics = [CreatePartitionsTopic(name=name, count=3) for name in names]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=0)
        return [(topic.name, topic.error_code) for topic in client.request(request, 3).results]

    def elected(*names: str, timeout_ms: int) -> int:
        topics = [TopicPartitions(topic=name, partitions=[0]) for name in names]
        request = ElectLeadersRequest(election_type=7, topic_partitions=topics, timeout_ms=timeout_ms)
        return client.request(request, 2).error_code

    late, invalid = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_REQUEST
    assert grown("t", "t") == [("t", invalid)]
    assert grown("t", "t", "y") == [("t", late), ("t", late), ("y", late)]
    assert [elected(timeout_ms=5000), elected("t", timeout_ms=0), elected("t", timeout_ms=5000)] == [0, late, invalid]
    assert made("z", "z") == [("z", invalid)]
    assert made("__cluster_metadata") == [("__cluster_metadata", invalid)]
    assert made("z", "z", "y") == [("z", late), ("z", late), ("y", late)]
    assert gone(("t", topic_id)) == gone((None, ZERO_UUID)) == gone(("t", ZERO_UUID), ("t", ZERO_UUID)) == [invalid]
    assert gone((None, topic_id), (None, topic_id)) == [invalid]
    assert gone(("t", topic_id), ("t", ZERO_UUID)) == [late, late]
    assert gone((None, topic_id)) == gone(("nope", ZERO_UUID)) == [late]


def test_ten_thousand_partitions_are_added_by_one_request_at_most(client):
    for name in ("a", "b", "c"):
        make_topic(client, name, 1)

    def asked(**counts: int) -> list[int]:
        topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=True)
        return [result.error_code for result in client.request(request, 3).results]

    assert asked(a=10_001) == [0]
    assert asked(a=10_002, b=2) == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert asked(a=5_002, b=5_002, c=2) == [0, ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert asked(a=2**31 - 1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    refused = grow(client, "a", 2**31 - 1)
    assert refused.error_message == "Excessively large number of partitions per request."
    assert len(metadata(client, "a").topics[0].partitions) == 1


def test_which_partition_has_no_leader_is_told_as_it_is_now():
    """Also where another one came back since, so that as many are offline as when somebody asked before."""
    with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:

        def break_log(topic: str) -> None:
            broker.state.faults.arm("log.before_write", "oserror", "EIO", nth=1)
            assert produce(client, topic, 0, batch(b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.state.logs.offline_count == 1

        def leaders() -> list[int]:
            return [topic.partitions[0].leader_id for topic in metadata(client, "t", "u").topics]

        make_topic(client, "t", 1)
        make_topic(client, "u", 1)
        break_log("t")
        assert leaders() == [-1, 1]
        assert broker.call(broker.state.logs.reopen_offline)
        break_log("u")
        assert leaders() == [1, -1]
