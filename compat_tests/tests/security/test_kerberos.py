"""GSSAPI: Java's client, and librdkafka's where it is built with it, against the shim and Apache Kafka in one realm;
the rules of names beside Kafka's own classes."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from kafka_shim.compat.tests.security.principals import AUTHORIZER
from kafka_shim.security.sasl.gssapi import LOGIN_MODULE
from kafka_shim.targets import jvm
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.kdc import REALM, Kdc
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.tests.security.test_kerberos_rules import BAD, CASES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_shim.targets import Target

pytestmark = pytest.mark.java
SOURCE = jvm.ROOT / "compat_tests" / "java" / "KerberosDriver.java"
SERVICE = "kafka/localhost"


def test_kafkas_short_namer_makes_the_same_names() -> None:
    questions = [*CASES, *((rule, "alice@SHIM.TEST", "bad") for rule in BAD)]
    text = "".join(f"{REALM}\t{rules}\t{principal}\n" for rules, principal, _ in questions)
    done = jvm.run("KerberosDriver", stdin=text.encode(), extra=(jvm.compiled(SOURCE),))
    told = done.stdout.decode().splitlines()
    expected = ["bad" if name == "bad" else "none" if name is None else f"name {name}" for _, _, name in questions]
    assert told == expected


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with Kdc(tmp_path_factory.mktemp("kdc")) as running:
        yield running


def jaas(keytab: Path, principal: str) -> str:
    return f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


def settings(realm: Kdc, port: int, plain: str, extra: str = "") -> dict[str, str]:
    """A listener with GSSAPI beside the unauthenticated one; alice may use her topic, and only she."""
    listeners = f"PLAINTEXT://{plain},SASL_PLAINTEXT://localhost:{port}"
    return {
        "listeners": listeners + extra,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-$2](alice-.*)s/-.*//,DEFAULT",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(realm.folder / "kafka_localhost.keytab", SERVICE),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:alice",
    }


@pytest.fixture(scope="module")
def addresses(realm: Kdc) -> Iterator[list[str]]:
    """The GSSAPI listeners of an Apache Kafka and of a shim."""
    for name in (SERVICE, "alice/client", "bob"):
        realm.add(name)
    before = dict(os.environ)
    os.environ.update(realm.environment, KAFKA_OPTS=f"-Djava.security.krb5.conf={realm.krb5_conf}")
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.security.krb5.conf={realm.krb5_conf}"
    try:
        with ExitStack() as stack:
            kafka_plain, kafka_port, controller, shim_plain, shim_port = free_ports(5)
            kafka = KafkaNative(
                settings=settings(
                    realm, kafka_port, f"127.0.0.1:{kafka_plain}", f",CONTROLLER://127.0.0.1:{controller}"
                )
            )
            kafka.bootstrap, kafka.controller_port = f"127.0.0.1:{kafka_plain}", controller
            shim = ShimProcess(settings=settings(realm, shim_port, f"127.0.0.1:{shim_plain}"))
            shim.bootstrap = f"PLAINTEXT://127.0.0.1:{shim_plain},SASL_PLAINTEXT://localhost:{shim_port}"
            targets: list[Target] = [kafka, shim]
            for target in targets:
                stack.enter_context(target)
            yield [f"localhost:{kafka_port}", f"localhost:{shim_port}"]
    finally:
        for name in (*realm.environment, "KAFKA_OPTS", "JAVA_TOOL_OPTIONS"):
            os.environ.pop(name, None)
        os.environ.update(before)


def client(realm: Kdc, folder: Path, user: str) -> str:
    path = folder / f"{user.partition('/')[0]}.properties"
    keytab = realm.folder / f"{user.replace('/', '_')}.keytab"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={jaas(keytab, user)}\n"
    )
    return str(path)


def test_java_clients_are_users_by_their_tickets(realm: Kdc, addresses: list[str], tmp_path: Path) -> None:
    """alice/client is alice by the rules, a super user; bob is bob, and may not create topics."""
    alice, bob = client(realm, tmp_path, "alice/client"), client(realm, tmp_path, "bob")
    for address in addresses:
        words = ("--bootstrap-server", address, "--command-config")
        jvm.tool("kafka-topics", *words, alice, "--create", "--topic", "t", "--partitions", "1")
        jvm.tool(
            "kafka-console-producer",
            *("--bootstrap-server", address, "--command-config", alice, "--topic", "t"),
            stdin=b"by ticket\n",
        )
        read = jvm.tool(
            "kafka-console-consumer",
            *("--bootstrap-server", address, "--command-config", alice, "--topic", "t"),
            *("--from-beginning", "--max-messages", "1"),
        )
        assert read.strip() == "by ticket"
        assert jvm.tool("kafka-topics", *words, bob, "--list").split() == []
        with pytest.raises(jvm.ToolError, match=r"Authorization"):
            jvm.tool("kafka-topics", *words, bob, "--create", "--topic", "u")


def test_librdkafka_is_a_user_by_its_ticket(realm: Kdc, addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.folder / "alice_client.keytab"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.folder}/ccache")
    for address in addresses:
        options = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.kinit.cmd": "",
        }
        try:
            admin = AdminClient(options)
        except KafkaException as err:
            # The wheels of PyPI are built without it.
            assert "No provider for SASL mechanism GSSAPI" in str(err)
            continue
        assert admin.list_topics(timeout=60).brokers
