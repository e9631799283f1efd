"""Admin requests, good and bad, in all their versions: the shim's answer is Apache Kafka's, sentences included."""

from __future__ import annotations

import pytest

from kafka_shim.api.broker_loggers import KAFKA_NAMES
from kafka_shim.compat.tests.admin.compare import Pair
from kafka_shim.protocol.messages import alter_configs_request as replace
from kafka_shim.protocol.messages import alter_partition_reassignments_request as reassign
from kafka_shim.protocol.messages import create_partitions_request as grow
from kafka_shim.protocol.messages import create_topics_request as create
from kafka_shim.protocol.messages import delete_records_request as purge
from kafka_shim.protocol.messages import delete_topics_request as delete
from kafka_shim.protocol.messages import describe_configs_request as describe
from kafka_shim.protocol.messages import describe_quorum_request as quorum
from kafka_shim.protocol.messages import describe_topic_partitions_request as paged
from kafka_shim.protocol.messages import elect_leaders_request as elect
from kafka_shim.protocol.messages import incremental_alter_configs_request as alter
from kafka_shim.protocol.messages import list_config_resources_request as resources
from kafka_shim.protocol.messages import list_partition_reassignments_request as moving
from kafka_shim.protocol.messages import sasl_authenticate_request as authenticate
from kafka_shim.protocol.messages import sasl_handshake_request as handshake
from kafka_shim.protocol.messages import update_features_request as features
from kafka_shim.targets.waiting import wait_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.targets import Target

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture(scope="module")
def pair(shim: Target, kafka: Target) -> Iterator[Pair]:
    """Both brokers with the topics that the cases are about."""
    both = Pair(shim.bootstrap, kafka.bootstrap)
    made = create.CreateTopicsRequest(
        topics=[topic("known_a", partitions=2, configs={"retention.ms": "1000"}), topic("known.b")], timeout_ms=10000
    )
    assert both.ask(made, [7]) == []
    yield both
    both.close()


def topic(name, partitions=1, factor=1, assignments=(), configs=None):
    return create.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            create.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[create.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


CREATIONS = {
    "plain": [topic("x")],
    "defaults": [topic("x", -1, -1)],
    "no partitions": [topic("x", 0)],
    "negative partitions": [topic("x", -2)],
    "no replicas": [topic("x", 1, 0)],
    "three replicas": [topic("x", 1, 3)],
    "bad names": [topic(name) for name in ("", ".", "..", "a" * 250, "a b", "__cluster_metadata", "ok")],
    "twice": [topic("x"), topic("x"), topic("y")],
    "collisions": [topic(name) for name in ("known.a", "known_b", "known_a", "known..", "known_a ")],
    "too many": [topic("x", 10001), topic("y")],
    "assigned": [topic("x", -1, -1, [(1, [1]), (0, [1])])],
    "assigned with a count": [topic("x", 1, -1, [(0, [1])])],
    "assigned with a factor": [topic("x", -1, 1, [(0, [1])])],
    "assigned twice": [topic("x", -1, -1, [(0, [1]), (0, [1])])],
    "assigned with a hole": [topic("x", -1, -1, [(1, [1])])],
    "assigned to nobody": [topic("x", -1, -1, [(0, [])])],
    "assigned to a stranger": [topic("x", -1, -1, [(0, [2])])],
    "assigned to one twice": [topic("x", -1, -1, [(0, [1, 1])])],
}


@pytest.mark.parametrize("case", CREATIONS)
def test_create_topics(pair, case):
    request = create.CreateTopicsRequest(topics=CREATIONS[case], timeout_ms=10000, validate_only=True)
    assert pair.ask(request, range(2, 8)) == []


OPTIONS = [
    ("retention.ms", "abc"),
    ("retention.ms", "-2"),
    ("retention.ms", None),
    ("retention.ms", " 100 "),
    ("retention.ms", ""),
    ("retention.ms", "1_000"),
    ("foo", "1"),
    ("compression.type", "zip"),
    ("compression.type", "GZIP"),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "10"),
    ("compression.zstd.level", "23"),
    ("cleanup.policy", "x"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "compact, delete"),
    ("cleanup.policy", "compact,compact"),
    ("cleanup.policy", ""),
    ("segment.bytes", "1"),
    ("segment.bytes", "99999999999"),
    ("internal.segment.bytes", "1000"),
    ("min.cleanable.dirty.ratio", "2"),
    ("min.cleanable.dirty.ratio", "x"),
    ("min.cleanable.dirty.ratio", "1e-5"),
    ("unclean.leader.election.enable", "yes"),
    ("preallocate", "TRUE"),
    ("remote.storage.enable", "true"),
    ("message.timestamp.type", "x"),
    ("leader.replication.throttled.replicas", "x"),
    ("leader.replication.throttled.replicas", "0:1,1:1"),
    ("leader.replication.throttled.replicas", "*"),
    ("retention.bytes", "1.5"),
    ("min.insync.replicas", "0"),
    ("min.insync.replicas", "2"),
    ("max.compaction.lag.ms", "0"),
    ("index.interval.bytes", "-1"),
    ("max.message.bytes", "-1"),
    ("segment.index.bytes", "3"),
]


