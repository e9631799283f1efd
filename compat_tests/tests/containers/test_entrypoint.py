"""What the image's first process makes of its environment, and what its health check dials."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from kafka_shim.config import ConfigError, read_properties
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_container import KafkaContainer
from kafka_shim.targets.requests import create_topic
from kafka_shim.targets.shim_container import ShimContainer
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.tests.dropped_interrupts import DROPPED
from kafka_shim.wire_client import Connection

DOCKER = Path(__file__).resolve().parents[3] / "docker"


def load(name: str) -> ModuleType:
    spec = spec_from_file_location(f"docker_{name}", DOCKER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


entrypoint, health, requirements = load("entrypoint"), load("health"), load("requirements")


@pytest.mark.parametrize(
    ("variable", "option"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_LISTENER_NAME_A__B_SSL_KEYSTORE_TYPE", "listener.name.a_b.ssl.keystore.type"),
        ("KAFKA_LISTENER_NAME_A___B_SSL_KEYSTORE_TYPE", "listener.name.a-b.ssl.keystore.type"),
    ],
)
def test_variables_name_options_as_in_kafkas_image(variable: str, option: str) -> None:
    assert entrypoint.option_name(variable) == option


def test_a_target_spells_options_so_that_they_come_back() -> None:
    names = ["log.retention.ms", "listener.name.a_b.x", "listener.name.a-b.x"]
    target = ShimContainer(settings=dict.fromkeys(names, "1"))
    assert set(names) <= set(entrypoint.options(target.environment()))


def test_variables_of_others_are_no_options() -> None:
    others = (
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_SHIM_FAULTS",
        "KAFKA_VERSION",
        "PATH",
    )
    assert entrypoint.options(dict.fromkeys(others, "x")) == {}
    assert entrypoint.options(dict.fromkeys(["KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_KEY_CREDENTIALS"], "x")) == {}


def written(tmp_path: Path, environment: dict[str, str]) -> dict[str, str]:
    """The properties that an environment gives the broker."""
    for name in ("mounted", "secrets"):
        (tmp_path / name).mkdir(exist_ok=True)
    target = tmp_path / "server.properties"
    volumes = (str(tmp_path / "kraft-combined-logs"), str(tmp_path / "kafka-logs"))
    entrypoint.configure(str(target), environment, str(tmp_path / "mounted"), str(tmp_path / "secrets"), volumes)
    assert target.stat().st_mode & 0o777 == 0o600
    return read_properties(str(target))


def test_without_variables_clients_of_this_machine_are_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(tmp_path, {}) == {
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners": "PLAINTEXT://localhost:9092",
        "log.dirs": "/var/lib/kafka/data",
    }
    assert "set KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://HOST:PORT" in capsys.readouterr().out


def test_the_advertised_ports_are_those_that_it_listens_at(tmp_path: Path) -> None:
    two = {"KAFKA_ADVERTISED_LISTENERS": "INSIDE://broker:29092,OUTSIDE://localhost:9094"}
    assert written(tmp_path, two)["listeners"] == "INSIDE://0.0.0.0:29092,OUTSIDE://0.0.0.0:9094"
    # Any port of the host may be published to the image's own, and another container comes to the advertised one.
    found = written(tmp_path, {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092"})
    assert found["listeners"] == "PLAINTEXT://0.0.0.0:29092,EXPOSED://0.0.0.0:9092"
    assert found["advertised.listeners"] == "PLAINTEXT://broker:29092,EXPOSED://broker:29092"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,EXPOSED:PLAINTEXT"
    own = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_LOG_DIRS": "/data"}
    assert written(tmp_path, own) == {"listeners": "PLAINTEXT://:19092", "log.dirs": "/data"}


@pytest.mark.parametrize("name", ["kraft-combined-logs", "kafka-logs"])
def test_a_volume_where_kafkas_image_has_its_data_gets_them(name: str, tmp_path: Path) -> None:
    """They went to another folder, and were gone with the container."""
    volume = tmp_path / name
    volume.mkdir()
    assert written(tmp_path, {"KAFKA_NODE_ID": "1"})["log.dirs"] == str(volume)
    assert written(tmp_path, {"KAFKA_LOG_DIRS": "/data"})["log.dirs"] == "/data"


def test_data_of_an_earlier_start_are_not_left_for_a_volume(tmp_path: Path) -> None:
    """Compose keeps the volume that an image before had them in, and the broker would begin without them."""
    volume, data, target = (tmp_path / name for name in ("kafka-logs", "data", "server.properties"))
    for folder in (volume, data):
        folder.mkdir()
    (data / "meta.properties").touch()
    folders = str(tmp_path / "mounted"), str(tmp_path / "secrets")
    entrypoint.configure(str(target), {"KAFKA_NODE_ID": "1"}, *folders, (str(volume),), str(data))
    assert read_properties(str(target))["log.dirs"] == str(data)


@pytest.mark.parametrize(
    "variables",
    [
        {"KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:19092", "KAFKA_SSL_KEYSTORE_KEY": "key"},
        {
            "KAFKA_ADVERTISED_LISTENERS": "MINE://localhost:19092",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "MINE:SASL_PLAINTEXT",
        },
        {
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:19092",
            "KAFKA_LISTENER_NAME_PLAINTEXT_MAX_CONNECTIONS": "5",
        },
    ],
)
def test_a_listener_with_options_of_its_own_has_no_second_port(variables: dict[str, str], tmp_path: Path) -> None:
    """The options of one name are not those of another: a port that asks for no certificate stood beside one that
    does."""
    found = written(tmp_path, variables)
    assert found["listeners"] == variables["KAFKA_ADVERTISED_LISTENERS"].replace("localhost", "0.0.0.0")
    assert found["advertised.listeners"] == variables["KAFKA_ADVERTISED_LISTENERS"]


@pytest.mark.parametrize("advertised", ["localhost:19092", "PLAINTEXT://localhost"])
def test_an_advertised_address_of_another_form_is_named_as_it_was_given(advertised: str, tmp_path: Path) -> None:
    """The line spoke of a listener PLAINTEXT://0.0.0.0://localhost, made of it."""
    with pytest.raises(ConfigError) as refusal:
        written(tmp_path, {"KAFKA_ADVERTISED_LISTENERS": advertised})
    assert str(refusal.value) == f"advertised.listeners: '{advertised}' is not NAME://HOST:PORT"


