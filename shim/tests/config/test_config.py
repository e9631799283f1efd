from __future__ import annotations

import subprocess
import sys

import pytest

from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    SYNONYMS,
    TOPIC_OPTIONS,
    UNIMPLEMENTED_SECURITY,
    BrokerConfig,
    BrokerDefaults,
    ConfigError,
    TopicConfig,
    check_topic_options,
    read_properties,
)
from kafka_shim.config.docs import DOCS
from kafka_shim.serve import configure

# Defaults that differ from Kafka's on purpose, or are the resolved value of options that are null there.
OWN_DEFAULTS = {
    "controller.listener.names",
    "listeners",
    "log.dirs",
    "log.flush.interval.ms",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "node.id",
}


def test_every_attribute_is_an_option_with_the_default_that_is_described():
    attributes = {name for name in BrokerDefaults.__annotations__ if not name.startswith("_")}
    assert len(attributes) > 90
    for attribute in attributes:
        name = attribute.replace("_", ".")
        option = BROKER_OPTIONS[name]
        if name in OWN_DEFAULTS:
            continue
        default = None if option.default is None else option.parse(option.default)
        assert getattr(BrokerDefaults, attribute) == default, name


def test_every_option_with_an_effect_has_a_sentence_and_every_sentence_an_option():
    known = BROKER_OPTIONS.keys() | TOPIC_OPTIONS.keys() | GROUP_OPTIONS.keys() | CLIENT_METRICS_OPTIONS.keys()
    assert DOCS.keys() <= known
    idle = {
        option.name
        for table in (BROKER_OPTIONS, TOPIC_OPTIONS, GROUP_OPTIONS)
        for option in table.values()
        if option.idle_reason
    }
    assert idle & DOCS.keys() == {"min.insync.replicas"}, "has an effect as an option of the broker alone"
    for name in BrokerDefaults.__annotations__:
        assert BROKER_OPTIONS[name.replace("_", ".")].doc, name


def test_every_topic_option_behind_which_a_broker_option_stands_has_its_default():
    for topic_option, synonyms in SYNONYMS.items():
        for name, _ in synonyms:
            assert name in BROKER_OPTIONS
        assert topic_option in TOPIC_OPTIONS


def test_the_default_of_each_topic_option_is_kafkas():
    config = TopicConfig(BrokerConfig())
    for attribute in TopicConfig.__slots__:
        option = TOPIC_OPTIONS.get(attribute.replace("_", "."))
        if option is not None and option.default is not None:
            assert getattr(config, attribute) == option.parse(option.default), attribute


def test_values_are_typed_and_lists_are_tuples():
    config = BrokerConfig.parse(
        {"num.partitions": "7", "auto.create.topics.enable": "FALSE", "log.cleanup.policy": "compact,delete"}
    )
    assert config.num_partitions == 7
    assert config.auto_create_topics_enable is False
    assert config.log_cleanup_policy == ("compact", "delete")
    assert config.given["num.partitions"] == "7"
    assert not config.warnings


def test_of_synonyms_the_finest_unit_wins():
    assert BrokerConfig.parse({"log.retention.hours": "2"}).log_retention_ms == 7_200_000
    assert BrokerConfig.parse({"log.retention.hours": "2", "log.retention.minutes": "1"}).log_retention_ms == 60_000
    assert BrokerConfig.parse({"log.retention.ms": "5", "log.retention.minutes": "1"}).log_retention_ms == 5
    assert BrokerConfig.parse({"log.retention.hours": "-1"}).log_retention_ms == -1
    assert BrokerConfig.parse({"log.roll.hours": "1"}).log_roll_ms == 3_600_000
    assert BrokerConfig.parse({"log.flush.scheduler.interval.ms": "9"}).log_flush_interval_ms == 9


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("nmu.partitions", "4", "did you mean num.partitions"),
        ("num.partitions", "four", "Not a number of type INT"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "99999999999", "Not a number of type INT"),
        ("num.partitions", "1_0", "Not a number of type INT"),
        ("num.partitions", "4\u00a0", "Invalid value 4\u00a0 for configuration num.partitions: Not a number"),
        ("num.partitions", " x ", "Invalid value  x  for configuration num.partitions: Not a number of type INT"),
        ("auto.create.topics.enable", "true\u2003", "Expected value to be either true or false"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("compression.type", "brotli", "String must be one of"),
        ("log.cleanup.policy", "delete,\u00a0compact", "Invalid value \u00a0compact for configuration"),
        ("compression.gzip.level", "12", "Value must be between 1 and 9"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("group.consumer.migration.policy", "sideways", "case insensitive"),
        ("flush.ms", "1", "is not an option of Kafka"),
        ("service.port", "1", "is not an option of Kafka$"),  # metric.reporters has as many letters in common
        ("advertised.port", "1", "did you mean advertised.listeners"),
    ],
)
def test_a_wrong_option_is_refused_with_its_reason(name, text, reason):
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.parse({name: text})