@pytest.mark.parametrize(("option", "value"), OPTIONS)
def test_options_of_a_new_topic(pair, option, value):
    request = create.CreateTopicsRequest(
        topics=[topic("x", configs={option: value})], timeout_ms=10000, validate_only=True
    )
    assert pair.ask(request, [7]) == []


def test_options_of_a_new_topic_that_contradict_each_other(pair):
    configs = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    request = create.CreateTopicsRequest(topics=[topic("x", configs=configs)], timeout_ms=10000, validate_only=True)
    assert pair.ask(request, [7]) == []


GROWTHS = {
    "as many": [("known_a", 2, None)],
    "fewer": [("known_a", 1, None)],
    "more": [("known_a", 3, None)],
    "none": [("known_a", 0, None)],
    "negative": [("known_a", -5, None)],
    "unknown topic": [("nope", 3, None)],
    "too few assignments": [("known_a", 4, [[1]])],
    "assigned": [("known_a", 4, [[1], [1]])],
    "assigned to a stranger": [("known_a", 3, [[2]])],
    "assigned to nobody": [("known_a", 3, [[]])],
    "no assignment": [("known_a", 3, [])],
    "twice": [("known_a", 3, None), ("known_a", 4, None)],
}


@pytest.mark.parametrize("case", GROWTHS)
def test_create_partitions(pair, case):
    request = grow.CreatePartitionsRequest(
        topics=[
            grow.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [grow.CreatePartitionsAssignment(broker_ids=one) for one in assignments],
            )
            for name, count, assignments in GROWTHS[case]
        ],
        timeout_ms=1000,
        validate_only=True,
    )
    assert pair.ask(request, range(4)) == []


@pytest.mark.parametrize(
    ("name", "partition", "offset"),
    [("known_a", 0, 0), ("known_a", 0, -1), ("known_a", 0, 1), ("known_a", 0, -2), ("known_a", 9, 0), ("nope", 0, 0)],
)
def test_delete_records(pair, name, partition, offset):
    part = purge.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = purge.DeleteRecordsRequest(
        topics=[purge.DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=1000
    )
    assert pair.ask(request, range(3)) == []


def ask_to_describe(pair, kind, name, keys=None, versions=range(1, 5), synonyms=True):
    resource = describe.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = describe.DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    return pair.ask(request, versions)


@pytest.mark.parametrize(
    ("kind", "name", "keys"),
    [
        (TOPIC, "known_a", None),
        (TOPIC, "known_a", []),
        (TOPIC, "known_a", ["retention.ms", "foo"]),
        (TOPIC, "nope", None),
        (TOPIC, "bad name", None),
        (TOPIC, "", None),
        (BROKER, "", None),
        (BROKER, "7", None),
        (BROKER, "x", None),
        (LOGGER, "", None),
        (LOGGER, "7", None),
        (METRICS, "m", None),
        (METRICS, "", None),
        (GROUP, "g", None),
        (GROUP, "", None),
        (3, "x", None),
        (0, "x", None),
    ],
)
def test_describe_configs(pair, kind, name, keys):
    assert ask_to_describe(pair, kind, name, keys) == []


# What differs between any two brokers, and what makes Kafka one with a controller.
OWN = (
    "advertised.listeners",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "controlled.shutdown.enable",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",  # docs/differences.md
    "listeners",
    "log.dirs",
    "socket.listen.backlog.size",  # docs/differences.md
)


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "known_a"), (BROKER, "1"), (GROUP, "g"), (METRICS, "sub")])
def test_the_order_of_described_options(pair, kind, name):
    resource = describe.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = describe.DescribeConfigsRequest(resources=[resource])
    ours, theirs = (
        [one.name for one in side.request(request, 4).results[0].configs] for side in (pair.shim, pair.kafka)
    )
    assert [one for one in ours if one not in OWN] == [one for one in theirs if one not in OWN]


