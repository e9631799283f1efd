"""TLS listeners: stores, protocols, client certificates, what a wrong client reads, and stores that change."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.monitoring.monitor import tls_of
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.security.listener_security import ListenerSecurity
from kafka_shim.security.sasl.scram import Credentials
from kafka_shim.security.tls.authority import HOSTS, CertificateAuthority
from kafka_shim.security.tls.context import make_context, openssl_name
from kafka_shim.security.tls.mapping_rules import MappingRules
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce
from kafka_shim.tests.security.sasl_client import listener_options, log_in_plain, plain_jaas
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection, WireClientError

LISTENERS = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0"


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def store_options(authority: CertificateAuthority, name: str = "broker") -> dict[str, str]:
    key, chain = authority.issue(name)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate,
    }


@pytest.fixture(scope="module")
def secured(authority: CertificateAuthority) -> Iterator[Broker]:
    options = store_options(authority)
    options |= {"listener.name.ssl.ssl.client.auth": "requested", "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U"}
    with Broker(listen=LISTENERS, **options, **listener_options("SASL_SSL", PLAIN=plain_jaas(alice="a"))) as running:
        yield running


def address(broker: Broker, name: str) -> str:
    (found,) = [one for one in broker._word(1).split(",") if one.startswith(f"{name}://")]
    return found.partition("://")[2]


def tls_connection(
    broker: Broker,
    authority: CertificateAuthority,
    name: str = "SSL",
    client: tuple[str, str] | None = None,
    tmp_path: Path | None = None,
    **limits: ssl.TLSVersion,
) -> Connection:
    context = ssl.create_default_context(cadata=authority.certificate)
    for attribute, version in limits.items():
        setattr(context, attribute, version)
    if client is not None:
        path = tmp_path / "client.pem"
        path.write_text("".join(client))
        context.load_cert_chain(path)
    connection = Connection(address(broker, name))
    connection._socket = context.wrap_socket(connection._socket, server_hostname="localhost")
    return connection


def principals(broker: Broker) -> set[str]:
    return broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})


@pytest.mark.option(
    "ssl.client.auth",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
)
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_each_self_signed_certificate_of_the_truststore_is_trusted(
    authority: CertificateAuthority, tmp_path: Path, version: str
):
    """OpenSSL looks for an issuer by its name alone, and of several of one name it took the first; Java tries each. A
    certificate that is not in the store is still refused."""
    ones = [CertificateAuthority("one name") for _ in range(4)]
    trusted = "".join(one.certificate for one in ones[:3])
    options = {**store_options(authority), "ssl.truststore.certificates": trusted, "ssl.client.auth": "required"}
    limits = {"maximum_version": ssl.TLSVersion[version]}

    def connects(one: CertificateAuthority) -> bool:
        key = one._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        try:
            with tls_connection(
                running, authority, client=(key, one.certificate), tmp_path=tmp_path, **limits
            ) as client:
                return bool(client.request(MetadataRequest(topics=[]), 12).brokers)
        except (OSError, WireClientError):
            return False

    with Broker(listen=LISTENERS.rpartition(",")[0], **options) as running:
        assert [connects(one) for one in ones] == [True, True, True, False]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_client_produces_and_fetches_megabytes(secured: Broker, authority: CertificateAuthority, version: str):
    limits = {"maximum_version": ssl.TLSVersion[version]}
    with tls_connection(secured, authority, **limits) as client:
        assert client._socket.version() == version.replace("_", ".")
        make_topic(client, version, partitions=1)
        for _ in range(8):
            assert produce(client, version, 0, batch(bytes(900_000))).error_code == 0
        assert len(bytes(fetch(client, version, 0, 0, partition_max_bytes=1 << 24).records)) > 7_000_000
        assert "User:ANONYMOUS" in principals(secured)


def test_broken_record_during_an_answer_ends_the_connection(secured: Broker, authority: CertificateAuthority, caplog):
    with tls_connection(secured, authority) as client:
        make_topic(client, "broken", partitions=1)
        for _ in range(12):
            assert produce(client, "broken", 0, batch(bytes(900_000))).error_code == 0
        client.send(fetch_request({("broken", 0): 0}, partition_max_bytes=1 << 24, max_bytes=1 << 24), 12)
        until(secured, lambda: len(secured._server._registry.connections) == 1)
        (one,) = secured.call(lambda: list(secured._server._registry.connections))
        until(secured, lambda: one._network_send is not None)
        with socket.socket(fileno=os.dup(client._socket.fileno())) as beneath:
            beneath.settimeout(60)
            beneath.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            until(secured, lambda: one.is_closing)
            assert secured.call(one._transport.is_closing)
            # What the broker has encrypted arrives, then the end.
            with contextlib.suppress(ConnectionResetError):
                while beneath.recv(1 << 16):
                    pass
    until(secured, lambda: one not in secured._server._registry.connections)
    assert caplog.text.count("TLS failed") == 1
    assert secured.state.metrics.errors_unexpected == 0


def test_sasl_runs_inside_tls(secured: Broker, authority: CertificateAuthority):
    with tls_connection(secured, authority, "SASL_SSL") as client:
        assert log_in_plain(client, "alice", "a").error_code == 0
        assert client.request(MetadataRequest(topics=[]), 12).brokers
        assert "User:alice" in principals(secured)


def test_a_strict_client_trusts_the_authority(secured: Broker, authority: CertificateAuthority):
    """Python's default contexts are strict from 3.13 on: they found no authority key identifier."""
    context = ssl.create_default_context(cadata=authority.certificate)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    host, _, port = address(secured, "SSL").rpartition(":")
    bare = socket.create_connection((host, int(port)), timeout=60)
    with bare, context.wrap_socket(bare, server_hostname=host) as client:
        assert client.version() == "TLSv1.3"


