"""Listeners: added ones, in this order, TLS, logins, the queue of connections."""

from __future__ import annotations

import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kafka_shim.compat.tests.admin.test_data_directory import await_topic
from kafka_shim.compat.tests.compat.differences.conftest import LOGIN_MS, option, until
from kafka_shim.errors import ErrorCode
from kafka_shim.security.principals import MOST_PARTS
from kafka_shim.security.sasl.mechanism import LONGEST_MESSAGE_BYTES
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets import Target, TargetError, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.wire_client import Connection, WireClientError

ADDED = {"SUITES": "SSL", "NAMES": "SSL", "LOGINS": "SASL_PLAINTEXT", "ADDED": "PLAINTEXT"}
AUTHORITY = CertificateAuthority()


@pytest.fixture(scope="module")
def ports(brokers: tuple[Target, Target]) -> list[dict[str, int]]:
    """Of both brokers, by the names of the listeners. The last one is open."""
    return [_add_listeners(target) for target in brokers]


def _add_listeners(target: Target) -> dict[str, int]:
    ports = dict(zip(ADDED, free_ports(len(ADDED)), strict=True))
    key, chain = AUTHORITY.issue("broker")
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a";'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    values = {
        "listener.name.suites.ssl.keystore.type": "PEM",
        "listener.name.suites.ssl.keystore.key": key,
        "listener.name.suites.ssl.keystore.certificate.chain": chain,
        "listener.name.suites.ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
        "listener.name.names.ssl.keystore.type": "PEM",
        "listener.name.names.ssl.keystore.key": key,
        "listener.name.names.ssl.keystore.certificate.chain": chain,
        "listener.name.names.ssl.truststore.type": "PEM",
        "listener.name.names.ssl.truststore.certificates": AUTHORITY.certificate,
        "listener.name.names.ssl.client.auth": "required",
        "listener.name.logins.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.logins.plain.sasl.jaas.config": users,
        "listener.name.logins.scram-sha-256.sasl.jaas.config": scram,
    }
    with Connection(target.bootstrap) as connection:
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
        protocols = [f"{name}:{protocol}" for name, protocol in ADDED.items()]
        map_ = "listener.security.protocol.map"
        values["listeners"] = ",".join([option(connection, "listeners").value, *listeners])
        values[map_] = ",".join([option(connection, map_).value, "CONTROLLER:PLAINTEXT", *protocols])
        changes = [{"name": name, "config_operation": 0, "value": value} for name, value in values.items()]
        resource = {"resource_type": 4, "resource_name": "1", "configs": changes}
        made = connection.request(ask.make("IncrementalAlterConfigs", resources=[resource]), 1).responses[0]
    assert made.error_code == 0, made.error_message
    until(lambda: answers("127.0.0.1", ports["ADDED"]) or None)
    return ports


def test_clients_of_an_added_listener(each, ports) -> None:
    def create(connection: Connection) -> None:
        ask.create_topic(connection, "through-all")
        await_topic(connection, "through-all", is_there=True)

    def told(port: int) -> tuple[list[int], int]:
        with Connection(f"127.0.0.1:{port}") as added:
            metadata = added.request(ask.make("Metadata", topics=[{"name": "through-all"}]), 12)
        return [one.port for one in metadata.brokers], metadata.topics[0].partitions[0].error_code

    each(create)
    ours, theirs = (of["ADDED"] for of in ports)
    assert told(ours) == ([ours], ErrorCode.NONE)
    assert told(theirs) == ([], ErrorCode.LISTENER_NOT_FOUND)


def test_suites_of_tls_1_3(ports) -> None:
    def suite(port: int) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            return "not opened"
        with plain, context.wrap_socket(plain) as wrapped:
            return str(wrapped.cipher()[0])

    assert [suite(of["SUITES"]) for of in ports] == ["not opened", "TLS_AES_128_GCM_SHA256"]


def test_the_time_of_a_login(ports) -> None:
    def is_closed(port: int, within_s: float) -> bool:
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.settimeout(within_s)
            try:
                return silent.recv(1) == b""
            except TimeoutError:
                return False

    ours, theirs = (of["LOGINS"] for of in ports)
    assert is_closed(ours, 60)
    assert not is_closed(theirs, LOGIN_MS / 1000 + 1)