def test_describe_configs_of_this_broker(pair):
    found = ask_to_describe(pair, BROKER, "1", versions=[4])
    assert [line for line in found if not any(f"[{name}]" in line for name in OWN)] == []


ALTERATIONS = [
    (TOPIC, "known_a", [("retention.ms", SET, "5")]),
    (TOPIC, "known_a", [("retention.ms", SET, "x")]),
    (TOPIC, "known_a", [("retention.ms", SET, None)]),
    (TOPIC, "known_a", [("retention.ms", DELETE, None)]),
    (TOPIC, "known_a", [("retention.ms", APPEND, "5")]),
    (TOPIC, "known_a", [("retention.ms", SUBTRACT, "5")]),
    (TOPIC, "known_a", [("retention.ms", 7, "5")]),
    (TOPIC, "known_a", [("retention.ms", SET, "5"), ("retention.ms", SET, "6")]),
    (TOPIC, "known_a", [("cleanup.policy", APPEND, "compact")]),
    (TOPIC, "known_a", [("cleanup.policy", APPEND, "foo")]),
    (TOPIC, "known_a", [("cleanup.policy", SUBTRACT, "delete")]),
    (TOPIC, "known_a", [("cleanup.policy", SUBTRACT, "compact")]),
    (TOPIC, "known_a", [("foo", SET, "1")]),
    (TOPIC, "known_a", [("foo", DELETE, None)]),
    (TOPIC, "known_a", [("foo", APPEND, "1")]),
    (TOPIC, "known_a", [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")]),
    # Of several that are wrong the answer names one, which is not the first in the request.
    (TOPIC, "known_a", [("cleanup.policy", SET, "foo"), ("segment.ms", SET, "")]),
    (TOPIC, "known_a", [("retention.ms", SET, "x"), ("zzz", SET, "1")]),
    (TOPIC, "known_a", [("foo", SET, "1"), ("bar", SET, "1"), ("zzz", SET, "1")]),
    (TOPIC, "known_a", []),
    (TOPIC, "nope", [("retention.ms", SET, "5")]),
    (TOPIC, "nope", [("foo", SET, "5")]),
    (TOPIC, "", [("retention.ms", SET, "5")]),
    (TOPIC, "bad name", [("retention.ms", SET, "5")]),
    *(
        (BROKER, name, [change])
        for name in ("1", "", "2", "x", "-1")
        for change in (
            ("num.partitions", SET, "3"),
            ("log.retention.ms", SET, "5"),
            ("log.retention.ms", SET, "x"),
            ("log.retention.ms", DELETE, None),
            ("log.retention.ms", APPEND, "3"),
            ("log.retention.hours", SET, "5"),
            ("log.cleanup.policy", APPEND, "compact"),
            ("min.insync.replicas", SET, "2"),
            ("min.insync.replicas", DELETE, None),
            ("foo.bar", SET, "1"),
            ("foo", APPEND, "3"),
            ("ssl.keystore.location", SET, "/x"),
            ("log.cleaner.threads", SET, "2"),
            ("background.threads", SET, "0"),
            ("background.threads", SET, "21"),
            ("num.io.threads", SET, "3"),
            ("num.network.threads", SET, "7"),
            ("log.cleaner.threads", SET, "128"),
            ("log.cleaner.dedupe.buffer.size", SET, "1048576"),
            ("message.max.bytes", 9, "0"),
            ("max.connections", SET, "5"),
            ("cordoned.log.dirs", SET, "/x"),
            ("compression.type", SET, "zip"),
        )
    ),
    *(
        (BROKER, name, [(option, SET, "x") for option in options])
        for name in ("1", "")
        for options in (
            ("log.retention.ms", "background.threads"),
            ("transaction.state.log.num.partitions", "group.streams.max.size", "max.request.partition.size.limit"),
        )
    ),
    *(
        (BROKER, name, [(f"sasl.kerberos.{option}", SET, value)])
        for name in ("1", "")
        for option, value in (
            ("kinit.cmd", "/x"),
            ("service.name", "kafka"),
            ("min.time.before.relogin", "5"),
            ("min.time.before.relogin", "x"),
            ("ticket.renew.jitter", "-1"),
            ("principal.to.local.rules", "nonsense"),
        )
    ),
    (METRICS, "sub", [("interval.ms", SET, "5")]),
    (METRICS, "sub", [("interval.ms", SET, "500")]),
    (METRICS, "sub", [("interval.ms", SET, "x")]),
    (METRICS, "sub", [("match", SET, "client_id=a")]),
    (METRICS, "sub", [("match", SET, "foo")]),
    (METRICS, "sub", [("match", SET, "foo=a")]),
    (METRICS, "sub", [("metrics", APPEND, "a.b")]),
    (METRICS, "sub", [("metrics", SET, "*")]),
    (METRICS, "sub", [("zzz", SET, "1")]),
    (METRICS, "sub", [("zzz", SET, "1"), ("foo", SET, "1"), ("bar", SET, "1")]),
    (METRICS, "", [("metrics", SET, "*")]),
    *(
        (GROUP, "g", [(name, SET, value)])
        for name, value in (
            ("consumer.session.timeout.ms", "50000"),
            ("consumer.session.timeout.ms", "1"),
            ("consumer.session.timeout.ms", "100000"),
            ("consumer.heartbeat.interval.ms", "100"),
            ("consumer.heartbeat.interval.ms", "14000"),
            ("consumer.assignment.interval.ms", "99999"),
            ("share.auto.offset.reset", "foo"),
            ("share.auto.offset.reset", "earliest"),
            ("share.auto.offset.reset", "by_duration:PT1H"),
            ("share.record.lock.duration.ms", "5"),
            ("share.delivery.count.limit", "11"),
            ("share.isolation.level", "x"),
            ("streams.num.standby.replicas", "5"),
            ("streams.session.timeout.ms", "x"),
            ("zzz", "1"),
        )
    ),
    (GROUP, "g", [("share.heartbeat.interval.ms", SET, "x"), ("share.session.timeout.ms", SET, "x")]),
    (GROUP, "g", [("streams.heartbeat.interval.ms", SET, "-5"), ("share.auto.offset.reset", SET, "foo")]),
    (GROUP, "g", [("zzz", SET, "1"), ("foo", SET, "1"), ("bar", SET, "1")]),
    (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]),
    (LOGGER, "1", [("root", SET, "INFO")]),
    (LOGGER, "1", [("no.such", SET, "INFO")]),
    (LOGGER, "1", [("kafka.server.KafkaApis", SET, "DEBUG")]),
    (LOGGER, "1", [("kafka.server.KafkaApis", DELETE, None)]),
    (LOGGER, "1", [("org.apache.kafka.storage.internals.log.LogCleaner", SET, "LOUD")]),
    (LOGGER, "1", [("root", SET, "XX")]),
    (LOGGER, "1", [("root", DELETE, None)]),
    (LOGGER, "1", [("root", APPEND, "INFO")]),
    (LOGGER, "2", [("root", SET, "INFO")]),
    (LOGGER, "", [("root", SET, "INFO")]),
    (LOGGER, "x", [("root", SET, "INFO")]),
    (3, "x", [("a", SET, "b")]),
    (0, "x", [("a", SET, "b")]),
    (99, "x", [("a", SET, "b")]),
]


def alteration(kind, name, changes, *, validate_only=True):
    configs = [
        alter.AlterableConfig(name=option, config_operation=operation, value=value)
        for option, operation, value in changes
    ]
    resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return alter.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _brief(case):
    kind, name, changes = case
    return f"{kind}-{name}-" + ",".join(
        f"{option}:{operation}:{str(value)[:12]}" for option, operation, value in changes
    )


@pytest.mark.parametrize("case", ALTERATIONS, ids=_brief)
def test_incremental_alter_configs(pair, case):
    assert pair.ask(alteration(*case), range(2)) == []


def test_a_resource_that_comes_twice(pair):
    one = alteration(TOPIC, "known_a", [("retention.ms", SET, "1")]).resources
    request = alter.IncrementalAlterConfigsRequest(resources=one * 2, validate_only=True)
    assert pair.ask(request, range(2)) == []


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        (TOPIC, "known_a", [("retention.ms", "7")]),
        (TOPIC, "known_a", [("retention.ms", None)]),
        (TOPIC, "known_a", [("retention.ms", "1"), ("retention.ms", "2")]),
        (TOPIC, "known_a", [("foo", "1")]),
        (TOPIC, "known_a", []),
        (TOPIC, "nope", [("retention.ms", "7")]),
        (BROKER, "1", [("log.retention.ms", "5")]),
        (BROKER, "1", [("num.partitions", "5")]),
        (BROKER, "1", [("sasl.kerberos.service.name", "kafka")]),
        (BROKER, "", [("log.retention.ms", "5")]),
        (METRICS, "s", [("interval.ms", "500")]),
        (GROUP, "g", [("consumer.session.timeout.ms", "50000")]),
        (LOGGER, "1", [("root", "INFO")]),
        (3, "x", [("a", "b")]),
    ],
)
def test_alter_configs(pair, kind, name, options):
    configs = [replace.AlterableConfig(name=option, value=value) for option, value in options]
    resource = replace.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    assert pair.ask(replace.AlterConfigsRequest(resources=[resource], validate_only=True), range(3)) == []


