"""Every option of Kafka's, known and unknown, altered at every level; the directory opens again after.

`compat_tests` compares the answers with Apache Kafka's.
"""

from __future__ import annotations

import logging

import pytest

from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    QUOTA_OPTIONS,
    TOPIC_OPTIONS,
)
from kafka_shim.errors import KafkaError
from kafka_shim.metadata.config_entries import (
    broker_entries,
    client_metrics_entries,
    cluster_entries,
    group_entries,
    topic_entries,
)
from kafka_shim.metadata.configs import SET, decide_incremental
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_TOPIC
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.metadata.opened import opened

UNKNOWN = ("invalid", "a.name.of.a.later.version", "leader.replication.throttled.rat")
LEVELS = {
    "topic": (RESOURCE_TOPIC, "t", TOPIC_OPTIONS),
    "broker": (RESOURCE_BROKER, "1", {**BROKER_OPTIONS, **QUOTA_OPTIONS}),
    "all-brokers": (RESOURCE_BROKER, "", {**BROKER_OPTIONS, **QUOTA_OPTIONS}),
    "group": (RESOURCE_GROUP, "g", GROUP_OPTIONS),
    "client-metrics": (RESOURCE_CLIENT_METRICS, "m", CLIENT_METRICS_OPTIONS),
}
SAMPLES = {
    **{"INT": "1", "SHORT": "1", "LONG": "1000000", "DOUBLE": "0.5", "BOOLEAN": "true"},
    **{"STRING": "a", "LIST": "a", "CLASS": "a", "PASSWORD": "a"},
}


def entries(store):
    """All that DescribeConfigs shows."""
    shown = [broker_entries(store), cluster_entries(store)]
    shown += [topic_entries(store, "t"), group_entries(store, "g"), client_metrics_entries(store, "m")]
    return [[(one.name, one.value, one.source, one.read_only) for one in some] for some in shown]


def facts(store):
    config = {name: value for name, value in vars(store.config).items() if name not in ("warnings", "log_dirs")}
    topic = store.topic_config("t")
    options = {name: getattr(topic, name) for name in topic.__slots__}
    return dict(store.image.configs), config, options, entries(store)


def values_of(table, option):
    row = table.get(option)
    return ["2"] if row is None else [row.default or SAMPLES[row.kind], SAMPLES[row.kind], "?", ""]


@pytest.mark.parametrize("level", LEVELS)
def test_no_option_of_any_level_stops_the_next_start(tmp_path, level):
    kind, name, table = LEVELS[level]
    stored = set()
    with opened(tmp_path) as store:
        store.create_topic("t")
        for option in (*table, *UNKNOWN):
            for value in values_of(table, option):
                try:
                    records = decide_incremental(store, kind, name, [(option, SET, value)])
                except KafkaError:
                    continue
                store.alter_configs(records)
                stored.add(option)
        before = facts(store)
    with opened(tmp_path) as store:
        assert facts(store) == before
    if kind == RESOURCE_BROKER:
        assert set(UNKNOWN) | QUOTA_OPTIONS.keys() <= stored
    assert stored


def test_options_that_another_version_stored_are_ignored_and_said(tmp_path, caplog):
    """Kafka's controller checks less of a broker's options than a broker does: all of these may be in its log."""
    strange = [
        (RESOURCE_BROKER, "", "num.partitions", "7"),
        (RESOURCE_BROKER, "", "log.retention.ms", "soon"),
        (RESOURCE_BROKER, "", "cordoned.log.dirs", "/nowhere"),
        (RESOURCE_BROKER, "1", "ssl.keystore.location", "/keystore"),
        (RESOURCE_BROKER, "1", "max.connections.per.ip.overrides", "a:b"),
        (RESOURCE_BROKER, "1", "listener.name.external.ssl.keystore.location", "/keystore"),
        (RESOURCE_BROKER, "1", "listener.name.external.ssl.client.auth", "perhaps"),
        (RESOURCE_BROKER, "7", "log.retention.ms", "5"),
        (RESOURCE_TOPIC, "t", "retention.ms", "soon"),
        (RESOURCE_TOPIC, "t", "segment.bytes", "14"),
        (RESOURCE_TOPIC, "t", "message.format.version", "3.0"),
        (RESOURCE_GROUP, "g", "some.later.option", "1"),
        (RESOURCE_CLIENT_METRICS, "m", "interval.ms", "often"),
        (77, "x", "y", "z"),
    ]
    with opened(tmp_path) as store:
        store.create_topic("t")
        store.commit(
            [
                ConfigRecord(resource_type=kind, resource_name=name, name=option, value=value)
                for kind, name, option, value in strange
            ]
        )
    caplog.set_level(logging.WARNING)
    with opened(tmp_path) as store:
        assert store.config.num_partitions == 1
        assert store.config.log_retention_ms == 604800000
        assert store.topic_config("t").retention_ms == 604800000
        assert store.topic_config("t").segment_bytes == 14
        entries(store)
        assert store.image.config_of(77, "x") == {"y": "z"}
    ignored = [record.getMessage().partition(",")[0] for record in caplog.records if "is ignored" in record.message]
    assert sorted(ignored) == [
        "cordoned.log.dirs",
        "listener.name.external.ssl.client.auth",
        "log.retention.ms",
        "max.connections.per.ip.overrides",
        "num.partitions",
        "retention.ms",
        "ssl.keystore.location",
    ]


def test_an_option_of_a_listener_is_described_with_that_of_all_listeners(tmp_path):
    """Also of a listener that does not exist (yet). A password stays hidden."""
    own = "listener.name.internal."
    with opened(tmp_path) as store:
        for name, value in (("ssl.keystore.location", "/key"), ("ssl.keystore.password", "secret"), ("other", "x")):
            store.alter_configs(decide_incremental(store, RESOURCE_BROKER, "1", [(own + name, SET, value)]))
        described = {entry.name: entry for entry in broker_entries(store) if entry.name.startswith(own)}
    location = described[f"{own}ssl.keystore.location"]
    assert (location.value, location.read_only, location.is_sensitive) == ("/key", True, False)
    assert [(one.name, one.value) for one in location.synonyms] == [(location.name, "/key")]
    assert [described[own + name].value for name in ("ssl.keystore.password", "other")] == [None, None]


IDLE = {
    "topic": ("preallocate", "true"),
    "broker": ("num.io.threads", "5"),
    "all-brokers": ("leader.replication.throttled.rate", "7"),
}


@pytest.mark.parametrize("level", IDLE)
def test_an_option_without_effect_is_named_when_it_is_altered(tmp_path, caplog, level):
    kind, name, table = LEVELS[level]
    option, value = IDLE[level]
    with opened(tmp_path) as store:
        store.create_topic("t")
        store.alter_configs(decide_incremental(store, kind, name, [(option, SET, table[option].default)]))
        assert "without effect" not in caplog.text
        store.alter_configs(decide_incremental(store, kind, name, [(option, SET, value)]))
    lines = [record.getMessage() for record in caplog.records if "without effect" in record.getMessage()]
    resource = {"broker": "broker 1", "all-brokers": "broker"}
    assert lines == [f"without effect here: {option} of {resource.get(level, f'{level} {name}')}"]


def test_an_option_without_effect_is_named_when_a_topic_is_created_with_it(tmp_path, caplog):
    with opened(tmp_path) as store:
        store.create_topics([("t", [[1]], {"preallocate": "true", "retention.ms": "5"})])
    assert "without effect here: preallocate of topic t" in caplog.messages
