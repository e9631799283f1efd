"""`kafka-shim console`, from its start to the signal that ends it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from kafka_shim.cli import main
from kafka_shim.embedded import Broker

METRICS = ["--metrics", "https://127.0.0.1:1/metrics"]


def test_it_serves_until_a_signal(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[bytes] = []

    def look() -> None:
        out, deadline = "", time.monotonic() + 60
        while "shows" not in out and time.monotonic() < deadline:
            out += capfd.readouterr().out
        address = out.partition("console: ")[2].partition(" ")[0]
        try:
            for path in ("/", "/api/topics"):
                with urllib.request.urlopen(address + path, timeout=30) as answer:
                    seen.append(answer.read())
        finally:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        assert main(["console", "--bootstrap", broker.bootstrap_servers, "--http", ":0"]) == 0
    finally:
        looker.join()
    page, topics = seen
    assert b"<title>Kafka console</title>" in page
    assert topics.startswith(b'{"total":0')


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_thread_takes_the_signal_from_the_one_that_waits_for_it(broker: Broker, number: signal.Signals) -> None:
    """One in eight consoles that were being looked at on a busy machine did not end."""
    line = [sys.executable, "-m", "kafka_shim", "console", "--bootstrap", broker.bootstrap_servers, "--http", ":0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        address = child.stdout.readline().split()[1]
        with socket.create_connection(address.removeprefix("http://").split(":"), timeout=60):
            others = [one for one in Path(f"/proc/{child.pid}/task").iterdir() if int(one.name) != child.pid]
            statuses = [one.joinpath("status").read_text() for one in others]
            child.send_signal(number)
            assert child.wait(60) == 0
    assert statuses
    for status in statuses:
        (blocked,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk:")]
        assert all(blocked >> (one - 1) & 1 for one in (signal.SIGTERM, signal.SIGINT))


def test_the_log_of_the_command_says_what_was_changed(broker: Broker) -> None:
    """Only a broker's own console logged it: here nobody had set a level."""
    line = [sys.executable, "-m", "kafka_shim", "console", "--bootstrap", broker.bootstrap_servers]
    line += ["--http", "127.0.0.1:0", "--allow-changes"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        address = child.stdout.readline().split()[1]
        headers = {"Origin": address, "Content-Type": "application/json"}
        change = urllib.request.Request(f"{address}/api/topic/new", b'{"name": "made"}', headers)
        with urllib.request.urlopen(change, timeout=60) as answer:
            assert answer.status == 200
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=60)
    assert re.search(
        r"^\S+ \S+ INFO kafka_shim\.console\.changes: somebody made topic 'made' by the console$", said, re.M
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--http", "8080"], 2, "--http: '8080' is not HOST:PORT"),
        (["--http", "127.0.0.1:99999"], 2, "is not HOST:PORT"),
        (["--command-config", "/missing.properties"], 1, "missing.properties"),
        (["--public-url", "https://here.example/kafka"], 1, "--public-url https://here.example/kafka: it ends with"),
    ],
)
def test_a_mistake_is_told(words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", *words]) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--tls-certificate", "/missing.pem"], 1, "--tls-certificate /missing.pem: No such file or directory"),
        (["--tls-certificate", __file__], 1, "it does not hold a certificate with its key"),
        (["--tls-key", __file__], 2, "--tls-key needs --tls-certificate"),
        (["--metrics", "127.0.0.1:9404"], 2, "the URL must begin with http://"),
        (["--metrics-ca", __file__], 2, "need --metrics https://"),
        (["--metrics-token-file", __file__], 2, "needs --metrics"),
        ([*METRICS, "--metrics-ca", "/missing.pem"], 1, "--metrics-ca /missing.pem: No such file"),
        ([*METRICS, "--metrics-ca", __file__], 1, "it does not hold certificates in PEM"),
        ([*METRICS, "--metrics-certificate", __file__], 1, f"--metrics-certificate {__file__}: it does not hold"),
        ([*METRICS, "--metrics-token-file", "/dev/null"], 1, "--metrics-token-file /dev/null: it holds no token"),
        (["--schema-registry", "file:///etc/passwd"], 2, "the URL must begin with http://"),
        (["--schema", "orders"], 1, "is not TOPIC=FILE.avsc"),
    ],
)
def test_a_mistake_in_what_is_served_is_told(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", "--http", ":0", *words]) == status
    assert said in capsys.readouterr().err


def test_an_address_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["console", "--http", address]) == 1
    advice = "give another address with --http HOST:PORT"
    assert capsys.readouterr().err == f"error: cannot listen on http://{address}: Address already in use; {advice}\n"


def test_the_environment_names_the_broker_and_the_properties(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", "elsewhere")
    monkeypatch.setenv("KAFKA_SHIM_COMMAND_CONFIG", "/missing.properties")
    assert main(["console", "--http", ":0"]) == 1
    assert "/missing.properties" in capsys.readouterr().err
    assert main(["console", "--help"]) == 0
    assert "KAFKA_SHIM_BOOTSTRAP" in capsys.readouterr().out


def test_values_of_the_clients_properties_may_be_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_WORD", "secret-word")
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    file = tmp_path / "client.properties"
    file.write_text(f"config.providers=env\nconfig.providers.env.class={provider}\nssl.key.password=${{env:A_WORD}}\n")
    seen: list[dict[str, str]] = []

    def sessions(bootstrap: str, properties: dict[str, str]) -> None:
        seen.append(properties)
        raise ValueError("seen")

    monkeypatch.setattr("kafka_shim.console.sessions.Sessions", sessions)
    assert main(["console", "--command-config", str(file)]) == 1
    assert seen[0]["ssl.key.password"] == "secret-word"
