"""A whole broker in a process: the ready line, options, listeners, signals, restarts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim import serve
from kafka_shim.config import BrokerConfig
from kafka_shim.embedded import Broker
from kafka_shim.server import Server
from kafka_shim.tests.ipv6 import wants_ipv6
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, metadata, produce
from kafka_shim.tests.unknown_host import UNKNOWN_HOST
from kafka_shim.wire_client import Connection

READY = re.compile(r"ready (?P<listeners>\S+) node=(?P<node>\d+) cluster=(?P<cluster>[\w-]{22}) data=(?P<data>.+)\n")


@contextlib.contextmanager
def served(
    *arguments: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[re.Match[str], subprocess.Popen]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "kafka_shim", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    try:
        line = child.stdout.readline()
        ready = READY.fullmatch(line)
        assert ready is not None, line + child.stderr.read()
        yield ready, child
        child.terminate()  # what runs in memory has a directory to remove
        child.wait(60)
    finally:
        child.kill()
        child.communicate()


def refused(*arguments: str) -> str:
    """What a start that fails prints; the status must say so."""
    done = subprocess.run(
        [sys.executable, "-m", "kafka_shim", "serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@contextlib.contextmanager
def hangup(action: signal.Handlers) -> Iterator[None]:
    """What SIGHUP does to children: they inherit it, so that it may be ignored where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_stops_the_broker_cleanly_and_its_data_is_back(tmp_path: Path, number):
    data_dir = tmp_path / "data dir"
    listen = ("--listen", "127.0.0.1:0", "--data-dir", str(data_dir))
    with hangup(signal.SIG_DFL), served(*listen) as (ready, child):
        assert ready["data"] == str(data_dir)
        assert ready["node"] == "1"
        address = ready["listeners"].removeprefix("PLAINTEXT://")
        with Connection(address) as client:
            make_topic(client, "t")
            produce(client, "t", 0, batch(b"kept"))
        child.send_signal(number)
        assert child.wait(60) == 0
        assert child.stdout.read() == ""
    with served(*listen) as (again, _):
        assert again["cluster"] == ready["cluster"]
        with Connection(again["listeners"].removeprefix("PLAINTEXT://")) as client:
            assert fetch(client, "t", 0, 0).high_watermark == 1


def test_under_nohup_the_broker_outlives_its_terminal():
    with hangup(signal.SIG_IGN), served("--memory", "--listen", "127.0.0.1:0") as (ready, child):
        child.send_signal(signal.SIGHUP)
        with Connection(ready["listeners"].removeprefix("PLAINTEXT://")) as client:
            make_topic(client, "t")
        child.terminate()
        assert child.wait(60) == 0


def test_memory_leaves_no_directory_behind():
    with served("--memory", "--listen", "127.0.0.1:0") as (ready, child):
        assert Path(ready["data"]).is_dir()
        child.terminate()
        assert child.wait(60) == 0
        assert not Path(ready["data"]).exists()


@wants_ipv6
def test_several_listeners_in_both_families_are_named_with_their_ports():
    listeners = "INSIDE://127.0.0.1:0,OUTSIDE://[::1]:0"
    options = ["-o", "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"]
    options += ["-o", f"listeners={listeners}", "-o", "advertised.listeners=OUTSIDE://broker.example:19092"]
    with served("--memory", *options) as (ready, _):
        found = re.fullmatch(r"INSIDE://(127\.0\.0\.1:\d+),OUTSIDE://(\[::1\]:(\d+))", ready["listeners"])
        assert found is not None
        with Connection(found[1]) as inside, Connection(found[2]) as outside:
            (dialled,) = metadata(inside, "t").brokers
            (advertised,) = metadata(outside, "t").brokers
        assert f"{dialled.host}:{dialled.port}" == found[1]
        assert (advertised.host, advertised.port) == ("broker.example", 19092)


def test_a_listener_for_all_interfaces_tells_each_client_the_address_it_dialled():
    with served("--memory", "--listen", ":0") as (ready, _):
        port = int(ready["listeners"].rpartition(":")[2])
        for host in ("127.0.0.1", "127.0.0.2"):
            with Connection(f"{host}:{port}") as client:
                (broker,) = metadata(client, "t").brokers
            assert (broker.host, broker.port) == (host, port)