def test_a_name_in_a_certificate_of_many_parts(ports, tmp_path) -> None:
    def is_served(port: int, parts: int) -> bool:
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"u{at}") for at in range(parts)])
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path = tmp_path / f"{port}-{parts}.pem"
        path.write_bytes(pem + AUTHORITY._signed(name, key).public_bytes(Encoding.PEM))
        context = ssl.create_default_context(cadata=AUTHORITY.certificate)
        context.load_cert_chain(path)
        with Connection(f"127.0.0.1:{port}") as client:
            try:
                client._socket = context.wrap_socket(client._socket, server_hostname="localhost")
                return bool(client.ranges())
            except (WireClientError, OSError):
                return False

    parts = (MOST_PARTS, MOST_PARTS + 1)
    assert [[is_served(of["NAMES"], count) for count in parts] for of in ports] == [[True, False], [True, True]]


def test_a_long_message_of_a_login(each, ports) -> None:
    def add_user(connection: Connection) -> None:
        user = {"name": "a", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p" * 32}
        request = ask.make("AlterUserScramCredentials", deletions=[], upsertions=[user])
        assert connection.request(request, 0).results[0].error_code == 0

    def first_answer(port: int, nonce: bytes) -> int | str:
        with Connection(f"127.0.0.1:{port}") as client:
            try:
                assert client.request(ask.make("SaslHandshake", mechanism="SCRAM-SHA-256"), 1).error_code == 0
                return client.request(ask.make("SaslAuthenticate", auth_bytes=b"n,,n=a,r=" + nonce), 2).error_code
            except WireClientError:
                return "closed"  # on a busy machine: the time of a login is over

    each(add_user)
    ours, theirs = (of["LOGINS"] for of in ports)
    # Kafka has the user some time after its answer.
    until(lambda: first_answer(theirs, b"x") == ErrorCode.NONE or None)
    long = b"x" * (LONGEST_MESSAGE_BYTES + 1)
    assert first_answer(ours, long) in (ErrorCode.SASL_AUTHENTICATION_FAILED, "closed")
    assert first_answer(theirs, long) == ErrorCode.NONE


def test_a_listener_without_its_logins(each, ports) -> None:
    def forget(connection: Connection) -> int:
        change = {"name": "listener.name.logins.plain.sasl.jaas.config", "config_operation": 1, "value": None}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        return connection.request(request, 1).responses[0].error_code

    assert each(forget) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_changed_logins_of_an_open_listener(each, ports) -> None:
    def change(connection: Connection) -> int:
        users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="changed";'
        change = {"name": "listener.name.logins.plain.sasl.jaas.config", "config_operation": 0, "value": users}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        return connection.request(ask.make("IncrementalAlterConfigs", resources=[resource]), 1).responses[0].error_code

    def login(port: int, password: str) -> int:
        with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:
            assert connection.request(ask.make("SaslHandshake", mechanism="PLAIN"), 1).error_code == 0
            token = f"\0a\0{password}".encode()
            return connection.request(ask.make("SaslAuthenticate", auth_bytes=token), 2).error_code

    assert each(change) == [ErrorCode.NONE, ErrorCode.NONE]
    failed = ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [login(of["LOGINS"], "changed") for of in ports] == [ErrorCode.NONE, failed]
    assert [login(of["LOGINS"], "a") for of in ports] == [failed, ErrorCode.NONE]


def test_the_queue_of_connections(each) -> None:
    def default(connection: Connection) -> str:
        node_id = str(connection.request(ask.make("Metadata", topics=[]), 12).brokers[0].node_id)
        names = ["socket.listen.backlog.size"]
        resource = {"resource_type": 4, "resource_name": node_id, "configuration_keys": names}
        return connection.request(ask.make("DescribeConfigs", resources=[resource]), 4).results[0].configs[0].value

    assert each(default) == ["4096", "50"]


def test_stores_of_the_listener_between_brokers(tmp_path) -> None:
    (keystore, truststore) = (tmp_path / "broker.pem", tmp_path / "other.pem")
    keystore.write_text("".join(AUTHORITY.issue("broker")))
    truststore.write_text(CertificateAuthority("another CA").certificate)
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(truststore),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INSIDE:SSL",
        "inter.broker.listener.name": "INSIDE",
    }
    ours, theirs = make("shim", settings=stores), make("kafka-native", settings=stores)
    ours.bootstrap = "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0"
    broker, inside, controller = free_ports(3)
    theirs.bootstrap, theirs.controller_port = f"127.0.0.1:{broker}", controller
    advertised = f"PLAINTEXT://{theirs.bootstrap},INSIDE://127.0.0.1:{inside}"
    theirs.settings |= {
        "listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": advertised,
    }
    with ours, Connection(ours.bootstrap) as connection:
        assert connection.ranges()
    try:
        with pytest.raises(TargetError, match="ended with status 1"):
            theirs.start()
        assert "can't connect to a server SSLEngine" in theirs.log()
    finally:
        theirs.close()