@pytest.mark.option("ssl.principal.mapping.rules")
def test_a_certificate_makes_a_principal_by_the_rules(secured: Broker, authority, tmp_path: Path):
    with tls_connection(secured, authority, client=authority.issue("carol"), tmp_path=tmp_path) as client:
        assert client.request(MetadataRequest(topics=[]), 12).brokers
        assert "User:CAROL" in principals(secured)


@pytest.mark.parametrize(
    ("issue", "words"),
    [
        (lambda authority: CertificateAuthority("other").issue("eve"), "not signed by a certificate of ssl.truststore"),
        (lambda authority: authority.issue("late", days=-1), "certificate has expired"),
    ],
)
def test_a_foreign_or_expired_certificate_is_refused(secured, authority, tmp_path, caplog, issue, words):
    client = tls_connection(secured, authority, client=issue(authority), tmp_path=tmp_path)
    with client, pytest.raises(WireClientError):
        client.request(MetadataRequest(topics=[]), 12)
    assert words in caplog.text
    assert secured.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize(
    ("listener", "start", "words"),
    [
        ("SSL", b"\0\0\0\x10\0\x12\0\x03", "the client speaks Kafka's protocol without TLS, this listener is SSL"),
        ("SASL_SSL", b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP, this listener is SASL_SSL\n"),
        ("SSL", b"\x15\x03\x01\x00\x02\x02\x50", "the client ended TLS before it began"),
        ("PLAINTEXT", b"\x15\x03\x01\x00\x02\x02\x50", "the client speaks TLS, this listener is PLAINTEXT"),
        ("PLAINTEXT", b"\x16\x03\x01\x02\x00\x01\x00", "the client speaks TLS, this listener is PLAINTEXT"),
        ("PLAINTEXT", b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP, this listener is PLAINTEXT"),
    ],
)
def test_another_protocol_is_named_in_one_line(secured: Broker, caplog, listener, start, words):
    host, port = address(secured, listener).split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        sock.sendall(start)
        assert sock.recv(100) == b""
    assert caplog.text.count(words) == 1


def test_a_handshake_must_be_in_time(authority: CertificateAuthority):
    with Broker(listen="SSL://127.0.0.1:0", clock="virtual", **store_options(authority)) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as sock:
            sock.sendall(b"\x16\x03\x01")
            until(broker, lambda: len(broker._server._registry.connections))
            broker.clock.advance("39s")
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""


def alter(broker: Broker, listener: str = "ssl", **values: str) -> tuple[int, str | None]:
    """Change options of one listener's stores; a value None deletes."""
    configs = [
        AlterableConfig(
            name=f"listener.name.{listener}.ssl.{name.replace('_', '.')}", config_operation=value is None, value=value
        )
        for name, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
    with Connection(address(broker, "PLAINTEXT")) as admin:
        (result,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
    return result.error_code, result.error_message


def serial_of(broker: Broker, authority: CertificateAuthority) -> str:
    """The serial number of the certificate that clients see."""
    with tls_connection(broker, authority) as client:
        return client._socket.getpeercert()["serialNumber"]


def test_a_new_store_is_taken_over_and_a_bad_one_refused(secured: Broker, authority: CertificateAuthority):
    before = serial_of(secured, authority)
    key, chain = authority.issue("broker")
    other, _ = authority.issue("broker")
    code, message = alter(secured, keystore_key=other, keystore_certificate_chain=chain)
    assert code == ErrorCode.INVALID_REQUEST
    assert "does not belong to" in message
    assert "PRIVATE" not in message
    assert serial_of(secured, authority) == before
    assert alter(secured, keystore_key=key, keystore_certificate_chain=chain) == (0, None)
    assert serial_of(secured, authority) != before


def test_a_java_class_for_one_listener_is_refused_while_it_runs_as_at_the_start(secured: Broker):
    """It would be stored, and the listener would go on with a TLS that is not that of the class."""
    code, message = alter(secured, engine_factory_class="com.example.Engines")
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None
    assert "listener.name.ssl.ssl.engine.factory.class" in message
    built_in = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    assert alter(secured, engine_factory_class=built_in) == (0, None)


def test_a_change_of_options_is_whole_although_no_descriptor_is_left_for_a_store(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """It was stored, answered with an error, and what the request names behind the broker was not in force."""

    def no_descriptor(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    changes = [(4, "1", "log.retention.ms", "1000000"), (2, "t", "max.message.bytes", "100")]
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)])
        for kind, name, key, value in changes
    ]
    listen = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    with Broker(listen=listen, **store_options(authority)) as running:
        with Connection(address(running, "PLAINTEXT")) as admin:
            make_topic(admin, "t", partitions=1)
            monkeypatch.setattr(os, "memfd_create", no_descriptor, raising=False)
            results = admin.request(IncrementalAlterConfigsRequest(resources=resources)).responses
            monkeypatch.undo()
            config = running.call(lambda: running.state.logs.get("t", 0).config)
        serial_of(running, authority)
    assert [one.error_code for one in results] == [0, 0]
    assert config.max_message_bytes == 100
    assert "listener SSL keeps its security as it was" in caplog.text


@pytest.mark.option("ssl.client.auth", "ssl.enabled.protocols", "ssl.principal.mapping.rules", "ssl.allow.dn.changes")
def test_a_running_listener_takes_over_stores_alone_also_after_a_restart(
    authority: CertificateAuthority, tmp_path: Path
):
    """As in Kafka: what asks clients for certificates cannot be taken from a running listener."""
    options = store_options(authority) | {"ssl.client.auth": "required"}
    listen = {"listen": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", "data_dir": tmp_path / "data"}

    def principal() -> str:
        with tls_connection(broker, authority, client=authority.issue("alice"), tmp_path=tmp_path) as client:
            assert client.ranges()
            (found,) = principals(broker) - {"User:ANONYMOUS"}
            return found

    def is_refused_without_a_certificate() -> bool:
        try:
            with tls_connection(broker, authority) as client:
                return not client.ranges()
        except (OSError, WireClientError):
            return True

    with Broker(**listen, **options) as broker:
        assert alter(broker, client_auth="requested", principal_mapping_rules="RULE:^CN=(.*)$/$1/U") == (0, None)
        assert alter(broker, allow_dn_changes="true", enabled_protocols="TLSv1.2") == (0, None)
        assert is_refused_without_a_certificate()
        assert principal() == "User:CN=alice"
        key, chain = authority.issue("another")
        code, message = alter(broker, keystore_key=key, keystore_certificate_chain=chain)
        assert code == ErrorCode.INVALID_REQUEST
        assert "DistinguishedName does not match" in message
        code, message = alter(broker, principal_mapping_rules="RULE:^CN=")
        assert code == ErrorCode.INVALID_REQUEST
    with Broker(**listen, **options) as broker:
        assert is_refused_without_a_certificate()
        assert principal() == "User:CN=alice"


def test_a_listener_that_is_opened_later_has_what_was_stored_before(authority: CertificateAuthority):
    config = BrokerConfig.parse(store_options(authority))
    stored = ListenerOptions(config, "SSL", {"listener.name.ssl.ssl.client.auth": "required"})
    for is_of_start, mode in ((True, ssl.CERT_NONE), (False, ssl.CERT_REQUIRED)):
        security = ListenerSecurity(
            "SSL", stored, Credentials(lambda user, mechanism: None), VirtualClock(), is_of_start=is_of_start
        )
        assert security.tls_context().verify_mode is mode
        security.reload(ListenerOptions(config, "SSL", {}))
        assert security.tls_context().verify_mode is mode


@pytest.mark.parametrize(("changed", "contexts"), [("ssl.keystore.type", 1), ("ssl.client.auth", 2)])
def test_a_check_makes_a_context_for_each_listener_that_the_options_could_have(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch, changed: str, contexts: int
):
    """An open listener takes over the stores, and keeps the rest; one that is opened later has both."""
    config = BrokerConfig.parse(store_options(authority))
    security = ListenerSecurity(
        "SSL", ListenerOptions(config, "SSL", {}), Credentials(lambda user, mechanism: None), VirtualClock()
    )
    made: list[ListenerOptions] = []

    def counted(options: ListenerOptions, *, uses_sasl: bool):
        made.append(options)
        return make_context(options, uses_sasl=uses_sasl)

    monkeypatch.setattr("kafka_shim.security.tls.context.make_context", counted)
    value = {"ssl.keystore.type": "PEM", "ssl.client.auth": "requested"}[changed]
    security.check(ListenerOptions(config, "SSL", {f"listener.name.ssl.{changed}": value}))
    assert len(made) == contexts


@pytest.mark.parametrize(
    "named",
    [{"inter.broker.listener.name": "SSL"}, {"security.inter.broker.protocol": "SSL"}],
    ids=["name", "protocol"],
)
@pytest.mark.parametrize("asks", ["none", "required"])
def test_stores_of_the_listener_between_brokers_stay_such_that_brokers_can_connect(
    authority: CertificateAuthority, named: dict[str, str], asks: str
):
    foreign = CertificateAuthority("another CA")
    options = {**store_options(authority), **named, "ssl.client.auth": asks}
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options) as broker:
        (key, chain), both = foreign.issue("broker"), authority.certificate + foreign.certificate
        new = {"keystore_key": key, "keystore_certificate_chain": chain}
        for change in ({"truststore_certificates": foreign.certificate}, new):
            code, message = alter(broker, **change)
            assert (code, "brokers could not connect to each other" in str(message)) == (
                ErrorCode.INVALID_REQUEST,
                True,
            )
        # All at once is no way either: those that have not changed yet would be cut off.
        assert alter(broker, **new, truststore_certificates=foreign.certificate)[0] == ErrorCode.INVALID_REQUEST
        assert alter(broker, truststore_certificates=both) == (0, None)
        assert alter(broker, **new) == (0, None)
        key, chain = authority.issue("broker")
        assert alter(broker, keystore_key=key, keystore_certificate_chain=chain) == (0, None)


def test_a_start_needs_no_trust_in_its_own_keystore(authority: CertificateAuthority):
    """A known difference: Kafka does not start so."""
    options = {
        **store_options(authority),
        "ssl.truststore.certificates": CertificateAuthority("another CA").certificate,
    }
    named = {"inter.broker.listener.name": "SSL"}
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options, **named) as broker:
        with tls_connection(broker, authority) as client:
            assert client.ranges()
        # What it starts with is what it is held to from now on.
        key, chain = authority.issue("broker")
        code, _ = alter(broker, keystore_key=key, keystore_certificate_chain=chain)
        assert code == ErrorCode.INVALID_REQUEST


@pytest.mark.option("ssl.allow.dn.changes", "ssl.allow.san.changes")
@pytest.mark.parametrize(
    ("name", "hosts", "option", "words"),
    [
        ("another", HOSTS, "ssl.allow.dn.changes", "DistinguishedName does not match"),
        ("broker", ("localhost",), "ssl.allow.san.changes", "SubjectAltNames do not match"),
    ],
)
def test_a_certificate_of_another_name_replaces_none_unless_that_is_allowed(
    authority: CertificateAuthority, name: str, hosts: tuple[str, ...], option: str, words: str
):
    key, chain = authority.issue(name, hosts)
    for allowed in ("false", "true"):
        options = store_options(authority) | {option: allowed}
        with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options) as broker:
            before = serial_of(broker, authority)
            code, message = alter(broker, keystore_key=key, keystore_certificate_chain=chain)
            if allowed == "true":
                assert (code, message) == (0, None)
                assert serial_of(broker, authority) != before
            else:
                assert code == ErrorCode.INVALID_REQUEST
                assert words in message
                assert serial_of(broker, authority) == before


