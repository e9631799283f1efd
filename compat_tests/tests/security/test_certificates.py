"""Stores of a TLS listener that change while the broker runs, on the shim and on Apache Kafka: what is refused, with
which code, and which certificate clients see then."""

from __future__ import annotations

import ssl
from contextlib import ExitStack

import pytest

from kafka_shim.security.tls.authority import HOSTS, CertificateAuthority
from kafka_shim.targets import requests
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.targets.waiting import last_answer
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from kafka_shim.targets import Target

pytestmark = pytest.mark.java
NETWORK_THREADS = 3  # Kafka's default


def settings(keystore: Path, ports: list[int], controller: str = "") -> dict[str, str]:
    listeners = f"PLAINTEXT://127.0.0.1:{ports[0]},SSL://127.0.0.1:{ports[1]}"
    return {
        "listeners": listeners + controller,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": str(keystore),
    }


def serial_of(address: str, authority: CertificateAuthority) -> int:
    """The serial number of the certificate that a new connection sees."""
    context = ssl.create_default_context(cadata=authority.certificate)
    with (
        Connection(address) as connection,
        context.wrap_socket(connection._socket, server_hostname="localhost") as client,
    ):
        told: Any = client.getpeercert()
        return int(told["serialNumber"], 16)


def taken_over_from(before: int, ask: Callable[[], int]) -> bool:
    """Whether every thread of the broker's network soon shows another certificate: each of Kafka's takes it over by
    itself, some time after the answer, and connections go to them in turn."""
    return last_answer(lambda: all(ask() != before for _ in range(NETWORK_THREADS)), bool)


def alter(address: str, **values: str) -> int:
    configs = [
        {"name": f"listener.name.ssl.ssl.{name.replace('_', '.')}", "config_operation": 0, "value": value}
        for name, value in values.items()
    ]
    resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
    with Connection(address) as admin:
        (result,) = admin.request(requests.make("IncrementalAlterConfigs", resources=[resource]), 1).responses
    return int(result.error_code)


def conversation(ports: list[int], keystore: Path, authority: CertificateAuthority) -> list[Any]:
    plain, tls = (f"127.0.0.1:{port}" for port in ports)
    told: list[Any] = []

    def ask() -> int:
        return serial_of(tls, authority)

    def attempt(common_name: str, hosts: tuple[str, ...], at: Path) -> None:
        before = ask()
        at.write_text("".join(authority.issue(common_name, hosts)))
        code = alter(plain, keystore_location=str(at))
        # What is refused, at once or when the file is read again, must not be seen later either.
        taken_over = taken_over_from(before, ask) if code == 0 and common_name == "broker" else None
        told.append((common_name, hosts, at.name, code, taken_over))
        if taken_over is None:
            assert {ask() for _ in range(NETWORK_THREADS)} == {before}

    for name, hosts in (
        ("broker", HOSTS),
        ("another", HOSTS),
        ("broker", HOSTS[:1]),
        ("broker", (*HOSTS, "more.test")),
    ):
        attempt(name, hosts, keystore.with_name(f"{name}-{len(hosts)}.pem"))
    current = keystore.with_name("broker-4.pem")
    attempt("broker", (*HOSTS, "more.test"), current)  # the same file with another certificate
    attempt("another", (*HOSTS, "more.test"), current)  # and with one that may not replace it
    told.append(alter(plain, keystore_location=str(keystore.with_name("none.pem"))))
    told.append(alter(plain, truststore_type="PEM", truststore_certificates=authority.certificate))
    told += [
        alter(plain, truststore_location=""),
        alter(plain, truststore_password="nothing has it"),
        alter(plain, keystore_password="nothing has it"),
    ]
    return told


def test_a_new_store_is_taken_over_or_refused_as_by_kafka(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    told = []
    for kind in ("kafka", "shim"):
        folder = tmp_path / kind
        folder.mkdir()
        keystore = folder / "keystore.pem"
        keystore.write_text("".join(authority.issue("broker")))
        ports = free_ports(3)
        target: Target
        if kind == "kafka":
            given = settings(keystore, ports, f",CONTROLLER://127.0.0.1:{ports[2]}")
            target = kafka = KafkaNative(settings=given)
            kafka.bootstrap, kafka.controller_port = f"127.0.0.1:{ports[0]}", ports[2]
        else:
            target = shim = ShimProcess(settings=settings(keystore, ports))
            shim.bootstrap = f"PLAINTEXT://127.0.0.1:{ports[0]},SSL://127.0.0.1:{ports[1]}"
        with ExitStack() as stack:
            stack.enter_context(target)
            told.append(conversation(ports[:2], keystore, authority))
    assert told[0] == told[1]
    assert {row[3] for row in told[0] if isinstance(row, tuple)} == {0, 42}