def test_altered_options_are_described_alike_with_all_that_stands_behind_them(pair):
    changes = [
        (TOPIC, "known.b", [("max.message.bytes", SET, "2000"), ("cleanup.policy", APPEND, "compact")]),
        (BROKER, "1", [("log.retention.ms", SET, "123456"), ("message.max.bytes", SET, "2000000")]),
        (BROKER, "", [("log.retention.ms", SET, "999"), ("log.segment.bytes", SET, "20000000")]),
        (METRICS, "sub", [("interval.ms", SET, "1000")]),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
    ]
    keys = [
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "message.max.bytes",
        "num.partitions",
    ]
    found = []
    for kind, name, change in changes:
        found += pair.ask(alteration(kind, name, change, validate_only=False), [1])
    try:
        wait_until_described(pair.kafka, "known.b", "cleanup.policy", "delete,compact")
        wait_until_described(pair.kafka, "known_a", "segment.bytes", "20000000")
        for name in ("known_a", "known.b"):
            found += ask_to_describe(pair, TOPIC, name)
        found += ask_to_describe(pair, BROKER, "", versions=[4])
        found += ask_to_describe(pair, BROKER, "1", keys, versions=[4])
        found += ask_to_describe(pair, METRICS, "sub", versions=[4])
        found += ask_to_describe(pair, GROUP, "g", versions=[4])
        found += pair.ask(resources.ListConfigResourcesRequest(resource_types=[METRICS, GROUP]), [1])
        found += pair.ask(resources.ListConfigResourcesRequest(), [0])
        made = create.CreateTopicsRequest(
            topics=[topic("x", configs={"retention.bytes": "5"})], timeout_ms=10000, validate_only=True
        )
        found += pair.ask(made, [7])
    finally:
        for kind, name, change in changes[1:]:
            undone = [(option, DELETE, None) for option, _, _ in change]
            found += pair.ask(alteration(kind, name, undone, validate_only=False), [1])
    assert found == []