@pytest.mark.parametrize(
    ("listeners", "told"),
    [("PLAINTEXT://:9092", "this container's name"), ("PLAINTEXT://localhost:9092", "PLAINTEXT://localhost:9092")],
)
def test_the_log_says_what_clients_are_told_where_nothing_is_advertised(
    listeners: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, {"KAFKA_LISTENERS": listeners})
    line = capsys.readouterr().out.partition("\n")[0]
    assert line == f"kafka-shim: listening at {listeners}; clients are told to connect to {told}"


def test_variables_stand_over_the_mounted_file(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "server.properties").write_text(
        "num.partitions=2\nlog.dirs=/mounted\ncompression.type=a\\\\b\n"
    )
    found = written(tmp_path, {"KAFKA_NUM_PARTITIONS": "5", "KAFKA_SSL_KEYSTORE_KEY": "one\ntwo"})
    assert found["num.partitions"] == "5"
    assert found["log.dirs"] == "/mounted"
    assert found["compression.type"] == "a\\b"
    assert found["ssl.keystore.key"] == "one\ntwo"


@pytest.mark.parametrize(
    ("value", "option"),
    [
        ('login required \\\n  username="a" \\\r\n\tpassword="b";\n', 'login required username="a" password="b";'),
        ("one\\\n\\\n two", "onetwo"),
        ("one\\\\\ntwo", "one\\\ntwo"),
        ("one\\\\\\\ntwo", "one\\two"),
    ],
)
def test_a_backslash_continues_a_line_of_a_variable(value: str, option: str, tmp_path: Path) -> None:
    """As in the file that Kafka's image writes; backslash and newline became a backslash and the letter n."""
    assert written(tmp_path, {"KAFKA_SASL_JAAS_CONFIG": value})["sasl.jaas.config"] == option


