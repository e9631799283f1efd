"""Options that contradict each other: Kafka neither starts with them nor stores them."""

from __future__ import annotations

import pytest

from kafka_shim.config import BROKER_OPTIONS, BrokerConfig, ConfigError
from kafka_shim.config.consistency import _COMPARED

# Each was tried on Apache Kafka, which refuses all.
REFUSED = (
    ("group.consumer.min.heartbeat.interval.ms=9999999", "group.consumer.max.heartbeat.interval.ms .* be greater"),
    ("group.consumer.heartbeat.interval.ms=1", "must be greater than or equal to group.consumer.min.heartbeat"),
    ("group.consumer.heartbeat.interval.ms=16000", "must be less than or equal to group.consumer.max.heartbeat"),
    ("group.consumer.session.timeout.ms=1000", "must be greater than or equal to group.consumer.min.session"),
    (
        "group.consumer.max.heartbeat.interval.ms=50000 group.consumer.heartbeat.interval.ms=46000",
        r"heartbeat.interval.ms \(46000\) must be less than group.consumer.session.timeout.ms \(45000\)",
    ),
    ("group.consumer.assignment.interval.ms=20000", "must be less than or equal to group.consumer.max.assignment"),
    ("group.share.session.timeout.ms=70000", "must be less than or equal to group.share.max.session"),
    ("group.share.record.lock.duration.ms=100000", "group.share.max.record.lock.duration.ms .* must be greater"),
    ("group.share.max.share.sessions=10", "must be greater than or equal to group.share.max.size"),
    ("group.streams.num.standby.replicas=3", "must be less than or equal to group.streams.max.standby.replicas"),
    ("group.coordinator.rebalance.protocols=consumer", "Disabling the 'classic' protocol is not supported"),
    ("group.consumer.assignors=bogus", "bogus is none of the assignors here"),
    ("group.share.assignors=no.such.Class", "Class no.such.Class cannot be found"),
    (
        "group.share.assignors=simple,org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
        "must contain exactly one assignor, but found 2",
    ),
    ("broker.id=1 node.id=2", "You must set `node.id` to the same value as `broker.id`"),
    ("log.cleaner.threads=0", "threads should be at least 1"),
    ("queued.max.request.bytes=1000", "must be larger or equal to socket.request.max.bytes"),
    ("group.consumer.assignors=", "an empty list is none of the assignors here"),
    ("replica.fetch.wait.max.ms=40000", "replica.socket.timeout.ms should always be at least"),
    ("replica.fetch.wait.max.ms=29000 replica.lag.time.max.ms=28000", "replica.lag.time.max.ms to prevent"),
    ("controller.quorum.voters=2@h:1", "the node id 1 must be included"),
    ("log.roll.ms=0", "log.roll.ms must be greater"),
    ("log.roll.jitter.ms=-1", "log.roll.jitter.ms must be greater"),
    ("log.retention.ms=0", "log.retention.ms must be unlimited"),
    ("log.retention.minutes=0", "log.retention.ms must be unlimited"),
    ("max.connections.per.ip=0", "can be set to zero only if"),
    ("offsets.topic.compression.codec=7", "Unknown compression type id: 7"),
    ("offsets.topic.compression.codec=-1", "Unknown compression type id: -1"),
    ("share.coordinator.state.topic.compression.codec=5", "Unknown compression type id: 5"),
    ("log.dirs=", "'log.dirs' must not be empty"),
    ("log.dirs=/data,", "'log.dirs' values must not be empty"),
    ("log.dir=,/data", "'log.dir' values must not be empty"),
    ("process.roles=", "'process.roles' must not be empty"),
    ("sasl.oauthbearer.expected.audience=a,,b", "'sasl.oauthbearer.expected.audience' values must not be empty"),
    ("connections.max.idle.ms=100", "=100 should always be less than connections.max.idle.ms=100 to prevent"),
)
ALLOWED = (
    "log.retention.hours=-2",
    "log.retention.ms=-1 log.retention.hours=0",
    "max.connections.per.ip=0 max.connections.per.ip.overrides=127.0.0.1:5",
    "controller.quorum.voters=1@h:1,2@h:2",
    "controller.quorum.voters=2@h:1 process.roles=broker",
    "group.consumer.assignors=range,uniform",
    "group.consumer.heartbeat.interval.ms=15000 group.consumer.session.timeout.ms=60000",
    "log.retention.ms=10 log.local.retention.ms=20",
    "connections.max.idle.ms=101",
    "broker.id=2",
    "broker.id=2 node.id=+2",
    "queued.max.request.bytes=0",
    "queued.max.request.bytes=1000 socket.request.max.bytes=1000",
    "group.share.assignors=org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
    "connections.max.idle.ms=-1",
    "offsets.topic.compression.codec=4",
    "log.dirs=/data,/data",
)


def options_of(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_a_start_with_options_that_contradict_each_other_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.parse(options_of(text))


@pytest.mark.parametrize("text", ALLOWED)
def test_what_is_at_its_limit_starts(text: str) -> None:
    assert BrokerConfig.parse(options_of(text)).given == options_of(text)


def test_assignors_may_be_named_by_their_classes() -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    named = {"group.consumer.assignors": f"{package}.RangeAssignor, {package}.UniformAssignor"}
    config = BrokerConfig.parse(named)
    assert config.group_consumer_assignors == ("range", "uniform")
    assert config.given == named
    assert BrokerConfig.parse({"group.consumer.assignors": "range"}).group_consumer_assignors == ("range",)


def test_each_default_is_within_the_others() -> None:
    everything = {name: BROKER_OPTIONS[name].default or "" for row in _COMPARED for name in (row[0], row[2])}
    assert len(everything) > 30
    assert BrokerConfig.parse(everything).given == everything