def test_an_unknown_option_of_a_file_is_ignored_with_a_warning_and_one_of_the_command_line_is_refused(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("nmu.partitions=4\nnum.io.threads=2\n")
    (warning,) = [one for one in configure(None, None, str(path), ()).warnings if "nmu" in one]
    assert warning == "nmu.partitions is not an option of Kafka; did you mean num.partitions? It is ignored"
    with pytest.raises(ConfigError, match="did you mean num"):
        configure(None, None, str(path), ["nmu.partitions=5"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("remote.log.storage.system.enable", "true"),
        ("transaction.two.phase.commit.enable", "true"),
    ],
)
def test_a_promise_that_is_not_built_stops_the_start(name, text):
    with pytest.raises(ConfigError, match=f"^{name}.*not implemented"):
        BrokerConfig.parse({name: text})


@pytest.mark.parametrize(("cordoned", "fault"), [("/c", "Missing entries : /c"), ("*,/a", "must not contain other")])
def test_only_directories_of_the_broker_can_be_cordoned(cordoned, fault):
    with pytest.raises(ConfigError, match=fault):
        BrokerConfig.parse({"log.dirs": "/a,/b", "cordoned.log.dirs": cordoned})


def test_the_default_of_such_an_option_is_no_promise():
    config = BrokerConfig.parse({"authorizer.class.name": "", "alter.config.policy.class.name": ""})
    assert config.warnings == []


@pytest.mark.parametrize("prefix", ["", "listener.name.ssl."])
def test_kafkas_own_class_that_makes_the_tls_of_listeners_may_be_named(prefix: str):
    """As a file does that names every class: it was refused as any other one."""
    name, own = f"{prefix}ssl.engine.factory.class", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    config = BrokerConfig.parse({name: f" {own}"})
    assert (config.warnings, config.given) == ([], {name: f" {own}"})
    with pytest.raises(ConfigError, match=r"ssl\.engine\.factory\.class: a Java class cannot be loaded here"):
        BrokerConfig.parse({name: "com.example.Engines"})


def test_every_promise_is_an_option():
    assert BROKER_OPTIONS.keys() >= UNIMPLEMENTED_SECURITY


def test_options_of_the_authorizer_have_no_effect_without_one():
    options = {"super.users": "User:a;User:b", "allow.everyone.if.no.acl.found": "true"}
    config = BrokerConfig.parse(options)
    assert config.warnings == ["without effect here: allow.everyone.if.no.acl.found, super.users"]
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    config = BrokerConfig.parse({**options, "authorizer.class.name": name})
    assert not config.warnings
    assert config.authorizer_class_name == name


def test_options_without_effect_are_silent_with_their_default():
    idle = {name: option for name, option in BROKER_OPTIONS.items() if option.idle_reason}
    given = {name: option.default for name, option in idle.items() if option.default is not None}
    assert len(given) > 100
    assert BrokerConfig.parse(given).warnings == []


def test_options_without_effect_are_accepted_with_one_line_that_names_them():
    config = BrokerConfig.parse({"num.io.threads": "4", "num.network.threads": "2", "num.partitions": "3"})
    assert config.warnings == ["without effect here: num.io.threads, num.network.threads"]


@pytest.mark.parametrize(
    ("name", "one", "more"),
    [
        ("controller.quorum.voters", "1@a:9093", ",2@b:9093, 3@c:9093"),
        ("controller.quorum.bootstrap.servers", "a:9093", ",b:9093,c:9093"),
    ],
)
def test_a_broker_that_would_be_one_of_several_says_that_it_is_alone(name: str, one: str, more: str) -> None:
    idle = f"without effect here: {name}"
    assert BrokerConfig.parse({name: one}).warnings == [idle]
    assert BrokerConfig.parse({name: one + more}).warnings == [
        idle,
        f"{name} names 3 nodes, but this broker joins no others: it is a cluster of its own, so give clients its "
        "address alone",
    ]


@pytest.mark.parametrize("name", ["listener.name.ssl.ssl.client.atuh", "listener.name.ssl.plain.sasl.jaas.confg"])
def test_a_misspelt_option_of_a_listener_stops_the_start_unless_a_file_has_it(name: str):
    with pytest.raises(ConfigError, match="is not an option of a listener; did you mean"):
        BrokerConfig.parse({name: "required"})
    (warning,) = BrokerConfig.parse({name: "required"}, {name}).warnings
    assert "is not an option of a listener; did you mean" in warning
    assert warning.endswith("It is ignored")


def test_a_listen_that_takes_the_place_of_other_listeners_says_so():
    (warning,) = configure("127.0.0.1:1", None, None, ["listeners=PLAINTEXT://127.0.0.1:2"]).warnings
    assert warning == "--listen takes the place of listeners=PLAINTEXT://127.0.0.1:2"
    assert not configure("127.0.0.1:1", None, None, ["listeners=PLAINTEXT://127.0.0.1:1"]).warnings


def test_a_data_dir_or_memory_that_takes_the_place_of_other_log_dirs_says_so():
    (warning,) = configure(None, "/a", None, ["log.dirs=/b,/c"]).warnings
    assert warning == "--data-dir takes the place of log.dirs=/b,/c"
    (warning,) = configure(None, "/dev/shm/a", None, ["log.dir=/b"], memory=True).warnings
    assert warning == "--memory takes the place of log.dir=/b"
    assert not configure(None, "/a", None, ["log.dirs=/a"]).warnings


def test_values_of_a_list_count_once_and_are_not_empty():
    assert TOPIC_OPTIONS["cleanup.policy"].parse("compact, delete,compact") == ("compact", "delete")
    for name, text in (("ssl.enabled.protocols", "TLSv1.2,,TLSv1.3"), ("log.cleanup.policy", "delete,")):
        with pytest.raises(ConfigError, match=f"^Configuration '{name}' values must not be empty.$"):
            BrokerConfig.parse({name: text})


def test_dynamic_options_cover_static_ones_and_go_again():
    config = BrokerConfig.parse({"log.retention.hours": "2", "message.max.bytes": "5000"})
    config.apply_dynamic({"log.retention.ms": "77", "message.max.bytes": "6000", "num.io.threads": "3"})
    assert (config.log_retention_ms, config.message_max_bytes) == (77, 6000)
    config.apply_dynamic({})
    assert (config.log_retention_ms, config.message_max_bytes) == (7_200_000, 5000)


def test_what_was_set_beside_the_options_survives_a_dynamic_change():
    config = BrokerConfig()
    config.listeners = "PLAINTEXT://127.0.0.1:1"
    config.log_dirs = ("/somewhere",)
    config.apply_dynamic({"log.retention.ms": "1"})
    config.apply_dynamic({})
    assert config.listeners == "PLAINTEXT://127.0.0.1:1"
    assert config.log_dirs == ("/somewhere",)


def test_a_topics_overrides_lie_over_the_brokers_options():
    broker = BrokerConfig.parse({"log.retention.ms": "100", "compression.type": "zstd"})
    config = TopicConfig(broker, {"retention.ms": "5", "cleanup.policy": "compact", "internal.segment.bytes": "200"})
    assert (config.retention_ms, config.compression_type, config.segment_bytes) == (5, "zstd", 200)
    assert config.compact
    assert not config.delete


def test_blanks_around_a_topic_option_do_not_count():
    options = {"compression.type": " gzip", "message.timestamp.type": "LogAppendTime ", "cleanup.policy": " compact "}
    config = TopicConfig(BrokerConfig(), options)
    assert (config.compression_type, config.message_timestamp_type) == ("gzip", "LogAppendTime")
    assert config.cleanup_policy == ("compact",)


def test_a_topic_option_that_cannot_be_read_is_refused():
    with pytest.raises(ConfigError, match=r"retention\.ms"):
        TopicConfig(BrokerConfig(), {"retention.ms": "soon"})


def test_topic_options_are_checked_as_kafka_checks_them():
    check_topic_options([("retention.ms", "-1"), ("cleanup.policy", "compact"), ("compression.gzip.level", "-1")])
    check_topic_options([("leader.replication.throttled.replicas", "0:1,1:1"), ("segment.bytes", "1048576")])
    for name, text, reason in [
        ("retention.days", "1", "Unknown topic config name: retention.days"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("segment.bytes", "1000", "Value must be at least 1048576"),
        ("retention.ms", None, "Null value not supported"),
        ("leader.replication.throttled.replicas", "a:b", "partitionId"),
        ("remote.storage.enable", "true", "not implemented"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            check_topic_options([(name, text)])
    with pytest.raises(ConfigError, match="conflict"):
        check_topic_options([("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")])


@pytest.mark.parametrize("count", ["--5", "+-5", "²", "1_0", "2147483648", "5 5", ""])
def test_a_limit_by_host_is_an_int(count: str):
    option = BROKER_OPTIONS["max.connections.per.ip.overrides"]
    with pytest.raises(ConfigError, match="For input string"):
        option.parse(f"127.0.0.1:{count}")
    assert option.parse("127.0.0.1: +5 ,::1:-5")


def test_a_password_is_never_printed():
    option = BROKER_OPTIONS["ssl.key.password"]
    assert option.is_sensitive
    assert str(option._error("secret", "too short")).startswith("Invalid value [hidden] for")


def test_a_properties_file_is_read_as_java_reads_it(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(
        "# a comment\n! another\n\nnum.partitions = 3\nlog.dirs:/a,\\\n    /b\nbroker.rack rack\\ one\n"
        "empty=\nunicode=\\u00e9\\t!\nlast=1"
    )
    assert read_properties(str(path)) == {
        "num.partitions": "3",
        "log.dirs": "/a,/b",
        "broker.rack": "rack one",
        "empty": "",
        "unicode": "é\t!",
        "last": "1",
    }


def test_a_properties_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^cannot read .*nothing: No such file or directory$"):
        read_properties(str(tmp_path / "nothing"))
    (tmp_path / "utf-16").write_bytes("num.partitions=3".encode("utf-16"))
    with pytest.raises(ConfigError, match=r"^cannot read .*utf-16: it is not a text in UTF-8"):
        read_properties(str(tmp_path / "utf-16"))


@pytest.mark.parametrize("text", ["DOMAIN\\user", "x\\u12", "\\u+123", "x\\u"])
def test_a_backslash_before_a_u_without_digits_is_refused_and_shows_nothing_of_the_value(tmp_path, text):
    """Java refuses it. The commands ended with a traceback, and part of a password was told."""
    path = tmp_path / "client.properties"
    path.write_text(f"a=\\u00e4\npassword={text}\n")
    told = (
        r"client\.properties: password: no four hexadecimal digits follow a \\u: a backslash of the value is .* twice$"
    )
    with pytest.raises(ConfigError, match=told):
        read_properties(str(path))
    path.write_text("a=\\u00e4\npassword=DOMAIN\\\\user\n")
    assert read_properties(str(path)) == {"a": "ä", "password": "DOMAIN\\user"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_properties_file_may_be_utf_8_with_or_without_its_mark_or_latin_1(tmp_path, encoding):
    path = tmp_path / "server.properties"
    path.write_bytes("num.partitions=3\n# für Prüfungen\nbroker.rack=Gebäude".encode(encoding))
    assert read_properties(str(path)) == {"num.partitions": "3", "broker.rack": "Gebäude"}


def test_defaults_do_not_load_the_tables():
    code = (
        "import sys; from kafka_shim.config import BrokerConfig, TopicConfig; TopicConfig(BrokerConfig.parse({})); "
        "print('kafka_shim.config.table' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
