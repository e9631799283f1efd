from __future__ import annotations

import logging

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.targets.requests import make
from kafka_shim.tests.api.admin import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    create,
    describe,
    new_topic,
    option,
    replace,
)
from kafka_shim.tests.produced import batch, produce
from kafka_shim.tests.test_authorization import Recorder
from kafka_shim.wire_client import Connection

THROTTLED = "leader.replication.throttled.replicas"


@pytest.fixture(autouse=True)
def topic(client):
    create(client, new_topic("t", retention_ms="5"))


@pytest.mark.parametrize("version", range(2))
def test_options_are_set_and_unset_in_every_version(client, version):
    assert alter(client, TOPIC, "t", ("retention.ms", SET, "6"), version=version) == (0, None)
    assert option(client, TOPIC, "t", "retention.ms") == ("6", 1)
    assert alter(client, TOPIC, "t", ("retention.ms", DELETE, None), version=version) == (0, None)
    assert option(client, TOPIC, "t", "retention.ms") == ("604800000", 5)


@pytest.mark.parametrize(
    ("kind", "name", "changes", "named"),
    [
        (TOPIC, "t", {"cleanup.policy": "foo", "segment.ms": "x"}, "value x for configuration segment.ms"),
        (TOPIC, "t", {"foo": "1", "bar": "1", "zzz": "1"}, "name: bar"),
        (GROUP, "g", {"streams.heartbeat.interval.ms": "-5", "share.auto.offset.reset": "no"}, "reset: Invalid value"),
        (BROKER, "", {"log.retention.ms": "x", "background.threads": "y"}, "value y for configuration background"),
        (
            BROKER,
            "",
            {"transaction.state.log.num.partitions": "1", "group.streams.max.size": "1"},
            "[group.streams.max.size, transaction.state.log.num.partitions]",
        ),
    ],
)
def test_of_several_wrong_options_the_one_is_named_that_kafka_names(client, kind, name, changes, named):
    """Kafka parses values in the order of its definition, and has names in sets (ConfigDef.parse)."""
    code, text = alter(client, kind, name, *((option, SET, value) for option, value in changes.items()))
    assert code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
    assert named in text


def test_a_change_that_only_memory_has_is_not_told_as_stored_when_it_comes_again(broker, client):
    broker.faults.arm("log.before_fsync", "oserror", "EIO")
    for _ in range(2):
        assert alter(client, TOPIC, "t", ("retention.ms", SET, "6"))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    broker.faults.disarm()
    broker.clock.advance("60s")  # the metadata log is opened again
    assert alter(client, TOPIC, "t", ("retention.ms", SET, "6")) == (0, None)


def test_what_is_refused_has_its_own_error_though_the_disk_fails(broker, client):
    broker.faults.arm("log.before_fsync", "oserror", "EIO")
    assert alter(client, TOPIC, "t", ("retention.ms", SET, "6"))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert alter(client, TOPIC, "t", ("no.such", SET, "6"))[0] == ErrorCode.INVALID_CONFIG


