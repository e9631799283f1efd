from __future__ import annotations

import contextlib
import socket
import sys
import threading
from pathlib import Path

import click
import pytest

from kafka_shim.cli import main
from kafka_shim.commands.options import connected
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest


@pytest.fixture
def run(broker, capsys):
    """Run a command against `broker`: (status, stdout, stderr)."""

    def call(*words):
        status = main([*words, "--bootstrap-server", broker.bootstrap_servers])
        out, err = capsys.readouterr()
        return status, out, err

    return call


def test_topics_are_made_listed_described_grown_and_deleted(run):
    assert run("topics", "create", "b", "a", "--partitions", "1", "-c", "retention.ms=5") == (
        0,
        "Created topic b.\nCreated topic a.\n",
        "",
    )
    assert run("topics", "list") == (0, "a\nb\n", "")
    assert run("topics", "alter", "a", "--partitions", "2")[0] == 0
    status, out, _ = run("topics", "describe", "a")
    head, *partitions = out.splitlines()
    assert status == 0
    assert head.endswith("PartitionCount: 2\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=5")
    assert partitions[1] == "\tTopic: a\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert run("topics", "delete", "a", "b")[:2] == (0, "Deleted topic a.\nDeleted topic b.\n")
    assert run("topics", "describe") == (0, "", "")


def test_a_topic_whose_options_may_not_be_read_is_no_topic_without_options(capsys):
    acls = [{"principal": "User:ANONYMOUS", "operation": one, "topic": "t"} for one in ("Describe", "Create")]
    with Broker(acls=acls) as broker:
        where = ("--bootstrap-server", broker.bootstrap_servers)
        assert main(["topics", "create", "t", *where]) == 0
        capsys.readouterr()
        assert main(["topics", "describe", "t", *where]) == 1
        out, err = capsys.readouterr()
        assert (out, err.partition(" ")[2].startswith("t: TOPIC_AUTHORIZATION_FAILED")) == ("", True), err


def test_failures_are_one_line_and_status_one(run):
    assert run("topics", "create", "t")[0] == 0
    status, out, err = run("topics", "create", "t")
    assert (status, out, err) == (1, "", "error: t: TOPIC_ALREADY_EXISTS: Topic 't' already exists.\n")
    assert run("topics", "create", "t", "--if-not-exists") == (0, "", "")
    assert run("topics", "create", "u", "--validate-only")[1] == "Would create topic u.\n"
    assert run("topics", "delete", "u")[0] == 1
    assert run("topics", "delete", "u", "--if-exists") == (0, "", "")
    assert run("topics", "describe", "u")[0] == 1


def test_what_succeeded_is_told_before_what_failed(run):
    status, out, err = run("topics", "create", "b/ad", "good")
    assert (status, out) == (1, "Created topic good.\n")
    assert "INVALID_TOPIC_EXCEPTION" in err


def test_internal_topics_may_be_left_out(run):
    run("topics", "create", "__consumer_offsets", "mine")
    assert run("topics", "list", "--exclude-internal")[1] == "mine\n"
    assert "__consumer_offsets" not in run("topics", "describe", "--exclude-internal")[1]


def test_options_are_altered_and_described(run):
    run("topics", "create", "t")
    entity = ("--entity-type", "topics", "--entity-name", "t")
    assert run("configs", "alter", *entity, "--add-config", "retention.ms=7", "--add-config", "segment.ms=8") == (
        0,
        "Completed updating config for topic t.\n",
        "",
    )
    assert run("configs", "alter", *entity, "--delete-config", "segment.ms", "--validate-only")[1] == (
        "Would update config for topic t.\n"
    )
    run("configs", "alter", *entity, "--delete-config", "segment.ms")
    assert run("configs", "describe", *entity)[1] == (
        "Dynamic configs for topic t are:\n"
        "  retention.ms=7 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7}\n"
    )
    assert len(run("configs", "describe", *entity, "--all")[1].splitlines()) == 34


