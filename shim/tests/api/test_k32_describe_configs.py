from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.metadata import config_entries
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.tests.api.admin import (
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    TOPIC,
    alter,
    create,
    describe,
    new_topic,
    option,
)


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_options_have_types_sources_and_synonyms(client, version):
    create(client, new_topic("t", retention_ms="5"))
    entries = {entry.name: entry for entry in describe(client, TOPIC, "t", version=version).configs}
    entry = entries["retention.ms"]
    assert (entry.value, entry.config_source, entry.read_only, entry.is_sensitive) == ("5", 1, False, False)
    assert [(one.name, one.value, one.source) for one in entry.synonyms] == [("retention.ms", "5", 1)]
    entry = entries["max.message.bytes"]
    assert [(one.name, one.value, one.source) for one in entry.synonyms] == [("message.max.bytes", "1048588", 5)]
    if version >= 3:
        assert entry.config_type == 3


@pytest.mark.parametrize("text", ["NaN", "Infinity"])
def test_a_number_that_is_none_is_described_as_java_writes_it(client, text):
    rate = "log.cleaner.io.max.bytes.per.second"
    assert alter(client, BROKER, "", (rate, SET, text)) == (0, None)
    assert option(client, BROKER, "1", rate) == (text, 3)
    assert alter(client, BROKER, "", (rate, DELETE, None)) == (0, None)


@pytest.mark.parametrize(
    ("of_topics", "of_brokers", "text"),
    [
        ("min.insync.replicas", "min.insync.replicas", "2"),
        ("preallocate", "log.preallocate", "true"),
        ("unclean.leader.election.enable", "unclean.leader.election.enable", "true"),
        ("local.retention.ms", "log.local.retention.ms", "5"),
        ("local.retention.bytes", "log.local.retention.bytes", "6"),
    ],
)
def test_a_topic_shows_the_brokers_option_where_it_has_none(client, of_topics, of_brokers, text):
    """Also of options that nothing here is decided by. The value was the default, the source that of the broker's."""
    create(client, new_topic("t"))
    assert alter(client, BROKER, "", (of_brokers, SET, text)) == (0, None)
    (entry,) = describe(client, TOPIC, "t", [of_topics]).configs
    assert (entry.value, entry.config_source) == (text, 3)
    assert (entry.synonyms[0].name, entry.synonyms[0].value) == (of_brokers, text)


def test_named_options_only_and_words_on_request(client):
    create(client, new_topic("t"))
    (entry,) = describe(client, TOPIC, "t", ["retention.ms", "nothing"], documentation=True, synonyms=False).configs
    assert entry.name == "retention.ms"
    assert "segments" in entry.documentation
    assert entry.synonyms == []


def test_options_are_listed_in_the_order_of_kafkas_map(client):
    create(client, new_topic("t", **{"internal_segment_bytes": "1048576"}))
    topic, broker, group = (
        [entry.name for entry in describe(client, kind, name).configs]
        for kind, name in ((TOPIC, "t"), (BROKER, "1"), (GROUP, "g"))
    )
    assert topic[:4] == [
        "internal.segment.bytes",  # Kafka lists what is not shown of other topics ahead of the map
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
    ]
    for bucket in (
        ["segment.bytes", "retention.ms", "compression.gzip.level"],
        ["flush.messages", "compression.zstd.level"],
        ["max.compaction.lag.ms", "file.delete.delay.ms"],
        ["retention.bytes", "delete.retention.ms"],
    ):
        assert topic[topic.index(bucket[0]) :][: len(bucket)] == bucket
    at = broker.index("log.cleaner.min.compaction.lag.ms")
    assert broker[at + 1 : at + 3] == ["offsets.topic.num.partitions", "sasl.oauthbearer.jwks.endpoint.refresh.ms"]
    assert group[:3] == ["consumer.session.timeout.ms", "consumer.assignment.interval.ms", "share.auto.offset.reset"]


def test_this_brokers_options_know_what_was_given(client):
    entries = {entry.name: entry for entry in describe(client, BROKER, "1").configs}
    assert len(entries) >= 330
    assert (entries["num.partitions"].value, entries["num.partitions"].config_source) == ("2", 4)
    assert entries["num.partitions"].read_only
    assert not entries["log.retention.ms"].read_only
    assert entries["ssl.keystore.password"].is_sensitive
    assert entries["ssl.keystore.password"].value is None


def test_an_option_of_the_broker_shows_the_cluster_and_the_default_behind_it(client):
    alter(client, BROKER, "", ("log.retention.ms", SET, "7"))
    alter(client, BROKER, "1", ("log.retention.ms", SET, "8"))
    create(client, new_topic("t"))
    (entry,) = describe(client, TOPIC, "t", ["retention.ms"]).configs
    assert (entry.value, entry.config_source) == ("8", 2)
    assert [(one.value, one.source) for one in entry.synonyms] == [("8", 2), ("7", 3), ("168", 5)]
    assert option(client, BROKER, "", "log.retention.ms") == ("7", 3)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "b/ad", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_cannot_be_is_an_error(client, kind, name, code):
    result = describe(client, kind, name)
    assert (result.error_code, result.configs) == (code, [])


def test_groups_metrics_and_loggers_have_options_without_existing(client):
    assert option(client, GROUP, "g", "consumer.session.timeout.ms") == ("45000", 5)
    assert option(client, METRICS, "m", "interval.ms") == ("300000", 5)
    assert "root" in [entry.name for entry in describe(client, LOGGER, "1").configs]


def test_options_that_stand_in_for_each_other_are_synonyms(client):
    alter(client, BROKER, "1", ("log.roll.ms", SET, "3600000"))
    (entry,) = describe(client, BROKER, "1", ["log.roll.ms"]).configs
    found = [(one.name, one.value, one.source) for one in entry.synonyms]
    assert found == [("log.roll.ms", "3600000", 2), ("log.roll.hours", "168", 5)]


def test_a_resource_that_is_named_often_is_read_once(client, monkeypatch):
    """A broker's options take milliseconds: a request of 20 KB would keep the others waiting for seconds."""
    read = []
    entries_of = config_entries.broker_entries
    monkeypatch.setattr(config_entries, "broker_entries", lambda metadata: read.append(1) or entries_of(metadata))
    resources = [DescribeConfigsResource(resource_type=BROKER, resource_name=name) for name in ("1", "01", "1")]
    resources[2].configuration_keys = ["num.partitions"]
    first, second, third = client.request(DescribeConfigsRequest(resources=resources), 4).results
    assert len(read) == 1
    assert [first.resource_name, second.resource_name] == ["1", "01"]
    assert len(first.configs) >= 330
    assert [one.name for one in first.configs] == [one.name for one in second.configs]
    assert [one.name for one in third.configs] == ["num.partitions"]