@pytest.mark.option("kafka.shim.disconnect.changed.users")
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
def test_sessions_that_the_truststore_let_in_go_on_when_it_changes_unless_they_are_to_end(
    authority: CertificateAuthority, tmp_path: Path, ends: bool
):
    """A client whose authority was taken away has its connection and does not get another. The broker's own
    certificate, and the other listener, have nothing to do with it."""
    other = CertificateAuthority("other")
    both = authority.certificate + other.certificate
    options = {
        **store_options(authority),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.ssl.ssl.truststore.certificates": both,
        "kafka.shim.disconnect.changed.users": str(ends).lower(),
        **listener_options("SASL_SSL", PLAIN=plain_jaas(alice="a")),
    }

    def connect(issuer: CertificateAuthority) -> Connection:
        return tls_connection(broker, authority, client=issuer.issue("alice"), tmp_path=tmp_path)

    def goes_on(client: Connection) -> bool:
        try:
            return bool(client.request(MetadataRequest(topics=[]), 12).brokers)
        except (OSError, WireClientError):
            return False

    with Broker(listen=LISTENERS, **options) as broker, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(one)) for one in (authority, other)]
        by_password = stack.enter_context(tls_connection(broker, authority, "SASL_SSL"))
        assert log_in_plain(by_password, "alice", "a").error_code == 0
        assert [goes_on(client) for client in clients] == [True, True]
        key, chain = authority.issue("broker")
        assert alter(broker, keystore_key=key, keystore_certificate_chain=chain) == (0, None)
        assert [goes_on(client) for client in clients] == [True, True]
        assert alter(broker, truststore_certificates=authority.certificate) == (0, None)
        assert [goes_on(client) for client in (*clients, by_password)] == [not ends, not ends, True]
        again = [stack.enter_context(connect(one)) for one in (authority, other)]
        assert [goes_on(client) for client in again] == [True, False]