def test_a_properties_file_of_kafka_starts_the_broker(tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.quorum.voters=7@localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\nnum.partitions=3\n"
    )
    with served("--config", str(path), "-o", "num.partitions=5") as (ready, child):
        assert ready["node"] == "7"
        assert ready["data"] == f"{tmp_path}/a,{tmp_path}/b"
        client_listener, controller_listener = ready["listeners"].split(",")
        assert controller_listener.startswith("CONTROLLER://")
        with Connection(client_listener.removeprefix("PLAINTEXT://")) as client:
            metadata(client, "t")  # makes it
            response = metadata(client, "t")
        assert len(response.topics[0].partitions) == 5
        assert response.controller_id == response.brokers[0].node_id == 7
        child.terminate()
        _, errors = child.communicate(timeout=60)
    assert errors.count("without effect here: controller.quorum.voters, process.roles") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "num.partitons=3"], "did you mean num.partitions"),
        (["-o", "num.partitions"], "key=value"),
        (["-o", "listeners=SSL://127.0.0.1:0"], "TLS needs a certificate"),
        (["-o", "listeners=PLAINTEXT://127.0.0.1"], "NAME://HOST:PORT"),
        (["-o", "listeners=PLAINTEXT://::1:0"], "brackets"),
        (["-o", "listeners=[PLAINTEXT://127.0.0.1:0,CONTROLLER://:0]"], "listeners is a list without brackets around"),
        (["-o", "listeners=PLAINTEXT://127.0.0.1:99999"], "a port is a number from 0 to 65535"),
        (["--listen", "127.0.0.1:99999"], "--listen: '127.0.0.1:99999': a port is a number from 0 to 65535"),
        (["--listen", "127.0.0.1:9\N{SUPERSCRIPT TWO}"], "is not HOST:PORT"),
        (["--listen", "9092"], "--listen: '9092' is not HOST:PORT"),
        (["-o", "config.providersX=file"], "did you mean config.providers?"),
        (["-o", "listeners=A://127.0.0.1:0"], "listener.security.protocol.map"),
        (["--listen", "127.0.0.1:0", "-o", "advertised.listeners=X://h:1"], "no listener X"),
        (["--listen", "127.0.0.1:0", "-o", "advertised.listeners=PLAINTEXT://0.0.0.0:1"], "cannot connect"),
        (
            ["--config", "/nowhere/server.properties"],
            "error: cannot read /nowhere/server.properties: No such file",
        ),
        (["--listen", f"{UNKNOWN_HOST}:0"], "error:"),
        (["--bogus"], "No such option"),
        (["--log-level", "LOUD"], "Invalid value for '--log-level': 'LOUD' is not one of"),
    ],
)
def test_a_start_that_cannot_be_says_why_in_one_line(arguments, words):
    errors = refused("--memory", *arguments)
    assert words in errors
    assert len([line for line in errors.splitlines() if line.startswith("error:")]) == 1


def test_an_output_that_takes_no_ready_line_ends_the_start():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kafka_shim", "serve", "--memory", "--listen", "127.0.0.1:0"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    reason = "cannot write the ready line to the standard output: No space left on device"
    assert f"error: {reason}\n" in done.stderr