def test_stores_and_passwords_are_files_of_the_secrets(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    for name in ("store.p12", "trust.p12"):
        (tmp_path / "secrets" / name).touch()
    (tmp_path / "secrets" / "creds").write_text("pass\\word\n")
    variables = {
        "KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:9092",
        "KAFKA_SSL_KEYSTORE_FILENAME": "store.p12",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "trust.p12",
        **{f"KAFKA_SSL_{subject}_CREDENTIALS": "creds" for subject in ("KEY", "KEYSTORE", "TRUSTSTORE")},
    }
    found = written(tmp_path, variables)
    assert {name: value for name, value in found.items() if name.startswith("ssl.")} == {
        "ssl.keystore.location": str(tmp_path / "secrets" / "store.p12"),
        "ssl.truststore.location": str(tmp_path / "secrets" / "trust.p12"),
        "ssl.keystore.password": "pass\\word",
        "ssl.key.password": "pass\\word",
        "ssl.truststore.password": "pass\\word",
    }
    with pytest.raises(entrypoint.SetupError, match="KAFKA_SSL_KEYSTORE_FILENAME"):
        written(tmp_path, {"KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:9092"})
    with pytest.raises(entrypoint.SetupError, match="absent does not exist"):
        written(tmp_path, {"KAFKA_SSL_KEYSTORE_FILENAME": "absent"})


def test_what_is_no_text_is_told_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "word").write_bytes(b"secret\xff")
    with pytest.raises(entrypoint.SetupError, match="word is not a password in UTF-8") as raised:
        entrypoint.secrets({"KAFKA_SSL_KEY_CREDENTIALS": "word"}, str(tmp_path))
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("KAFKA_SSL_KEY_PASSWORD", "secret\udcff")
    monkeypatch.setattr("os.umask", lambda mode: mode)
    assert entrypoint.main(["configure", str(tmp_path / "written")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(r"error: '\udcff', character ")
    assert "secret" not in error


def test_a_broker_that_is_about_to_start_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.umask", lambda mode: mode)
    monkeypatch.setattr(entrypoint, "configure", interrupted)
    assert entrypoint.main(["run"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_is_heard_also_where_python_drops_what_is_raised(tmp_path: Path) -> None:
    """As in the callback with which each import ends: the broker started, and ran on."""
    code = f"""{DROPPED}
import runpy, sys

class Reader:
    def find_spec(self, name, *_):
        if name == "kafka_shim.serve":
            print("reading", flush=True)
            interrupt_where_it_is_dropped()

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Reader())
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    (tmp_path / "properties").touch()
    words = [str(DOCKER / "entrypoint.py"), "launch", str(tmp_path / "properties"), "--memory"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "reading\n", "")


def test_what_has_no_effect_is_said_in_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "log4j2.yaml").touch()
    variables = {
        "KAFKA_LOG4J_LOGGERS": "kafka=WARN",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_OPTS": "-Dx=y -Djava.security.auth.login.config=/etc/kafka/secrets/jaas.conf",
    }
    said = entrypoint.without_effect(variables, str(tmp_path))
    assert [line.split(" ", 1)[0] for line in said] == [
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "without",
        str(tmp_path / "log4j2.yaml"),
    ]
    assert said[2].endswith(": -Dx=y")


@pytest.mark.parametrize(("level", "ours"), [("", "INFO"), ("trace", "DEBUG"), ("WARN", "WARNING"), ("OFF", "ERROR")])
def test_the_level_of_the_log_is_that_of_log4j(level: str, ours: str) -> None:
    assert entrypoint.log_level({"KAFKA_LOG4J_ROOT_LOGLEVEL": level}) == ours


def test_only_a_new_directory_gets_the_cluster_id(tmp_path: Path) -> None:
    given = {"log.dirs": f"{tmp_path},/other"}
    assert entrypoint.cluster_id(given, {"CLUSTER_ID": "x"}) == "x"
    assert entrypoint.cluster_id(given, {}) == entrypoint.CLUSTER_ID
    (tmp_path / "meta.properties").touch()
    assert entrypoint.cluster_id(given, {"CLUSTER_ID": "x"}) is None


def test_others_of_the_group_may_write_what_is_in_the_volume(tmp_path: Path) -> None:
    """A volume of `docker run --user 12345:0` is of no use to the image's own user else."""
    data, target = tmp_path / "data", tmp_path / "server.properties"
    (port,) = free_ports(1)
    target.write_text(f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={data}\n")
    line = [sys.executable, str(DOCKER / "entrypoint.py"), "launch", str(target)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, umask=0o022) as program:
        assert program.stdout is not None
        try:
            assert any("Kafka Server started" in said for said in program.stdout)
            with Connection(f"127.0.0.1:{port}") as client:
                create_topic(client, "t")
        finally:
            program.terminate()
            program.stdout.read()
    written = [data, *data.rglob("*")]
    assert {path.name for path in written} >= {"data", "meta.properties", ".lock", "t-0", "00000000000000000000.log"}
    assert [path for path in written if not path.stat().st_mode & stat.S_IWGRP] == []


def test_an_image_may_have_further_extras() -> None:
    project = DOCKER.parent / "pyproject.toml"
    own = requirements.requirements(project, "run", [])
    assert [line.partition(">")[0] for line in own if line.startswith(("click", "gssapi", "prometheus"))] == [
        "click",
        "prometheus-client",
    ]
    more = requirements.requirements(project, "run", ["gssapi", "console"])
    assert [line.partition(">")[0] for line in more if line not in own] == ["gssapi", "fastavro", "protobuf"]
    with pytest.raises(SystemExit, match="error: no extra is called kerberos: there are "):
        requirements.requirements(project, "run", ["kerberos"])


def test_what_stands_in_for_zookeeper_accepts_connections(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    path = tmp_path / "zookeeper.properties"
    path.write_text(f"clientPort={port}\n")
    line = [sys.executable, str(DOCKER / "entrypoint.py"), "zookeeper", str(path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            assert f"port {port} is only there to be waited for" in program.stdout.readline()
            for _ in range(2):  # the first line is said before the socket is there
                wait_until(lambda: accepts(port), f"port {port} accepts connections")
        finally:
            program.kill()


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("PLAINTEXT://0.0.0.0:9092", ("127.0.0.1", 9092)),
        ("PLAINTEXT://:9092,INSIDE://:19092", ("127.0.0.1", 9092)),
        ("PLAINTEXT://broker:19092", ("broker", 19092)),
        ("PLAINTEXT://[::1]:9092", ("::1", 9092)),
    ],
)
def test_the_check_of_health_dials_the_first_listener(listeners: str, address: tuple[str, int]) -> None:
    assert health.address(listeners) == address


def test_the_check_of_health_knows_what_was_written(tmp_path: Path) -> None:
    older, newer = tmp_path / "server.properties", tmp_path / "kafka.properties"
    older.write_text("listeners=PLAINTEXT://:1\n")
    newer.write_text("listeners=A://:2\nlistener.security.protocol.map=A:SASL_SSL\n")
    os.utime(older, (1, 1))
    found = health.written((str(older), str(newer), str(tmp_path / "absent")))
    assert found == {"listeners": "A://:2", "listener.security.protocol.map": "A:SASL_SSL"}
    assert not health.speaks_plainly(found["listeners"], found["listener.security.protocol.map"])
    assert health.speaks_plainly("PLAINTEXT://:1", "")
    assert not health.speaks_plainly("SSL://:1", "")


def test_the_heap_and_the_rest_of_the_jvm_options_go_to_their_variables() -> None:
    target = KafkaContainer()
    target.jvm_options = ("-Xmx512m", "-XX:+UseSerialGC")
    environment = target.environment()
    assert environment["KAFKA_HEAP_OPTS"] == "-Xmx512m"
    assert environment["KAFKA_JVM_PERFORMANCE_OPTS"] == "-XX:+UseSerialGC"