def test_more_names_and_a_truststore_that_was_not_there(authority: CertificateAuthority):
    options = {name: text for name, text in store_options(authority).items() if "truststore" not in name}
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options) as broker:
        key, chain = authority.issue("broker", ("localhost", "127.0.0.1", "::1", "more.example"))
        assert alter(broker, keystore_key=key, keystore_certificate_chain=chain) == (0, None)
        code, message = alter(broker, truststore_type="PEM", truststore_certificates=authority.certificate)
        assert code == ErrorCode.INVALID_REQUEST
        assert "Cannot add SSL truststore" in message


def test_files_that_changed_are_read_again_at_the_next_change_of_the_brokers_options(
    authority: CertificateAuthority, tmp_path: Path, caplog
):
    """Kafka's rule (KAFKA-14136): an alteration reads the files again, also one that sets what is set. A bad file keeps
    the old store in force and stops no change of other options."""
    path = tmp_path / "keystore.pem"
    path.write_text("".join(authority.issue("broker")))
    path.chmod(0o600)
    options = {"ssl.keystore.type": "PEM", "listener.name.ssl.ssl.keystore.location": str(path)}
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **options) as broker:
        first = serial_of(broker, authority)
        path.write_text("".join(authority.issue("broker")))
        assert serial_of(broker, authority) == first
        assert alter(broker, keystore_location=str(path)) == (0, None)
        second = serial_of(broker, authority)
        assert second != first
        path.write_text("".join(authority.issue("broker")))
        assert alter(broker, keystore_location=str(path)) == (0, None)
        third = serial_of(broker, authority)
        assert third != second
        path.write_text("".join(authority.issue("another")))
        assert alter(broker, keystore_location=str(path)) == (0, None)
        assert serial_of(broker, authority) == third
        assert "keeps its security as it was" in caplog.text
        assert "DistinguishedName does not match" in caplog.text
        path.unlink()
        assert alter(broker, keystore_location=str(path)) == (0, None)
        assert serial_of(broker, authority) == third


