"""`kafka-shim record`, `replay` and `diff`, as a person runs them."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.cli import main
from kafka_shim.client_security import read_client_security
from kafka_shim.commands.diff import beside
from kafka_shim.commands.record import tell
from kafka_shim.protocol.messages.metadata_response import MetadataResponse
from kafka_shim.tests.unknown_host import UNKNOWN_HOST
from kafka_shim.tests.wiretap.test_replay import converse, new_producer_id
from kafka_shim.wire_client import Connection
from kafka_shim.wiretap.capture import MAGIC, Kind, read_capture
from kafka_shim.wiretap.replay import Finding, Outcome


def recorded(upstream: str, path: Path, *options: str) -> tuple[int, str]:
    """Runs the command around a short conversation; its status and what it said at the end."""
    line = [sys.executable, "-m", "kafka_shim", "record", "--upstream", upstream, *options, str(path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        words = re.fullmatch(r"recording (\S+) to .*\n", process.stdout.readline())
        assert words is not None
        converse(words[1])
        process.send_signal(signal.SIGINT)
        return process.wait(60), process.stdout.read()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """What the command keeps."""
    path = tmp_path / "capture"
    with Broker() as broker:
        status, told = recorded(broker.bootstrap_servers, path)
    assert status == 0
    summary = re.fullmatch(r"(\d+) connections?, (\d+) requests?, (\d+) answers?, [\d,]+ bytes are in .*\n", told)
    assert summary is not None, told
    entries = [entry.kind for entry in read_capture(path)]
    counted = [entries.count(kind) for kind in (Kind.OPENED, Kind.REQUEST, Kind.RESPONSE)]
    assert [int(text) for text in summary.groups()] == counted
    assert counted[1] > 0
    return path


def test_a_capture_is_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture"
    path.write_bytes(b"precious")
    with Broker() as broker:
        assert main(["record", "--upstream", broker.bootstrap_servers, str(path)]) == 1
        assert "exists: name another file, or give --overwrite" in capsys.readouterr().err
        assert path.read_bytes() == b"precious"
        assert recorded(broker.bootstrap_servers, path, "--overwrite")[0] == 0
    assert path.read_bytes().startswith(MAGIC)


def test_a_broker_that_is_not_reached_is_told_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        upstream = "{}:{}".format(*free.getsockname())
    command = [sys.executable, "-m", "kafka_shim", "record", "--upstream", upstream, str(tmp_path / "capture")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        words = re.fullmatch(r"recording (\S+):(\d+) to .*\n", process.stdout.readline())
        assert words is not None
        for _ in range(2):
            with socket.create_connection((words[1], int(words[2]))) as client:
                assert client.recv(1) == b""
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    reason = "the connection was refused: is the broker running, is the port right?"
    assert told == f"warning: cannot connect to {upstream}: {reason}\n"


def test_a_twin_is_compared_when_the_recording_ends(tmp_path: Path) -> None:
    with Broker() as broker, Broker() as twin:
        told = recorded(broker.bootstrap_servers, tmp_path / "capture", "--twin", twin.bootstrap_servers)
        assert told[0] == 0, told[1]
        assert "3 records compared, 0 answers that differ" in told[1]
        told = recorded(broker.bootstrap_servers, tmp_path / "again", "--twin", twin.bootstrap_servers)
        assert told[0] == 0, told[1]
        with Broker() as other:
            told = recorded(broker.bootstrap_servers, tmp_path / "other", "--twin", other.bootstrap_servers)
    assert told[0] == 1
    assert "TOPIC_ALREADY_EXISTS recorded, NONE now" in told[1]


def test_a_twin_with_tls_and_sasl_is_compared_by_a_file_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = tmp_path / "twin.properties", tmp_path / "capture"
    with Broker() as broker, Broker(tls=True, sasl="SCRAM-SHA-512", users={"alice": "word"}) as twin:
        text = "".join(f"{name}={value!r}\n".replace("'", "") for name, value in twin.client_config("java").items())
        file.write_text(text)
        given = ("--twin", twin.bootstrap_servers, "--twin-command-config", str(file))
        told = recorded(broker.bootstrap_servers, path, *given)
        assert told[0] == 0, told[1]
        assert "3 records compared, 0 answers that differ" in told[1]
        file.write_text(text.replace('"word"', '"another"'))
        line = ["record", "--upstream", broker.bootstrap_servers, *given, str(tmp_path / "none")]
        assert main(line) == 1
        assert "--twin: " in capsys.readouterr().err
        assert main(["record", "--upstream", broker.bootstrap_servers, *given[2:], str(tmp_path / "none")]) == 2


def test_a_capture_replays_and_the_replay_has_no_difference(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    with Broker() as other:
        with Connection(other.bootstrap_servers) as client:
            new_producer_id(client)  # its ids are others now
        assert main(["replay", "--target", other.bootstrap_servers, "--keep", str(kept), str(capture)]) == 0
    assert re.fullmatch(r"\d+ requests, 3 records compared, 0 answers that differ\n", capsys.readouterr().out)
    assert main(["diff", str(capture), str(kept)]) == 0
    assert re.fullmatch(r"\d+ answers and 3 records, no difference\n", capsys.readouterr().out)


def test_a_replay_does_not_write_over_what_it_replays(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = capture.read_bytes()
    assert main(["replay", "--target", "127.0.0.1:1", "--keep", str(capture), str(capture)]) == 1
    assert "is the capture that is replayed" in capsys.readouterr().err
    assert capture.read_bytes() == before


def test_a_difference_is_shown_side_by_side(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    with Broker() as other:
        converse(other.bootstrap_servers)  # the topic is there already
        assert main(["replay", "--target", other.bootstrap_servers, "--keep", str(kept), str(capture)]) == 1
    assert "error_code: NONE recorded, TOPIC_ALREADY_EXISTS now" in capsys.readouterr().out
    assert main(["diff", str(capture), str(kept)]) == 1
    shown = capsys.readouterr().out
    assert "CreateTopics v7:" in shown
    assert re.search(r"topics\[0\]\.name +\| 'told' +\| 'told'\n", shown)
    assert re.search(r"topics\[0\]\.error_code +! NONE +\| TOPIC_ALREADY_EXISTS\n", shown)


def test_fields_that_the_version_does_not_have_are_not_shown() -> None:
    shown = beside(MetadataResponse(controller_id=1), MetadataResponse(controller_id=2), (5, 9))
    assert re.search(r"controller_id +! 1 +\| 2\n", shown)
    assert re.search(r"cluster_authorized_operations +! +\| -2147483648", shown)
    assert "topic_authorized_operations" not in shown
    assert not re.search(r"^ +error_code ", shown, re.MULTILINE)  # from version 13 on


def test_one_is_counted_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding(0, "Metadata v1", ["differs"])
    assert tell(Outcome(requests=1, records=1, findings=[finding])) == 1
    assert capsys.readouterr().out.endswith("\n1 request, 1 record compared, 1 answer that differs\n")


def test_what_is_no_capture_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("hello")
    assert main(["replay", "--target", "127.0.0.1:1", str(path)]) == 1
    assert "is not a capture" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["replay", "--target", "127.0.0.1:1"], ["diff", "capture"]])
def test_a_damaged_capture_is_told_in_a_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands ended with a traceback."""
    monkeypatch.chdir(tmp_path)
    Path("capture").write_bytes(MAGIC + b"\7" + bytes(16))
    assert main([*words, "capture"]) == 1
    told = f"error: capture is damaged: no entry is of kind 7 (position {len(MAGIC)})\n"
    assert capsys.readouterr() == ("", told)


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        where = broker.bootstrap_servers
        assert main(["record", "--upstream", where, "--listen", where, str(tmp_path / "capture")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {where}: Address already in use"


def test_a_host_to_listen_on_that_is_unknown_is_not_the_brokers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker() as broker:
        words = ["record", "--upstream", broker.bootstrap_servers, "--listen", f"{UNKNOWN_HOST}:0"]
        assert main([*words, str(tmp_path / "capture")]) == 1
    assert capsys.readouterr().err == f"error: {UNKNOWN_HOST}:0: the host name is unknown\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_broker_that_is_not_there_is_told_in_one_line(
    capture: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert main(["replay", "--target", f"{host}:1", str(capture)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {host}:1: the connection was refused: is the broker running, is the port right?"


@pytest.mark.parametrize(("tls", "sasl"), [(True, None), (False, "SCRAM-SHA-256"), (True, "PLAIN")])
def test_a_listener_with_tls_or_sasl_is_recorded_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tls: bool, sasl: str | None
) -> None:
    """The clients of the recorder need no login; its own login, and the password, are in no capture."""
    path, kept = tmp_path / "capture", tmp_path / "kept"
    users = None if sasl is None else {"alice": "a-secret-word"}

    def config_of(broker: Broker) -> str:
        file = tmp_path / "client.properties"
        made = {"security.protocol": "SSL", **broker.client_config("java")}
        file.write_text("".join(f"{name}={text!r}\n".replace("'", "") for name, text in made.items()))
        return str(file)

    with Broker(tls=tls, sasl=sasl, users=users) as broker:
        assert recorded(broker.bootstrap_servers, path, "--command-config", config_of(broker))[0] == 0
    with Broker(tls=tls, sasl=sasl, users=users) as other:
        with Connection(other.bootstrap_servers, security=read_client_security(config_of(other))) as client:
            new_producer_id(client)
        line = ["replay", "--target", other.bootstrap_servers, "--keep", str(kept)]
        assert main([*line, "--command-config", config_of(other), str(path)]) == 0
        assert "3 records compared, 0 answers that differ" in capsys.readouterr().out
        assert main([*line, str(path)]) == 1  # as a PLAINTEXT client
    assert b"a-secret-word" not in path.read_bytes() + kept.read_bytes()
    assert b"SCRAM" not in path.read_bytes()


def test_a_recorder_that_cannot_log_in_says_so_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    login = 'M required username="alice" password="wrong-word";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    with Broker(sasl="PLAIN", users={"alice": "right"}) as broker:
        line = ["record", "--upstream", broker.bootstrap_servers, "--command-config", str(file)]
        assert main([*line, str(tmp_path / "capture")]) == 1
    said = capsys.readouterr().err
    assert "SASL_AUTHENTICATION_FAILED" in said
    assert "wrong-word" not in said


def test_replay_wants_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "capture"
    capture.write_bytes(b"")
    assert main(["replay", str(capture)]) == 2
    assert "--target" in capsys.readouterr().err


def test_a_replay_that_does_not_begin_keeps_nothing(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert (
            main(["replay", "--target", "{}:{}".format(*bound.getsockname()), "--keep", str(kept), str(capture)]) == 1
        )
    assert "the connection was refused" in capsys.readouterr().err
    assert not kept.exists()


def test_a_kept_replay_is_not_overwritten_unasked(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"precious")
    with Broker() as other:
        line = ["replay", "--target", other.bootstrap_servers, "--keep", str(kept)]
        assert main([*line, str(capture)]) == 1
        assert "exists: name another file, or give --overwrite" in capsys.readouterr().err
        assert kept.read_bytes() == b"precious"
        assert main([*line, "--overwrite", str(capture)]) == 0
    assert list(read_capture(kept))