def test_options_in_one_word_are_refused_with_what_to_do(run):
    """As Kafka's tool has them."""
    run("topics", "create", "t")
    alter = ("configs", "alter", "--entity-type", "topics", "--entity-name", "t", "--add-config")
    status, _, said = run(*alter, "retention.ms=60000, cleanup.policy=compact,max.message.bytes=5")
    assert (status, said.count("\n")) == (1, 1)
    assert said.endswith(
        " (repeat the option for each: --add-config retention.ms=... --add-config cleanup.policy=... "
        "--add-config max.message.bytes=...)\n"
    )
    status, _, said = run("topics", "create", "u", "--config", "cleanup.policy=compact,retention.ms=5")
    assert status == 1
    assert said.endswith(" (repeat the option for each: --config cleanup.policy=... --config retention.ms=...)\n")
    assert "repeat" not in run(*alter, "retention.ms=soon")[2]
    metrics = ("configs", "alter", "--entity-type", "client-metrics", "--entity-name", "m")
    assert run(*metrics, "--add-config", "match=client_id=a,client_software_name=b")[0] == 0
    # The refusal names neither `match` nor all of its value.
    assert run(*metrics, "--add-config", "match=client_id=a,interval.ms=1000")[2].endswith(
        " (repeat the option for each: --add-config match=... --add-config interval.ms=...)\n"
    )


@pytest.mark.parametrize(
    ("interval", "advice"),
    [
        ("soon", ""),
        ("match", ""),
        ("5,match=b", " (repeat the option for each: --add-config interval.ms=... --add-config match=...)"),
    ],
)
def test_a_value_that_is_not_refused_is_not_advised_about(run, interval, advice):
    """`match` takes pairs."""
    alter = ("configs", "alter", "--entity-type", "client-metrics", "--entity-name", "match")
    pairs = ("match=client_id=a,client_software_name=b", f"interval.ms={interval}")
    status, _, said = run(*alter, *(word for pair in pairs for word in ("--add-config", pair)))
    assert (status, said) == (
        1,
        f"error: match: INVALID_CONFIG: Invalid value {interval} for configuration interval.ms: Not a number of type "
        f"INT{advice}\n",
    )


def test_an_option_whose_name_is_in_that_of_the_refused_one_is_not_advised_about(run):
    configs = ("--config", "my.retention.ms=7", "--config", "retention.ms=5,b=c")
    status, _, said = run("topics", "create", "t", *configs)
    assert (status, said.count("my.retention.ms"), "repeat" in said) == (1, 1, False)


@pytest.mark.parametrize("name", ["flow", "a/b", "in.steps"])
def test_an_unknown_option_is_advised_about_by_its_name(run, name):
    configs = ("--config", "retention.ms=5", "--config", f"{name}=a,b=c")
    assert run("topics", "create", "t", *configs)[2] == (
        f"error: t: INVALID_CONFIG: Unknown topic config name: {name} (repeat the option for each: --config {name}=... "
        "--config b=...)\n"
    )


def test_the_clusters_default_is_an_entity(run):
    entity = ("--entity-type", "brokers", "--entity-default")
    assert run("configs", "alter", *entity, "--add-config", "log.retention.ms=7")[1] == (
        "Completed updating default config for brokers in the cluster.\n"
    )
    lines = run("configs", "describe", *entity)[1].splitlines()
    assert lines[0] == "Default configs for brokers in the cluster are:"
    assert any("log.retention.ms=7 " in line for line in lines)
    assert run("configs", "alter", *entity, "--add-config", "num.partitions=7")[0] == 1