def test_a_stored_keystore_that_is_gone_stops_no_start(authority: CertificateAuthority, tmp_path: Path, caplog):
    given, stored = tmp_path / "given.pem", tmp_path / "stored.pem"
    for path in (given, stored):
        path.write_text("".join(authority.issue("broker")))
        path.chmod(0o600)
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(given)}
    made = partial(Broker, listen="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", data_dir=tmp_path / "data", **options)
    with made() as broker:
        first = serial_of(broker, authority)
        assert alter(broker, keystore_location=str(stored)) == (0, None)
        second = serial_of(broker, authority)
    with made() as broker:
        assert serial_of(broker, authority) == second != first
    stored.unlink()
    with made() as broker:
        assert serial_of(broker, authority) == first
    (line,) = (line for line in caplog.messages if "is opened without its stored options" in line)
    assert f"cannot read {stored}" in line
    given.unlink()
    with pytest.raises(ConfigError, match=str(stored)), made():
        pass


def test_a_key_that_everybody_can_read_is_a_door_left_open(authority: CertificateAuthority, tmp_path: Path, caplog):
    path = tmp_path / "keystore.pem"
    path.write_text("".join(authority.issue("broker")))
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    path.chmod(0o640)
    with Broker(listen="SSL://127.0.0.1:0", **options):
        assert "can read" not in caplog.text
    path.chmod(0o644)
    with Broker(listen="SSL://127.0.0.1:0", **options):
        (said,) = [one.getMessage() for one in caplog.records if "every user of this machine" in one.getMessage()]
        assert said.startswith(f"listener SSL: ssl.keystore.location: every user of this machine can read {path}")
    caplog.clear()
    with Broker(listen="SSL://127.0.0.1:0", **store_options(authority)):
        assert "can read" not in caplog.text
    config = BrokerConfig.parse(options)
    config.strict_security = True
    with pytest.raises(ConfigError, match=r"--strict-security: listener SSL: ssl\.keystore\.location"):
        ListenerSecurity(
            "SSL", ListenerOptions(config, "SSL"), Credentials(lambda user, mechanism: None), VirtualClock()
        )


