"""What an operator reads: one line for each change of state, none else."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys

import pytest

from kafka_shim.client.consumer_membership import ConsumerMember
from kafka_shim.client.requests import make
from kafka_shim.client.writing import Producer
from kafka_shim.embedded import Broker
from kafka_shim.log_format import TEXT, JsonLines, TextLines, set_up_logging
from kafka_shim.metadata.announcements import announcements
from kafka_shim.metadata.image import Image
from kafka_shim.protocol.records.config_record import ConfigRecord


@pytest.fixture
def lines(caplog):
    """The messages of the broker's log since the last call."""
    caplog.set_level(logging.INFO)

    def take():
        found = [one.getMessage() for one in caplog.records if one.name.startswith("kafka_shim")]
        caplog.clear()
        return found

    return take


# Who asked for it.
BY = " (by User:ANONYMOUS at 127.0.0.1)"


def alter(cluster, kind, name, **options):
    configs = [{"name": option.replace("_", "."), "value": value} for option, value in options.items()]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    assert not cluster.any().request(make("IncrementalAlterConfigs", resources=resources)).responses[0].error_code


def test_topics_and_options_are_told(broker, lines):
    lines()
    broker.create_topic("t", 1, retention_ms=5)
    assert lines() == [f"topic t is created with 1 partition, retention.ms=5{BY}"]
    with broker.cluster() as cluster:
        topics = [{"name": "t", "count": 3, "assignments": None}]
        cluster.any().request(make("CreatePartitions", topics=topics, timeout_ms=1000))
        assert lines() == [f"topic t has 3 partitions, it had 1{BY}"]
        alter(cluster, 2, "t", retention_ms="7", cleanup_policy="compact")
        assert lines() == [f"options of topic t change: retention.ms=7, cleanup.policy=compact{BY}"]
        alter(cluster, 4, "", log_retention_ms="7")
        assert lines() == [f"options of all brokers change: log.retention.ms=7{BY}"]
    broker.produce("t", "quiet", key="k")
    broker.consume("t")
    assert lines() == []
    broker.delete_topic("t")
    assert lines() == [f"topic t is deleted{BY}"]