def test_values_are_appended_to_and_taken_from_lists(client):
    assert alter(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert alter(client, TOPIC, "t", ("cleanup.policy", APPEND, ",")) == (0, None)
    assert option(client, TOPIC, "t", "cleanup.policy") == ("delete,compact", 1)
    assert alter(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert option(client, TOPIC, "t", "cleanup.policy") == ("compact", 1)
    assert alter(client, TOPIC, "t", ("retention.ms", APPEND, "1"))[0] == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["log.retention.ms=0"], "requirement failed: log.retention.ms must be unlimited (-1)"),
        (["log.roll.ms=0"], "requirement failed: log.roll.ms must be greater than or equal to 1"),
        (["log.roll.jitter.ms=-1"], "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
        (["max.connections.per.ip=0"], "requirement failed: max.connections.per.ip can be set to zero only if"),
        (
            ["log.retention.ms=10", "log.local.retention.ms=20"],
            "Invalid value 20 for configuration log.local.retention.ms: Value must not be more than log.retention.ms",
        ),
        (
            ["log.retention.bytes=10", "log.local.retention.bytes=-1"],
            "Invalid value -1 for configuration log.local.retention.bytes: Value must not be -1 as log.retention.bytes",
        ),
    ],
)
def test_options_that_contradict_each_other_are_not_stored(client, name, changes, reason):
    """With `log.retention.ms=0` all that was acknowledged would be deleted, and with no connections per address nobody
    could say otherwise."""
    rows = [(option, SET, value) for option, _, value in (change.partition("=") for change in changes)]
    code, message = alter(client, BROKER, name, *rows)
    assert (code, message[: len(reason)]) == (ErrorCode.INVALID_REQUEST, reason)


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_an_interval_of_assignments_is_stored_within_the_limits_of_the_start(client, name, kind):
    interval, most = f"group.{kind}.assignment.interval.ms", f"group.{kind}.max.assignment.interval.ms"
    reason = f"{interval} must be less than or equal to {most}"
    assert alter(client, BROKER, name, (interval, SET, "15001")) == (ErrorCode.INVALID_REQUEST, reason)
    assert alter(client, BROKER, name, (interval, SET, "15000")) == (0, None)


def test_a_stored_interval_of_assignments_is_cut_to_limits_of_a_later_start(tmp_path, caplog):
    interval = "group.consumer.assignment.interval.ms"
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        assert alter(client, BROKER, "", (interval, SET, "12000")) == (0, None)
    limits = {"group_consumer_max_assignment_interval_ms": 9000}
    with Broker(data_dir=tmp_path, **limits) as broker, Connection(broker.bootstrap_servers) as client:
        assert broker.state.config.group_consumer_assignment_interval_ms == 9000
        assert option(client, BROKER, "1", interval) == ("9000", 3)
    assert f"{interval}, stored as 12000, is out of its limits: it is 9000" in caplog.text


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
@pytest.mark.parametrize("limit", ["max.connections", "max.connection.creation.rate"])
def test_no_connections_at_all_are_not_stored_as_a_limit(client, name, prefix, limit):
    """Nobody could connect to take the change back, nor after a restart."""
    code, message = alter(client, BROKER, name, (prefix + limit, SET, "0"))
    assert (code, f"Invalid {limit} 0 for" in message) == (ErrorCode.INVALID_REQUEST, True)
    assert alter(client, BROKER, name, (prefix + limit, SET, "1")) == (0, None)
    assert alter(client, BROKER, name, ("listener.name.other." + limit, SET, "0")) == (0, None)
    assert alter(client, BROKER, name, (prefix + limit, DELETE, None)) == (0, None)


@pytest.mark.parametrize("name", ["log.retention.ms", "message.max.bytes", "ssl.key.password", "no.such"])
def test_of_a_listener_only_limits_are_stored_for_all_brokers(client, name):
    code, why = alter(client, BROKER, "", (f"listener.name.plaintext.{name}", SET, "5"))
    assert code == ErrorCode.INVALID_REQUEST
    assert f"broker id must be specified: [listener.name.plaintext.{name}]" in why
    for limit in ("max.connections", "max.connection.creation.rate", "num.network.threads"):
        assert alter(client, BROKER, "", (f"listener.name.plaintext.{limit}", SET, "5")) == (0, None)


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize("listed", ["process.roles", "controller.listener.names"])
def test_a_list_without_a_default_is_nothing_to_begin_with(client, name, operation, listed):
    """Apache Kafka's broker fails while it looks for the default, before it says that the option is read-only."""
    assert alter(client, BROKER, name, (listed, operation, "x")) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert alter(client, BROKER, name, (listed, SET, "x"))[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "change",
    [(SET, "os.system"), (APPEND, "os.system"), (SET, "org.apache.kafka.common.metrics.JmxReporter,os.system")],
)
def test_a_class_is_not_added_to_those_of_the_start(client, change):
    code, why = alter(client, BROKER, "1", ("metric.reporters", *change))
    assert (code, "A class is loaded only if" in str(why)) == (ErrorCode.INVALID_REQUEST, True)


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize("change", [(SET, ""), (SUBTRACT, "PLAINTEXT://:9092")])
def test_no_listeners_are_no_value_of_a_broker_and_of_all_brokers(client, name, change):
    why = "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"
    assert alter(client, BROKER, name, ("listeners", *change)) == (ErrorCode.INVALID_REQUEST, why)