@pytest.mark.parametrize(
    ("begins", "ends", "words"),
    [(-2, -1, "has expired ("), (1, 2, "is not valid before "), (-1, 1, None)],
    ids=["expired", "early", "valid"],
)
def test_a_certificate_that_is_not_valid_now_is_served_and_said(caplog, begins, ends, words):
    """Only clients would say so, each in words of its own. --strict-security is about doors left open, not about it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now + datetime.timedelta(days=begins))
    certificate = builder.not_valid_after(now + datetime.timedelta(days=ends)).sign(key, hashes.SHA256())
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "ssl.keystore.certificate.chain": certificate.public_bytes(Encoding.PEM).decode(),
        "kafka.shim.http.listener": "https://127.0.0.1:0",
    }
    config = BrokerConfig.parse(options)
    config.strict_security = True
    ListenerSecurity("SSL", ListenerOptions(config, "SSL"), Credentials(lambda user, mechanism: None), VirtualClock())
    tls_of(config)
    said = [line.partition(": ssl.keystore: the certificate ") for line in caplog.messages]
    assert [one[0] for one in said] == ([] if words is None else ["listener SSL", "kafka.shim.http.listener"])
    assert all(one[2].startswith(str(words)) for one in said)


def test_a_weak_certificate_is_served_as_java_serves_it_and_said(caplog):
    """OpenSSL's own level refuses it; certificates of test set-ups are often like that."""
    issuer_key = rsa.generate_private_key(65537, 2048)
    key = rsa.generate_private_key(65537, 1024)
    issuer, name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in ("old", "localhost"))
    now = datetime.datetime.now(datetime.UTC)

    def certificate(subject: x509.Name, public_key: rsa.RSAPublicKey) -> str:
        builder = x509.CertificateBuilder(issuer, subject, public_key, x509.random_serial_number())
        builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        return builder.sign(issuer_key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    chain = certificate(name, key.public_key()) + certificate(issuer, issuer_key.public_key())
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "ssl.keystore.certificate.chain": chain,
    }
    with Broker(listen="SSL://127.0.0.1:0", **options) as broker:
        assert "a certificate is weak" in caplog.text
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=1")
        with Connection(address(broker, "SSL")) as client:
            client._socket = context.wrap_socket(client._socket, server_hostname="localhost")
            assert client.request(MetadataRequest(topics=[]), 12).brokers


