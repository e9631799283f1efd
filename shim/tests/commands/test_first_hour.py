"""What goes wrong in somebody's first hour with the commands: one line says what, where and what to do."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from kafka_shim.cli import main
from kafka_shim.client.cluster import Cluster
from kafka_shim.client.groups import list_groups
from kafka_shim.commands import top
from kafka_shim.commands.options import step_back
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.tests.produced import fetch_request
from kafka_shim.tests.waiting import until
from kafka_shim.wire_client import Connection, WireClientError

COMMAND = (sys.executable, "-m", "kafka_shim")


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """What answers its first connection with these bytes and closes it."""

    def serve(server: socket.socket) -> None:
        with server.accept()[0] as peer:
            peer.recv(65536)
            peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=[server])
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def error_of(address: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["topics", "list", "--bootstrap-server", address, *words]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said.removeprefix("error: ").rstrip()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "answers in HTTP, not in Kafka's protocol (name a listener of the broker",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x46", "answers in TLS, not in Kafka's protocol (give the client's properties with"),
    ],
)
def test_a_server_of_another_protocol_is_recognised(
    answer: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(answer) as address:
        assert error_of(address, capsys).startswith(f"{address} {said}")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the answer to ApiVersions v3 cannot be read: 2 bytes wanted, 0 left"),
        (b"\0\0\x7f", "the answer to ApiVersions v3 cannot be read: api_keys claims 126 elements in 0 bytes"),
        (b"\x01\x00\x01\0\0\0\0\0", "ApiVersions: UNKNOWN_ERROR_256"),
    ],
)
def test_an_answer_that_no_broker_gives_is_told(body: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As of another server, or of a newer Kafka: it ended with a traceback."""
    frame = (1).to_bytes(4, "big") + body
    with answering(len(frame).to_bytes(4, "big") + frame) as address:
        assert error_of(address, capsys) == said


def test_an_address_that_can_be_no_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = error_of("no..name:9092", capsys)
    assert said.startswith("cannot connect to no..name:9092: no host has such a name (is it running? name another with")


def test_a_server_that_waits_for_more_is_told_by_the_time_it_had() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        address = f"127.0.0.1:{server.server_port}"
        with (
            Connection(address, timeout_s=0.1) as connection,
            pytest.raises(WireClientError, match=rf"not one answer from {address} within 0\.1 s"),
        ):
            connection.ranges()


def test_a_listener_with_sasl_is_told_from_a_broker_that_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(sasl="SCRAM-SHA-256", users={"alice": "secret"}) as broker:
        said = error_of(broker.bootstrap_servers, capsys)
        assert "(as a listener with SASL does: give the client's properties with --command-config FILE)" in said


def test_a_listener_without_sasl_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = tmp_path / "client.properties"
    login = 'PlainLoginModule required username="a" password="b";'
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.plain.{login}\n"
    )
    with Broker() as broker:
        said = error_of(broker.bootstrap_servers, capsys, "--command-config", str(properties))
        assert said == "the listener has no SASL: set security.protocol, or connect to another listener"


def test_a_name_that_is_no_utf_8_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        words = ["topics", "describe", os.fsdecode(b"na\xefve"), "--bootstrap-server", broker.bootstrap_servers]
        assert main(words) == 1
        assert capsys.readouterr().err.startswith("error: the request cannot be written: a string has a lone surrogate")


@pytest.mark.parametrize("words", [("--key", "\udcff"), ("-H", "a=\udcff"), ("--null-value", "\udcff")])
def test_a_word_that_is_no_utf_8_is_told(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "t", *words]) == 2
    assert re.fullmatch(r"error: '\\udcff', character 1 of a text, is not of UTF-8: .*\?\n", capsys.readouterr().err)


def test_an_answer_that_nobody_waited_for_is_passed_over() -> None:
    """As Ctrl-C leaves it: the request is out, and its answer comes before that of the next."""
    with Broker() as broker:
        broker.produce("t", "a")
        with Connection(broker.bootstrap_servers) as client:
            client.ranges()
            client.send(fetch_request({("t", 0): 0}), 12)
            assert [one.name for one in client.request(MetadataRequest(topics=None)).topics] == ["t"]


class InterruptedSocket(socket.socket):
    """Ctrl-C comes when ten bytes of an answer were received."""

    reads = 0

    def recv(self, size: int, flags: int = 0) -> bytes:
        self.reads += 1
        if self.reads == 2:
            raise KeyboardInterrupt
        return super().recv(10 if self.reads == 1 else size, flags)