def wait_until_described(connection, name, option, value):
    """Kafka's controller answers before its broker has applied the record."""
    resource = describe.DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[option])
    asked = describe.DescribeConfigsRequest(resources=[resource])
    wait_until(
        lambda: connection.request(asked, 4).results[0].configs[0].value == value,
        f"{option} of {name} is {value}",
    )


@pytest.mark.parametrize(("types", "version"), [([3], 1), ([BROKER, LOGGER], 1)])
def test_list_config_resources(pair, types, version):
    assert pair.ask(resources.ListConfigResourcesRequest(resource_types=types), [version]) == []


@pytest.mark.parametrize(
    "updates",
    [
        [],
        [("group.version", 1, 1)],
        [("group.version", 2, 1)],
        [("group.version", 0, 1)],
        [("group.version", 0, 2)],
        [("group.version", 0, 3)],
        [("group.version", 0, 0)],
        [("group.version", 0, 9)],
        [("no.such", 1, 1)],
        [("no.such", 0, 1)],
        [("group.version", 1, 1), ("no.such", 1, 1)],
        [("metadata.version", 30, 1)],
        [("metadata.version", 31, 1)],
        [("metadata.version", 29, 1)],
        [("metadata.version", 29, 2)],
        [("metadata.version", 29, 3)],
        [("metadata.version", 5, 2)],
        [("transaction.version", 3, 1)],
        [("transaction.version", -1, 1)],
        [("kraft.version", 0, 1)],
        [("kraft.version", 1, 1)],
        [("kraft.version", 1, 2)],
        [("kraft.version", 1, 3)],
        [("kraft.version", 2, 1)],
        [("eligible.leader.replicas.version", 0, 2)],
    ],
)
def test_update_features(pair, updates):
    keys = [
        features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    assert pair.ask(features.UpdateFeaturesRequest(feature_updates=keys, validate_only=True), [1, 2]) == []


@pytest.mark.parametrize("topics", [[], ["foo"]])
def test_describe_quorum_of_another_partition(pair, topics):
    wanted = [quorum.TopicData(topic_name=name, partitions=[quorum.PartitionData()]) for name in topics]
    assert pair.ask(quorum.DescribeQuorumRequest(topics=wanted), range(3)) == []


@pytest.mark.parametrize("names", [["nope", "nope2"], ["nope", "nope", "known_a", "known_a"]])
def test_delete_topics_by_name(pair, names):
    assert pair.ask(delete.DeleteTopicsRequest(topic_names=names, timeout_ms=1000), range(1, 6)) == []


def test_delete_topics_by_name_or_id(pair):
    states = [
        delete.DeleteTopicState(name="nope"),
        delete.DeleteTopicState(topic_id=b"z" * 16),
        delete.DeleteTopicState(),
        delete.DeleteTopicState(name="known_a", topic_id=b"z" * 16),
        delete.DeleteTopicState(topic_id=b"y" * 16),
        delete.DeleteTopicState(topic_id=b"y" * 16),
    ]
    assert pair.ask(delete.DeleteTopicsRequest(topics=states, timeout_ms=1000), [6]) == []


def test_a_deleted_topic_is_gone(pair):
    made = create.CreateTopicsRequest(topics=[topic("short.lived")], timeout_ms=10000)
    gone = delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name="short.lived")], timeout_ms=10000)
    assert pair.ask(made, [7]) + pair.ask(gone, [6]) + pair.ask(gone, [6]) + pair.ask(made, [7]) == []