def test_options_come_from_a_file_as_with_kafkas_tool(run, tmp_path):
    assert run("topics", "create", "t")[0] == 0
    entity = ("--entity-type", "topics", "--entity-name", "t")
    file = tmp_path / "added.properties"
    file.write_text("# kept for a week\nretention.ms = 604800000\ncleanup.policy=compact,\\\n  delete\nsegment.ms=8\n")
    done = run("configs", "alter", *entity, "--add-config-file", str(file), "--add-config", "segment.ms=9")
    assert done == (0, "Completed updating config for topic t.\n", "")
    told = run("configs", "describe", *entity)[1]
    for option in ("retention.ms=604800000", "cleanup.policy=compact,delete", "segment.ms=9"):
        assert f"  {option} " in told
    status, out, err = run("configs", "alter", *entity, "--add-config-file", str(tmp_path / "absent"))
    assert (status, out, err) == (
        1,
        "",
        f"error: --add-config-file: cannot read {tmp_path / 'absent'}: No such file or directory\n",
    )


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "t", "-c", "no-equals-sign"),
        ("configs", "alter", "--entity-type", "topics", "--entity-name", "t"),
        ("configs", "describe", "--entity-type", "topics"),
        ("configs", "describe", "--entity-type", "topics", "--entity-default"),
        ("configs", "describe", "--entity-type", "stars", "--entity-name", "t"),
    ],
)
def test_mistakes_in_the_words_are_status_two(run, words):
    assert run(*words)[0] == 2


def test_nobody_there_is_told(capsys):
    assert main(["topics", "list", "--bootstrap-server", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "error: cannot connect to 127.0.0.1:1: Connection refused"
        " (is it running? name another with --bootstrap-server or KAFKA_SHIM_BOOTSTRAP)\n"
    )


def test_a_listener_of_another_protocol_than_the_file_says_is_hinted_at(tmp_path, capsys):
    file = tmp_path / "client.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    with Broker(tls=True) as secured:
        words = ["--bootstrap-server", secured.bootstrap_servers, "--command-config", str(file)]
        assert main(["topics", "list", *words]) == 1
    assert "(the listener may be of another security.protocol, or" in capsys.readouterr().err


def test_a_connection_that_ends_is_told_with_what_may_help(capsys):
    def accept_and_close(server):
        with server.accept()[0] as accepted:
            accepted.recv(65536)  # a close with unread bytes would be a reset

    with socket.create_server(("127.0.0.1", 0)) as silent:
        closer = threading.Thread(target=accept_and_close, args=[silent])
        closer.start()
        assert main(["topics", "list", "--bootstrap-server", f"127.0.0.1:{silent.getsockname()[1]}"]) == 1
        closer.join()
    assert "closed the connection before its first answer (if the listener has TLS or SASL" in capsys.readouterr().err
    with Broker() as own, pytest.raises(click.exceptions.Exit), connected(own.bootstrap_servers) as connection:
        connection.request(MetadataRequest())
        own.stop()
        connection.request(MetadataRequest())
    assert capsys.readouterr().err.endswith(" (the broker's log says whether it has stopped)\n")


def test_an_output_on_a_full_disk_is_told_in_one_line(broker, monkeypatch, capsys):
    with contextlib.suppress(OSError), Path("/dev/full").open("w") as full:  # closing it cannot write the output either
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["topics", "list", "--json", "--bootstrap-server", broker.bootstrap_servers]) == 1
    assert capsys.readouterr().err == "error: cannot write the output: No space left on device\n"


def test_what_was_given_at_the_start_and_what_does_not_exist(run):
    lines = run("configs", "describe", "--entity-type", "brokers", "--entity-name", "1", "--all")[1].splitlines()
    (line,) = [line for line in lines if line.startswith("  num.partitions=")]
    assert line.endswith("synonyms={STATIC_BROKER_CONFIG:num.partitions=2, DEFAULT_CONFIG:num.partitions=1}")
    status, out, err = run("configs", "describe", "--entity-type", "topics", "--entity-name", "absent")
    assert (status, out) == (1, "")
    assert "absent: UNKNOWN_TOPIC_OR_PARTITION" in err