@pytest.mark.parametrize(
    ("name", "encoding", "status"),
    [(b"d\xff", "utf-8:strict", 0), ("dü".encode(), "ascii:strict", 1), (b"d\xff", "ascii:strict", 0)],
)
def test_a_directory_may_have_any_name_that_the_output_has(tmp_path: Path, name: bytes, encoding: str, status: int):
    """The start was successful, and the process ended at its ready line, without a clean stop."""
    path = bytes(tmp_path) + b"/" + name
    with subprocess.Popen(
        [sys.executable, "-m", "kafka_shim", "serve", "--listen", "127.0.0.1:0", "--data-dir", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    ) as child:
        if child.stdout.readline().endswith(b" data=" + path + b"\n"):
            child.terminate()
        _, errors = child.communicate(timeout=60)
    assert child.returncode == status
    assert (b"cannot write the ready line to the standard output: '\\xfc', character " in errors) == bool(status)
    assert (b"command line" in errors, b"PYTHONIOENCODING=utf-8" in errors) == (False, bool(status))
    assert Path(os.fsdecode(path), ".kafka_cleanshutdown").exists()


def test_a_directory_in_use_and_a_port_in_use_are_refused(tmp_path: Path):
    with served("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)) as (ready, _):
        address = ready["listeners"].removeprefix("PLAINTEXT://")
        assert str(tmp_path) in refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
        said = refused("--listen", address, "--memory")
        assert f"error: cannot listen on PLAINTEXT://{address}: Address already in use" in said


def test_a_fault_of_the_environment_kills_the_child_and_acknowledged_data_is_back(tmp_path: Path):
    arguments = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    with served(*arguments, environment={"KAFKA_SHIM_FAULTS": "log.after_append=kill@15"}) as (ready, child):
        with Connection(ready["listeners"].removeprefix("PLAINTEXT://")) as client:
            make_topic(client, "t")
            acknowledged = 0
            with contextlib.suppress(Exception):
                while True:
                    produce(client, "t", 0, batch(b"a"))
                    acknowledged += 1
        assert child.wait(60) == -signal.SIGKILL
    with served(*arguments) as (ready, _), Connection(ready["listeners"].removeprefix("PLAINTEXT://")) as client:
        assert fetch(client, "t", 0, 0).high_watermark >= acknowledged


def test_a_start_raises_the_limit_of_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        with Broker():
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("nowhere=kill", "unknown fault point 'nowhere'"),
        ("nowhere", "expected point=action[:argument][@nth], got 'nowhere'"),
    ],
)
def test_a_wrong_fault_stops_the_start(entry, why):
    done = subprocess.run(
        [sys.executable, "-m", "kafka_shim", "serve", "--memory", "--listen", "127.0.0.1:0"],
        env={**os.environ, "KAFKA_SHIM_FAULTS": entry},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert f"error: KAFKA_SHIM_FAULTS: {why}" in done.stderr


def test_a_stop_answers_what_is_parked_and_then_closes(loop_factory):
    broker = Broker(loop_factory=loop_factory).start()
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        broker.stop()
        _, response = client.receive(1, 12)
        assert response.responses[0].partitions[0].error_code == 0
        with pytest.raises(Exception, match="clos"):
            client.receive(1, 12)


def test_requests_are_logged_at_debug_only():
    with served("--memory", "--listen", "127.0.0.1:0", "--log-level", "DEBUG") as (ready, child):
        with Connection(ready["listeners"].removeprefix("PLAINTEXT://"), client_id="who-asks") as client:
            metadata(client, "t")
        child.terminate()
        _, errors = child.communicate(timeout=60)
    assert "metadata v12" in errors
    assert "who-asks" in errors


def test_a_client_that_takes_nothing_does_not_hold_up_the_stop():
    broker = Broker().start()
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t", max_message_bytes="50000000")
        produce(client, "t", 0, batch(bytes(8_000_000)))
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as sock:
            from kafka_shim.protocol.headers import encode_request_frame

            request = fetch_request({("t", 0): 0}, partition_max_bytes=1 << 24)
            sock.sendall(encode_request_frame(request, 12, 1, "t"))
            produce(client, "t", 0, batch(b"a"))
            broker.stop()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["listeners=PLAINTEXT://localhost:0"], ("localhost", None)),
        (
            ["listeners=PLAINTEXT://localhost:0", "advertised.listeners=PLAINTEXT://broker.example:0"],
            ("broker.example", None),
        ),
        (["listeners=PLAINTEXT://:0", "advertised.listeners=PLAINTEXT://broker.example:7"], ("broker.example", 7)),
    ],
)
def test_a_client_is_told_the_configured_host_and_the_bound_port(options, told):
    with served("--memory", *(word for option in options for word in ("-o", option))) as (ready, _):
        port = int(ready["listeners"].rpartition(":")[2])
        with Connection(f"127.0.0.1:{port}") as client:
            (broker,) = metadata(client, "t").brokers
        assert (broker.host, broker.port) == (told[0], told[1] or port)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inter.broker.listener.name": "INSIDE"}, "must be a listener name defined in advertised.listeners"),
        ({"security.inter.broker.protocol": "SSL"}, "must be a listener name defined in advertised.listeners"),
        ({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "Only one of"),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "is not a security protocol"),
    ],
)
def test_listeners_that_kafka_does_not_start_with_are_refused(options, words):
    given = [word for name, text in options.items() for word in ("-o", f"{name}={text}")]
    assert words in refused("--memory", "-o", "listeners=PLAINTEXT://127.0.0.1:0", *given)


def test_without_uvloop_the_loop_is_asyncios(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)  # an import of it fails
    assert serve.loop_factory() is asyncio.new_event_loop
    with Broker(loop_factory=serve.loop_factory()) as broker:
        broker.produce("greetings", "hello")
        assert [record.text for record in broker.consume("greetings")] == ["hello"]


def test_a_connection_that_is_accepted_as_the_broker_stops_is_closed(tmp_path: Path) -> None:
    async def main() -> bytes:
        server = Server(BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}))
        await server.start()
        acceptor = server._socket_server._acceptors["PLAINTEXT"]
        with socket.create_connection(acceptor._socket.getsockname(), timeout=60) as late:
            acceptor._accept_some()
            await server.stop()
            await asyncio.sleep(0)  # asyncio closes the socket one turn later
            late.setblocking(False)
            return late.recv(1)

    assert asyncio.run(main()) == b""


@pytest.mark.parametrize("was_clean", [True, False])
def test_start_that_is_refused_leaves_the_mark_of_the_last_stop(tmp_path: Path, was_clean: bool) -> None:
    mark = tmp_path / "data" / ".kafka_cleanshutdown"
    options = ("--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    with served(*options):
        pass
    assert mark.exists()
    if not was_clean:
        mark.unlink()
    for bad in ("ssl.keystore.location=none.pem", "authorizer.class.name=no.such.Class"):
        is_tls = bad.startswith("ssl.")
        listen = ("-o", "listeners=SSL://127.0.0.1:0", "-o", "ssl.keystore.type=PEM") if is_tls else options[2:]
        assert bad.partition("=")[2] in refused(*options[:2], *listen, "-o", bad)
        assert mark.exists() == was_clean