def test_a_key_of_another_certificate_is_named_as_that(authority: CertificateAuthority):
    (key, _), (_, chain) = authority.issue("one"), authority.issue("two")
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    with pytest.raises(ConfigError, match="the private key does not belong to the first certificate"):
        Broker(listen="SSL://127.0.0.1:0", **options).start()


@pytest.mark.option("ssl.key.password", "ssl.keystore.location", "ssl.keystore.password")
@pytest.mark.java
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_of_java_are_read(tmp_path: Path, kind: str):
    path = str(tmp_path / kind)
    make = ["keytool", "-genkeypair", "-alias", "b", "-keyalg", "EC", "-dname", "CN=b", "-storepass", "secret1"]
    key_password = "secret1" if kind == "PKCS12" else "secret2"
    subprocess.run([*make, "-storetype", kind, "-keystore", path, "-keypass", key_password], check=True, timeout=60)
    options = {"ssl.keystore.location": path, "ssl.keystore.password": "secret1", "ssl.key.password": key_password}
    for given in ("PKCS12", "JKS"):  # Java looks into the file, whichever of the two is given
        with Broker(listen="SSL://127.0.0.1:0", **options, **{"ssl.keystore.type": given}):
            pass
    for wrong in ("ssl.keystore.password", "ssl.key.password"):
        with pytest.raises(ConfigError, match=r"is ssl\.key(store)?\.password right"):
            Broker(listen="SSL://127.0.0.1:0", **options | {wrong: "x"}).start()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ssl.keystore.key": "x"}, "must be given together"),
        ({}, "TLS needs a certificate"),
        ({"ssl.keystore.location": "/nowhere"}, "cannot read /nowhere"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.2 or TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "cannot choose among the suites of TLS 1.3"),
        ({"ssl.principal.mapping.rules": "RULE:("}, "Invalid rule"),
    ],
)
def test_a_bad_option_stops_the_start(authority: CertificateAuthority, options: dict[str, str], words: str):
    given = store_options(authority) if any(name in words for name in ("TLSv1.2", "suites", "rule")) else {}
    with pytest.raises(ConfigError, match=words):
        Broker(listen="SSL://127.0.0.1:0", **given, **options).start()