@pytest.mark.parametrize("kind", [0, 1, 5])
@pytest.mark.parametrize(("name", "partition"), [("known_a", 0), ("known_a", 9), ("nope", 0)])
def test_elect_leaders(pair, kind, name, partition):
    wanted = [elect.TopicPartitions(topic=name, partitions=[partition])]
    request = elect.ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=5000)
    assert pair.ask(request, [1, 2] if kind else range(3)) == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize("topics", [None, [], ["known_a", "nope"]])
def test_an_election_without_time(pair, timeout_ms, topics):
    wanted = None if topics is None else [elect.TopicPartitions(topic=name, partitions=[0]) for name in topics]
    request = elect.ElectLeadersRequest(topic_partitions=wanted, timeout_ms=timeout_ms)
    assert pair.ask(request, range(3)) == []


@pytest.mark.parametrize("topics", [None, []])
def test_an_election_of_all_or_none(pair, topics):
    assert pair.ask(elect.ElectLeadersRequest(topic_partitions=topics, timeout_ms=5000), range(3)) == []


@pytest.mark.parametrize("names", [[""], ["", "known_a"], [" "], ["a/b", "known_a"]])
@pytest.mark.parametrize("cursor", [None, "", "known_a"])
def test_describe_topic_partitions_of_strange_names(pair, names, cursor):
    first = None if cursor is None else paged.Cursor(topic_name=cursor, partition_index=0)
    topics = [paged.TopicRequest(name=name) for name in names]
    request = paged.DescribeTopicPartitionsRequest(topics=topics, cursor=first)
    assert pair.ask(request, [0]) == []