def test_a_topic_made_on_demand_and_a_level_of_a_feature_are_told_with_who_asked(broker, lines):
    """A client whose request needs an internal topic did not ask for that topic."""
    with broker.cluster() as cluster:
        lines()
        cluster.any().request(make("Metadata", topics=[{"name": "t"}], allow_auto_topic_creation=True))
        assert lines() == [f"topic t is created with 2 partitions{BY}"]
        updates = [{"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2}]
        assert not cluster.any().request(make("UpdateFeatures", feature_updates=updates)).error_code
        assert lines() == [f"levels of features change: transaction.version=1{BY}"]
        updates = [{"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}]
        assert not cluster.any().request(make("UpdateFeatures", feature_updates=updates)).error_code
        assert lines() == [f"levels of features change: kraft.version=1{BY}"]
        cluster.coordinator("g")
        (line,) = [one for one in lines() if one.startswith("topic __consumer_offsets is created")]
        assert "(by " not in line


@pytest.fixture
def unwritten(caplog, monkeypatch):
    """From when it is called with the name of a logger, memory ends for each line of it. Returns these lines."""

    def end_memory(name):
        caplog.set_level(logging.INFO)
        found = []

        def find_no_memory(record):
            found.append(record.getMessage())
            raise MemoryError

        monkeypatch.setattr(logging.getLogger(name), "filters", [find_no_memory])
        return found

    return end_memory


def test_a_change_whose_line_finds_no_memory_is_answered(broker, unwritten):
    """The change stays: an error would have the client make it again."""
    with broker.cluster() as cluster:
        broker.create_topic("t", 1)
        found = unwritten("kafka_shim.metadata")
        deleted = cluster.any().request(make("DeleteTopics", topics=[{"name": "t"}], timeout_ms=30_000))
        assert not deleted.responses[0].error_code
        for feature, upgrade_type in (("transaction.version", 2), ("kraft.version", 1)):
            updates = [{"feature": feature, "max_version_level": 1, "upgrade_type": upgrade_type}]
            assert not cluster.any().request(make("UpdateFeatures", feature_updates=updates)).error_code
    assert found == [
        f"topic t is deleted{BY}",
        f"levels of features change: transaction.version=1{BY}",
        f"levels of features change: kraft.version=1{BY}",
    ]


def test_a_member_whose_line_finds_no_memory_has_joined(broker, unwritten):
    """All groups of its partition were read again, and their members told NOT_COORDINATOR meanwhile."""
    member = {"member_id": "A" * 22, "member_epoch": 0, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    request = make("ConsumerGroupHeartbeat", group_id="g", subscribed_topic_names=["t"], **member)
    with broker.cluster() as cluster:
        connection = cluster.coordinator("g")
        found = unwritten("kafka_shim.group")
        joined = connection.request(request)
        assert (joined.error_code, joined.member_epoch) == (0, 2)
    assert found[0].startswith(f"member {'A' * 22} joins consumer group g, ")


@pytest.mark.parametrize("name", ["ssl.keystore.password", "listener.name.x.ssl.key.password", "who.knows"])
def test_secrets_are_not_told(caplog, name):
    caplog.set_level(logging.INFO)
    record = ConfigRecord(resource_type=4, resource_name="1", name=name, value="secret")
    assert announcements([record], Image()) == [f"options of broker 1 change: {name}=[hidden]"]


@pytest.mark.parametrize(
    ("kind", "name", "whose"),
    [
        (2, "t", "topic t"),
        (4, "1", "broker 1"),
        (8, "1", "broker logger 1"),
        (16, "m", "client metrics m"),
        (32, "g", "group g"),
        (33, "x", "resource type 33 x"),
    ],
)
def test_whose_options_change_is_told(caplog, kind, name, whose):
    caplog.set_level(logging.INFO)
    record = ConfigRecord(resource_type=kind, resource_name=name, name="retention.ms", value="1")
    (line,) = announcements([record], Image())
    assert line.startswith(f"options of {whose} change: retention.ms=")


def test_members_and_epochs_are_told(broker, lines):
    broker.create_topic("t")
    with broker.cluster() as cluster:
        member = ConsumerMember(cluster, "g", ["t"])
        lines()
        member.beat()
        found = [one for one in lines() if not one.startswith("topic __consumer_offsets is created")]
        name = found[0].split()[1]
        assert found == [
            f"member {name} joins consumer group g, as client kafka-shim-test at /127.0.0.1",
            "consumer group g is at epoch 2",
        ]
        broker.clock.advance("1s")
        assert lines() == []
        member.leave()
        assert lines() == [f"member {name} leaves consumer group g", "consumer group g is at epoch 3"]
        cluster.coordinator("g").request(make("DeleteGroups", groups_names=["g"]))
        assert lines() == ["consumer group g is deleted"]


def test_generations_are_told(broker, lines):
    with broker.cluster() as cluster:
        connection = cluster.coordinator("g")
        protocols = [{"name": "range", "metadata": b""}]
        how = {"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
        request = make("JoinGroup", protocol_type="consumer", protocols=protocols, **how)
        joined = connection.request(request, 3)
        lines()
        given = [{"member_id": joined.member_id, "assignment": b""}]
        connection.request(
            make(
                "SyncGroup",
                group_id="g",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=given,
            ),
            3,
        )
        assert lines() == ["group g is at generation 1 with 1 member, assigned by range"]
        broker.clock.advance("11s", silent=True)
        assert any(one.startswith("group g is at generation 2 with 0 members") for one in lines())


def test_a_transaction_that_times_out_or_is_fenced_is_told(broker, lines):
    with broker.cluster() as cluster:
        producer = Producer(cluster, transactional_id="x", transaction_timeout_ms=10_000)
        producer.begin()
        producer.send("t", b"1")
        producer.flush()
        lines()
        broker.clock.advance("1m")
        (told,) = [one for one in lines() if one.startswith("x: ")]
        assert told.startswith("x: timed out: it was open for ")
        assert told.endswith(" ms, its timeout is 10000 ms")
        with pytest.raises(Exception, match=r"FENCED|EPOCH|INVALID"):
            producer.commit()
        assert any("of x refused with" in one for one in lines())


def test_a_start_and_a_stop_are_told(lines):
    with Broker() as broker:
        broker.produce("t", "a")
        started = lines()
    assert [one for one in started if one.startswith("node ") and " started in " in one]
    assert [one for one in started if one.startswith("open files: ")]
    stopped = lines()
    assert stopped[0].startswith("stopping, connections: ")
    assert stopped[-1].startswith("stopped in ")


@pytest.mark.parametrize(
    ("data", "spoken"), [(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"), (b"GET / HTTP/1.1\r\n\r\n", "HTTP")]
)
def test_another_protocol_is_recognised(broker, lines, data, spoken):
    lines()
    with socket.create_connection(("127.0.0.1", broker.port), timeout=30) as stranger:
        stranger.sendall(data + bytes(64))
        assert stranger.recv(1) == b""
    (told,) = lines()
    assert told.endswith(f"the client speaks {spoken}, this listener is PLAINTEXT")


def test_a_line_of_json_is_whole():
    try:
        int("wrong")
    except ValueError:
        record = logging.LogRecord("kafka_shim.x", logging.WARNING, "", 0, "of %s\nß", ("t",), sys.exc_info())
    record.created = 1.5
    found = json.loads(JsonLines().format(record))
    assert "ValueError: invalid literal" in found.pop("exception")
    assert found == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "WARNING",
        "logger": "kafka_shim.x",
        "message": "of t\nß",
    }
    with pytest.raises(ValueError, match="text, json"):
        set_up_logging("INFO", "xml")


def test_what_a_client_says_begins_no_entry_of_the_log():
    """The id of a group or a transaction may have line ends, and what a terminal takes for an order."""
    name = "t\nERROR x\r\x1b[2J\x9b\u2028\u202e\u2066ü"
    try:
        {}[name]
    except KeyError:
        record = logging.LogRecord("kafka_shim.x", logging.INFO, "", 0, "of %s", (name,), sys.exc_info())
    first, *others = TextLines().format(record).splitlines()
    assert first.endswith(" INFO kafka_shim.x: of t")
    assert others[0] == r"  ERROR x\r\x1b[2J\x9b\u2028\u202e\u2066ü"
    assert others[1] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in others)


def test_lines_of_one_second_have_its_time_once_made(monkeypatch):
    asked = []
    slow = logging.Formatter.formatTime
    monkeypatch.setattr(logging.Formatter, "formatTime", lambda *given: asked.append(1) or slow(*given))
    lines, plain = TextLines(), logging.Formatter(TEXT)
    records = [logging.LogRecord("kafka_shim.x", logging.INFO, "", 0, "of %s", ("t",), None) for _ in range(4)]
    for record, record.created, record.msecs in zip(
        records, (1.0, 1.007, 2.9996, 1.5), (0.0, 7.0, 999.0, 500.0), strict=True
    ):
        found = lines.format(record)
        assert found == plain.format(record)
    assert len(asked) == len(records) + 3


def test_the_log_does_not_look_for_the_code_or_the_thread_that_writes_a_line():
    code = """
import logging
from kafka_shim.log_format import set_up_logging
set_up_logging("info", "text")
told = []
logging.getLogger().addFilter(lambda record: told.append(record) or True)
logging.info("once")
print(told[0].lineno, told[0].thread, told[0].process, told[0].processName)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 None None None\n"
    assert done.stderr.endswith(" INFO root: once\n")


def test_serve_writes_json_when_it_is_asked():
    command = [sys.executable, "-m", "kafka_shim", "serve", "--memory", "--listen", "127.0.0.1:0", "--log-format=json"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert served.stdout is not None
    assert served.stdout.readline().startswith("ready ")
    served.terminate()
    _, err = served.communicate(timeout=60)
    found = [json.loads(line) for line in err.splitlines()]
    assert {"time", "level", "logger", "message"} == set(found[0])
    assert found[-1]["message"].startswith("stopped in ")


def test_a_changed_level_of_a_logger_is_told_under_whichever_level_lets_it_through(broker, lines):
    """At WARN, as by Apache Kafka: who misses lines of the log, or finds too many, sees since when."""
    announcer = logging.getLogger("kafka_shim.metadata")
    changing = "the level of logger kafka.server.ControllerServer changes"
    try:
        with broker.cluster() as cluster:
            lines()
            alter(cluster, 8, "1", kafka_server_ControllerServer="FATAL")
            assert lines() == [f"{changing} from INFO to FATAL"]
            alter(cluster, 8, "1", kafka_server_ControllerServer="ERROR")
            assert lines() == []  # neither of them lets it through
            alter(cluster, 8, "1", kafka_server_ControllerServer="debug")
            assert lines() == [f"{changing} from ERROR to DEBUG"]
            configs = [{"name": "kafka.server.ControllerServer", "config_operation": 1}]
            resources = [{"resource_type": 8, "resource_name": "1", "configs": configs}]
            cluster.any().request(make("IncrementalAlterConfigs", validate_only=True, resources=resources))
            assert lines() == []
            cluster.any().request(make("IncrementalAlterConfigs", resources=resources))
            assert lines() == [f"{changing} from DEBUG to none of its own"]
            assert announcer.level == logging.NOTSET
    finally:
        announcer.setLevel(logging.NOTSET)
