from __future__ import annotations

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.create_topics_request import CreatableTopicConfig
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.tests.api.admin import create, describe, new_topic
from kafka_shim.tests.produced import batch, produce
from kafka_shim.wire_client import Connection


def names(client):
    return {topic.name for topic in client.request(MetadataRequest(topics=None), 12).topics}


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_made_in_every_version(client, version):
    result = create(client, new_topic("t", 3, retention_ms="5"), version=version)["t"]
    assert (result.error_code, result.error_message) == (0, None)
    assert names(client) == {"t"}
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {entry.name: entry.value for entry in result.configs}["retention.ms"] == "5"
        assert len(result.configs) == 33
    if version >= 7:
        (topic,) = client.request(MetadataRequest(topics=None), 12).topics
        assert result.topic_id == topic.topic_id


def test_defaults_come_from_the_broker(client):
    result = create(client, new_topic("t", -1, -1))["t"]
    assert (result.num_partitions, result.replication_factor) == (2, 1)


def test_one_bad_topic_does_not_stop_the_others(client):
    results = create(client, new_topic("good"), new_topic("b/ad"), new_topic("big", 1, 2))
    assert {name: result.error_code for name, result in results.items()} == {
        "good": 0,
        "b/ad": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "big": ErrorCode.INVALID_REPLICATION_FACTOR,
    }
    assert names(client) == {"good"}


def test_validation_answers_the_same_and_makes_nothing(client):
    result = create(client, new_topic("t", 3), validate_only=True)["t"]
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert any(result.topic_id)
    assert names(client) == set()


def test_a_name_twice_and_the_metadata_topic_are_refused(client):
    results = create(client, new_topic("t"), new_topic("t"), new_topic("__cluster_metadata"))
    assert {name: result.error_code for name, result in results.items()} == {
        "t": ErrorCode.INVALID_REQUEST,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
    }


def test_an_unknown_or_ill_typed_option_makes_nothing(client):
    results = create(
        client, new_topic("a", foo="1"), new_topic("b", retention_ms="x"), new_topic("c", retention_ms=None)
    )
    assert {result.error_code for result in results.values()} == {ErrorCode.INVALID_CONFIG}
    assert results["a"].error_message == "Unknown topic config name: foo"
    assert names(client) == set()


@pytest.mark.parametrize(
    ("values", "code"), [((None, "5"), 40), (("5", None), 40), (("5", "6"), 0), (("x", "6"), 0), (("6", "x"), 40)]
)
def test_of_an_option_that_comes_twice_the_last_counts_unless_one_is_null(client, values, code):
    topic = new_topic("t")
    topic.configs = [CreatableTopicConfig(name="retention.ms", value=value) for value in values]
    assert create(client, topic)["t"].error_code == code


def test_more_than_ten_thousand_partitions_are_refused_for_all(client):
    results = create(client, new_topic("a", 10_000), new_topic("b"))
    assert {result.error_code for result in results.values()} == {ErrorCode.POLICY_VIOLATION}


@pytest.mark.parametrize(
    "topics",
    [
        [new_topic("a", 10_000)],
        [new_topic("a", 9_998), new_topic("b"), new_topic("not a name")],
        [new_topic("a", 9_998, retention_ms="5", segment_ms="5")],
    ],
    ids=["partitions", "topics", "options"],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_more_than_ten_thousand_records_are_refused_for_all(client, topics, validate_only):
    results = create(client, *topics, validate_only=validate_only)
    reason = "Unable to perform excessively large batch operation."
    assert {(one.error_code, one.error_message) for one in results.values()} == {(ErrorCode.POLICY_VIOLATION, reason)}
    assert names(client) == set()


def test_ten_thousand_records_are_not_too_many(client):
    results = create(client, new_topic("a", 9_998, retention_ms="5"), validate_only=True)
    assert results["a"].error_code == 0


def test_many_topics_in_one_request_are_one_commit(client):
    results = create(client, *(new_topic(f"t{number}") for number in range(200)))
    assert len(results) == 200
    assert len(names(client)) == 200


def test_options_of_a_new_topic_show_where_they_come_from(client):
    create(client, new_topic("t", retention_ms=" 100 "))
    entries = {entry.name: entry for entry in describe(client, 2, "t").configs}
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("100", 1)
    assert (entries["segment.ms"].value, entries["segment.ms"].config_source) == ("604800000", 5)


def test_a_topic_whose_directory_cannot_be_made_is_created_and_is_no_fault_of_others(tmp_path):
    """It is in the metadata, and a second attempt would be refused with TOPIC_ALREADY_EXISTS. As in Kafka its partition
    answers KAFKA_STORAGE_ERROR, until the directory can be made."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        (tmp_path / "t-0").write_text("in the way")
        (tmp_path / "u-0").write_text("in the way")
        told = [*create(client, new_topic("t")).values(), *create(client, new_topic("u"), new_topic("v")).values()]
        assert [(one.error_code, one.error_message) for one in told] == [(ErrorCode.NONE, None)] * 3
        answers = [produce(client, name, 0, batch(b"a")).error_code for name in ("t", "u", "v")]
        assert answers == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
        (tmp_path / "t-0").unlink()
        (tmp_path / "u-0").unlink()
        assert [produce(client, name, 0, batch(b"a")).base_offset for name in ("t", "u")] == [0, 0]


def test_a_lag_of_zero_is_a_lag():
    """It is not the broker's, which would be greater than the topic's other one."""
    with Broker(log_cleaner_min_compaction_lag_ms=60_000) as broker, Connection(broker.bootstrap_servers) as client:
        lags = {"min_compaction_lag_ms": "0", "max_compaction_lag_ms": "1000"}
        assert create(client, new_topic("t", **lags))["t"].error_code == 0
        refused = create(client, new_topic("u", max_compaction_lag_ms="1000"))["u"]
        assert refused.error_code == ErrorCode.INVALID_CONFIG