@pytest.mark.option("ssl.cipher.suites")
def test_suites_have_javas_names(authority: CertificateAuthority):
    names = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")
    assert [openssl_name(name) for name in names] == ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"]
    assert openssl_name("TLS_RSA_WITH_AES_128_CBC_SHA256") == "AES128-SHA256"
    options = store_options(authority) | {"ssl.cipher.suites": names[0]}
    with Broker(listen="SSL://127.0.0.1:0", **options) as broker, tls_connection(broker, authority) as client:
        assert client._socket.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.option("ssl.enabled.protocols")
@pytest.mark.parametrize("names", ["TLSv1.2", "TLSv1.2,TLSv1.1,TLSv1"])
def test_versions_of_tls_are_those_that_are_enabled(authority: CertificateAuthority, names: str):
    """Java knows the names of versions that it never speaks any more."""
    options = store_options(authority) | {"ssl.enabled.protocols": names}
    with Broker(listen="SSL://127.0.0.1:0", **options) as broker:
        with tls_connection(broker, authority) as client:
            assert client._socket.version() == "TLSv1.2"
        with pytest.raises(ssl.SSLError):
            tls_connection(broker, authority, minimum_version=ssl.TLSVersion.TLSv1_3)


@pytest.mark.option("ssl.truststore.location")
def test_certificates_of_a_file_are_trusted(authority: CertificateAuthority, tmp_path: Path):
    path = tmp_path / "trusted.pem"
    path.write_text(authority.certificate)
    options = {name: text for name, text in store_options(authority).items() if name != "ssl.truststore.certificates"}
    options |= {"ssl.truststore.location": str(path), "ssl.client.auth": "required"}
    with (
        Broker(listen=LISTENERS.rpartition(",")[0], **options) as broker,
        tls_connection(broker, authority, client=authority.issue("carol"), tmp_path=tmp_path) as client,
    ):
        assert client.request(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.java
@pytest.mark.option("ssl.truststore.password")
def test_a_truststore_of_java_is_read_with_its_password(authority: CertificateAuthority, tmp_path: Path):
    certificate, path = tmp_path / "trusted.pem", tmp_path / "trusted.p12"
    certificate.write_text(authority.certificate)
    make = ["keytool", "-importcert", "-noprompt", "-alias", "a", "-file", str(certificate), "-storepass", "secret1"]
    subprocess.run([*make, "-storetype", "PKCS12", "-keystore", str(path)], check=True, timeout=60)
    given = store_options(authority)
    del given["ssl.truststore.certificates"]
    given |= {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": str(path), "ssl.client.auth": "required"}
    with (
        Broker(listen=LISTENERS.rpartition(",")[0], **given, **{"ssl.truststore.password": "secret1"}) as broker,
        tls_connection(broker, authority, client=authority.issue("carol"), tmp_path=tmp_path) as client,
    ):
        assert client.request(MetadataRequest(topics=[]), 12).brokers


def test_mapping_rules_are_kafkas():
    rules = MappingRules("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=(.*?),OU=(.*?)$/$1@$2/U ,DEFAULT")
    assert rules.name_of("CN=Duke,OU=ServiceUsers,O=Org") == "duke"
    assert rules.name_of("CN=Duke,OU=sales") == "DUKE@SALES"
    assert rules.name_of("O=Org") == "O=Org"
    assert MappingRules("RULE:^CN=.*$/$0/").name_of("CN=Duke") == "CN=Duke"
    assert MappingRules("RULE:^CN=(.)(.*)$/$10$2/").name_of("CN=Duke") == "D0uke"
    with pytest.raises(ConfigError, match="no rule"):
        MappingRules("RULE:^CN=a$/b/").name_of("CN=c")