@pytest.mark.parametrize(
    ("name", "partition", "replicas"),
    [
        ("known_a", 0, [1]),
        ("known_a", 0, None),
        ("known_a", 0, []),
        ("known_a", 0, [2]),
        ("known_a", 0, [1, 1]),
        ("known_a", 0, [1, 2]),
        ("known_a", 9, [1]),
        ("nope", 0, [1]),
    ],
)
def test_alter_partition_reassignments(pair, name, partition, replicas):
    target = reassign.ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [reassign.ReassignableTopic(name=name, partitions=[target])]
    request = reassign.AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000)
    assert pair.ask(request, range(2)) == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_reassignment_without_time(pair, timeout_ms):
    target = reassign.ReassignablePartition(partition_index=0, replicas=[1])
    topics = [reassign.ReassignableTopic(name="known_a", partitions=[target])]
    request = reassign.AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=timeout_ms)
    assert pair.ask(request, range(2)) == []


def test_levels_set_by_kafkas_names_are_described_alike(pair):
    parent, child = "org.apache.kafka.storage.internals.log.LogCleaner", "kafka.server.KafkaApis"
    found = pair.ask(alteration(LOGGER, "1", [(child, SET, "TRACE")], validate_only=False), [1])
    try:
        found += ask_to_describe(pair, LOGGER, "1", [parent, child])
    finally:
        found += pair.ask(alteration(LOGGER, "1", [(child, DELETE, None)], validate_only=False), [1])
    found += ask_to_describe(pair, LOGGER, "1", [parent, child])
    assert found == []


def test_kafka_has_a_logger_of_every_name_that_is_said_to_be_its(pair):
    resource = describe.DescribeConfigsResource(resource_type=LOGGER, resource_name="1")
    answer = pair.kafka.request(describe.DescribeConfigsRequest(resources=[resource]), 4)
    known = {entry.name for entry in answer.results[0].configs}
    # The two parents exist where Kafka's logging configuration names them, as the one that it ships with does.
    assert set(KAFKA_NAMES) - known <= {"kafka", "org.apache.kafka"}


@pytest.mark.parametrize("names", [None, [], ["known_a", "nope"]])
def test_list_partition_reassignments(pair, names):
    topics = None
    if names is not None:
        topics = [moving.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in names]
    assert pair.ask(moving.ListPartitionReassignmentsRequest(topics=topics, timeout_ms=5000), [0]) == []


def test_sasl_on_a_plaintext_listener(pair):
    assert pair.ask(handshake.SaslHandshakeRequest(mechanism="PLAIN"), range(2)) == []
    assert pair.ask(authenticate.SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"), range(3)) == []