def test_the_rest_of_an_answer_that_was_interrupted_is_passed_over() -> None:
    with Broker() as broker:
        broker.produce("t", "a")
        with Connection(broker.bootstrap_servers) as client:
            client.ranges()
            client._socket = InterruptedSocket(fileno=client._socket.detach())
            client._socket.settimeout(60)
            request = MetadataRequest(topics=None)
            with pytest.raises(KeyboardInterrupt):
                client.request(request)
            assert [one.name for one in client.request(request).topics] == ["t"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets children take SIGINT: they would inherit that it is ignored, as a shell has it for what runs in the
    background. What this process handles itself, they meet with its default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("words", [(), ("--group", "people")])
def test_ctrl_c_ends_a_reader_that_waits_without_a_word_and_leaves_its_group(words: tuple[str, ...]) -> None:
    with Broker() as broker:
        broker.produce("t", "a")
        command = [*COMMAND, "consume", "t", "--follow", *words, "--bootstrap-server", broker.bootstrap_servers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == "a\n"
                # It waits in a Fetch now: that is what is interrupted.
                until(broker, lambda: broker.state.parked)
                child.send_signal(signal.SIGINT)
                _, said = child.communicate(timeout=60)
            finally:
                child.kill()
        assert (child.returncode, said) == (0, "")
        if words:
            with Cluster(broker.bootstrap_servers) as cluster:
                assert [one.state for one in list_groups(cluster)] == ["Empty"]


@pytest.mark.parametrize(
    "words", [("consume", "t"), ("topics", "list"), ("topics", "describe"), ("top", "--once", "--refresh", "0.5")]
)
def test_a_closed_output_is_no_error_of_python(words: tuple[str, ...]) -> None:
    with Broker() as broker:
        broker.produce("t", *["x" * 1000] * 200)
        closing = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *words, "--bootstrap-server", broker.bootstrap_servers]
        done = subprocess.run(closing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        # Its reader has gone, as head does once it has its lines.
        reading = ["sh", "-c", '"$@" | true', "sh", *COMMAND, *words, "--bootstrap-server", broker.bootstrap_servers]
        done = subprocess.run(reading, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        assert done.stderr == ""


def test_a_pause_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--refresh", "nan"]) == 2
    assert "nan is not in the range 0.5<=x<=60.0." in capsys.readouterr().err


def drawn(width: int) -> list[str]:
    rows = [("a-rather-long-topic-name-number-1", 1, "1,234,567", "12,345.0"), ("t", 50, "0", "-")]
    out = io.StringIO()
    Console(file=out, width=width).print(top.Fitted(("TOPIC", "PARTITIONS", "HELD", "RECORDS/S"), rows, 5, (1, 2)))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["TOPIC", "PARTITIONS", "HELD", "RECORDS/S"]),
        (40, ["TOPIC", "HELD", "RECORDS/S"]),
        (28, ["TOPIC", "RECORDS/S"]),
    ],
)
def test_a_narrow_terminal_cuts_names_and_no_number(width: int, columns: list[str]) -> None:
    head, first, second = drawn(width)
    assert head.split() == columns
    assert first.startswith("a-rather-lo")
    assert first.split()[-1] == "12,345.0"
    assert second.split()[-1] == "-"
    assert max(map(len, (head, first, second))) <= width


@pytest.mark.parametrize("locale", ["C", "POSIX", "no_SUCH.locale"])
def test_records_are_printed_as_they_are_in_any_locale(locale: str) -> None:
    value = "naïve ☃"
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Broker() as broker:
        broker.produce("t", value, b"\xff\xfe")

        def consumed(*words: str) -> list[bytes]:
            command = [*COMMAND, "consume", "t", *words, "--bootstrap-server", broker.bootstrap_servers]
            return subprocess.run(
                command, capture_output=True, check=True, env=environment, timeout=60
            ).stdout.splitlines()

        assert consumed() == [value.encode(), b"\xff\xfe"]
        text, binary = consumed("--json")
        assert f'"value": "{value}"'.encode() in text
        assert b'"value": {"base64": "//4="}' in binary


@pytest.mark.skipif(sys.platform != "linux", reason="of one thread on Linux alone")
def test_who_looks_steps_back_with_its_own_thread() -> None:
    def own() -> int:
        return os.getpriority(os.PRIO_PROCESS, 0)

    before, seen = own(), []
    thread = threading.Thread(target=lambda: (step_back(), seen.append(own())))
    thread.start()
    thread.join()
    assert seen == [max(before, 5)]
    assert own() == before