def test_a_change_is_in_force_for_the_next_request(client):
    assert produce(client, "t", 0, batch(b"x" * 2000)).error_code == 0
    assert alter(client, TOPIC, "t", ("max.message.bytes", SET, "1000")) == (0, None)
    assert produce(client, "t", 0, batch(b"x" * 2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_an_option_of_the_broker_is_in_force_for_topics_without_one(client):
    assert alter(client, BROKER, "1", ("message.max.bytes", SET, "1000")) == (0, None)
    assert produce(client, "t", 0, batch(b"x" * 2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(client, BROKER, "1", ("message.max.bytes", DELETE, None)) == (0, None)
    assert produce(client, "t", 0, batch(b"x" * 2000)).error_code == 0


def test_one_bad_change_keeps_the_whole_resource_as_it_was(client):
    code, _ = alter(client, TOPIC, "t", ("retention.ms", SET, "6"), ("foo", SET, "1"))
    assert code == ErrorCode.INVALID_CONFIG
    assert option(client, TOPIC, "t", "retention.ms") == ("5", 1)


def test_validation_changes_nothing(client):
    assert alter(client, TOPIC, "t", ("retention.ms", SET, "6"), validate_only=True) == (0, None)
    assert option(client, TOPIC, "t", "retention.ms") == ("5", 1)


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "none", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("num.partitions", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("min.insync.replicas", SET, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER, "", ("min.insync.replicas", DELETE, None), ErrorCode.INVALID_CONFIG),
        (BROKER, "1", ("broker.rack", SET, "a"), ErrorCode.INVALID_REQUEST),
        (METRICS, "m", ("interval.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
        (METRICS, "m", ("match", SET, "nonsense"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:soon"), ErrorCode.INVALID_CONFIG),
        *[(TOPIC, "t", (THROTTLED, SET, text), ErrorCode.INVALID_CONFIG) for text in ("*,0:1", "0:1,*", "*,*", "²:1")],
        (GROUP, "g", ("share.auto.offset.reset", SET, "BY_DURATION:PT1H"), ErrorCode.INVALID_CONFIG),
        (3, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_changed_says_why(client, kind, name, change, code):
    assert alter(client, kind, name, change)[0] == code


@pytest.mark.parametrize("kind", [BROKER, LOGGER])
def test_the_name_of_a_broker_is_an_integer_as_java_reads_it(client, kind):
    """A name that Java does not read was stored, and had no effect; `--1` of a logger ended with a traceback."""
    change = ("log.retention.ms" if kind == BROKER else "kafka_shim.request", DELETE, None)
    for name in (" 1", "1_0", "--1", "1" * 5000, str(2**32 + 1), "x"):
        reason = f"Node id must be an integer, but it is: {name}"
        assert alter(client, kind, name, change) == (ErrorCode.INVALID_REQUEST, reason)
        assert describe(client, kind, name).error_code == ErrorCode.INVALID_REQUEST
    for name in ("+1", "01", "1"):
        assert alter(client, kind, name, change) == (0, None)
        assert describe(client, kind, name).error_code == 0


@pytest.mark.parametrize(
    "given", ["P+1D", "p1dt1h", "PT1,5S", "PT1.S", "PT1H-30M", "-PT-1H", "P106751991167300D", "PT0S"]
)
def test_a_share_group_begins_before_now_by_durations_as_java_reads_them(client, given):
    assert alter(client, GROUP, "g", ("share.auto.offset.reset", SET, f"by_duration:{given}")) == (0, None)


@pytest.mark.parametrize(
    "given",
    ["", "P", "PT", "P1DT", "PT-1S", "-P1D", "PT.5S", "PT0.0000000001S", "P106751991167301D", "PT" + "9" * 5000],
)
def test_what_java_does_not_read_as_a_duration_before_now_is_refused(client, given):
    """One that is too long had every ShareFetch of the group fail."""
    change = ("share.auto.offset.reset", SET, f"by_duration:{given}")
    assert alter(client, GROUP, "g", change)[0] == ErrorCode.INVALID_CONFIG


def test_all_replicas_are_throttled_by_one_star(client):
    assert alter(client, TOPIC, "t", (THROTTLED, SET, " * ")) == (0, None)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (("kafka_shim.request", SET, "INFO"), "Error due to duplicate config keys"),
        (("kafka_shim.api", SET, None), "Null value not supported for : kafka_shim.api"),
    ],
)
@pytest.mark.parametrize("is_denied", [False, True])
def test_loggers_are_named_once_and_have_a_level(broker, client, second, reason, is_denied):
    """As all keys, which are checked before whether the client may alter them."""
    before = logging.getLogger("kafka_shim.request").level
    broker.state.authorizer = Recorder(lambda *_: True) if is_denied else None
    try:
        told = alter(client, LOGGER, "1", ("kafka_shim.request", SET, "DEBUG"), second)
    finally:
        broker.state.authorizer = None
    assert told == (ErrorCode.INVALID_REQUEST, reason)
    assert logging.getLogger("kafka_shim.request").level == before


@pytest.mark.parametrize("api", ["AlterConfigs", "IncrementalAlterConfigs"])
@pytest.mark.parametrize(
    ("values", "reason"),
    [(("1", "2"), "Error due to duplicate config keys"), ((None,), "Null value not supported for : retention.ms")],
)
def test_keys_are_checked_before_whether_the_client_may_alter_them(broker, client, api, values, reason):
    configs = [{"name": "retention.ms", "value": value} for value in values]
    resource = {"resource_type": TOPIC, "resource_name": "t", "configs": configs}
    broker.state.authorizer = Recorder(lambda *_: True)
    try:
        (told,) = client.request(make(api, resources=[resource]), 1).responses
    finally:
        broker.state.authorizer = None
    assert (told.error_code, told.error_message) == (ErrorCode.INVALID_REQUEST, reason)


def test_groups_and_metrics_keep_what_was_set(client):
    assert alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == (0, None)
    assert option(client, GROUP, "g", "consumer.session.timeout.ms") == ("50000", 8)
    assert alter(client, GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H30M")) == (0, None)
    assert alter(client, METRICS, "m", ("match", SET, "client_id=a.*")) == (0, None)
    assert option(client, METRICS, "m", "match") == ("client_id=a.*", 7)


def test_levels_of_loggers_change_and_change_back(client):
    logger = logging.getLogger("kafka_shim.request")
    before = logger.level
    try:
        assert alter(client, LOGGER, "1", ("kafka_shim.request", SET, "ERROR")) == (0, None)
        assert option(client, LOGGER, "1", "kafka_shim.request") == ("ERROR", 6)
        assert alter(client, LOGGER, "1", ("kafka_shim.request", DELETE, None)) == (0, None)
        assert logger.level == logging.NOTSET
        assert alter(client, LOGGER, "1", ("root", DELETE, None))[0] == ErrorCode.INVALID_REQUEST
        assert alter(client, LOGGER, "1", ("kafka_shim.request", SET, "LOUD"))[0] == ErrorCode.INVALID_CONFIG
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize("version", range(3))
def test_the_old_form_replaces_all_options(client, version):
    assert replace(client, TOPIC, "t", {"max.message.bytes": "9"}, version) == (0, None)
    assert option(client, TOPIC, "t", "max.message.bytes") == ("9", 1)
    assert option(client, TOPIC, "t", "retention.ms") == ("604800000", 5)
    assert replace(client, TOPIC, "t", {}, version) == (0, None)
    assert option(client, TOPIC, "t", "max.message.bytes") == ("1048588", 5)
    assert replace(client, TOPIC, "t", {"foo": "9"}, version)[0] == ErrorCode.INVALID_CONFIG
    assert replace(client, LOGGER, "1", {"root": "INFO"}, version)[0] == ErrorCode.INVALID_REQUEST
