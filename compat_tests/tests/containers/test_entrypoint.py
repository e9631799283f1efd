"""What the image's first process makes of its environment, and what its health check dials."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from kafka_shim.targets.kafka_container import KafkaContainer
from kafka_shim.targets.shim_container import ShimContainer

DOCKER = Path(__file__).resolve().parents[3] / "docker"


def load(name: str) -> ModuleType:
    spec = spec_from_file_location(f"docker_{name}", DOCKER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


entrypoint, health = load("entrypoint"), load("health")


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


def test_serve_gets_an_address_a_directory_and_the_options() -> None:
    line = entrypoint.command_line(["serve"], {"KAFKA_NUM_PARTITIONS": "3"})
    assert line == ["serve", "--listen", "0.0.0.0:9092", "--data-dir", "/var/lib/kafka-shim", "-o", "num.partitions=3"]


def test_what_is_said_is_not_said_again() -> None:
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_LOG_DIRS": "/data"}
    line = entrypoint.command_line(["serve", "--log-level", "DEBUG"], environment)
    assert line == ["serve", "-o", "listeners=PLAINTEXT://:19092", "-o", "log.dirs=/data", "--log-level", "DEBUG"]
    assert "--data-dir" not in entrypoint.command_line(["serve", "--memory"], {})


def test_other_commands_are_left_alone() -> None:
    assert entrypoint.command_line(["topics", "list"], {"KAFKA_NUM_PARTITIONS": "3"}) == ["topics", "list"]


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


def test_the_heap_and_the_rest_of_the_jvm_options_go_to_their_variables() -> None:
    target = KafkaContainer()
    target.jvm_options = ("-Xmx512m", "-XX:+UseSerialGC")
    environment = target.environment()
    assert environment["KAFKA_HEAP_OPTS"] == "-Xmx512m"
    assert environment["KAFKA_JVM_PERFORMANCE_OPTS"] == "-XX:+UseSerialGC"
