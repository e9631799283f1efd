"""GSSAPI against a real KDC and with a real initiator: who gets in, as whom, and what the operator reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.client_security import ClientSecurity
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.security.sasl.gssapi import LOGIN_MODULE
from kafka_shim.targets import kdc
from kafka_shim.targets.kdc import REALM, Kdc
from kafka_shim.tests.security.sasl_client import handshake, send_token
from kafka_shim.wire_client import Connection, WireClientError

gssapi = pytest.importorskip("gssapi", reason="the extra [gssapi] is not installed")
pytestmark = pytest.mark.skipif(not kdc.is_there(), reason="there is no krb5kdc")

SERVICE = "kafka/localhost"
PREFIX = "listener.name.sasl_plaintext."


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    before = dict(os.environ)
    with Kdc(tmp_path_factory.mktemp("kdc")) as running:
        os.environ.update(running.environment)
        for name in (SERVICE, "alice", "bob/host", "http/localhost"):
            running.add(name)
        try:
            yield running
        finally:
            for name in running.environment:
                os.environ.pop(name, None)
            os.environ.update(before)


def options(realm: Kdc, **changed: str) -> dict[str, str]:
    jaas = {
        "useKeyTab": "true",
        "storeKey": "true",
        "keyTab": str(realm.folder / "kafka_localhost.keytab"),
        "principal": f"{SERVICE}@{REALM}",
        **changed,
    }
    words = " ".join(f'{name}="{value}"' for name, value in jaas.items() if value)
    return {
        f"{PREFIX}sasl.enabled.mechanisms": "GSSAPI",
        f"{PREFIX}gssapi.sasl.jaas.config": f"{LOGIN_MODULE} required {words};",
        "sasl.kerberos.service.name": "kafka",
        "connection.failed.authentication.delay.ms": "0",
    }


@pytest.fixture(scope="module")
def broker(realm: Kdc) -> Iterator[Broker]:
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-$2],DEFAULT"}
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm), **rules) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        yield connection


def initiator(realm: Kdc, user: str, service: str = SERVICE) -> Any:
    keytab = realm.folder / f"{user.replace('/', '_')}.keytab"
    name = gssapi.Name(f"{user}@{REALM}", gssapi.NameType.kerberos_principal)
    store = {"client_keytab": str(keytab), "ccache": f"MEMORY:{user.replace('/', '_')}"}
    credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
    target = gssapi.Name(f"{service}@{REALM}", gssapi.NameType.kerberos_principal)
    flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
    return gssapi.SecurityContext(name=target, creds=credentials, usage="initiate", flags=flags)


def establish(client: Connection, context: Any) -> Any:
    """Returns the answer with the offer of security layers, or the first refusal."""
    assert handshake(client, "GSSAPI").error_code == 0
    token = context.step()
    while True:
        answer = send_token(client, token or b"")
        if answer.error_code or context.complete:
            return answer
        token = context.step(bytes(answer.auth_bytes))


def log_in(client: Connection, context: Any, choice: bytes = b"\x01\0\0\0") -> Any:
    offer = establish(client, context)
    if offer.error_code:
        return offer
    assert bytes(context.unwrap(bytes(offer.auth_bytes)).message) == b"\x01\x01\0\0"
    return send_token(client, context.wrap(choice, False).message)


@pytest.mark.parametrize(("user", "principal"), [("alice", "User:alice"), ("bob/host", "User:bob-host")])
def test_a_ticket_makes_its_principal_a_user_by_the_rules(
    broker: Broker, client: Connection, realm: Kdc, user: str, principal: str
):
    # The authorization id that the client asks for is nothing to the broker, as in Kafka.
    answer = log_in(client, initiator(realm, user), b"\x01\0\0\0root")
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert client.request(MetadataRequest(topics=[]), 12).cluster_id
    principals = broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})
    assert principal in principals


@pytest.mark.parametrize("choice", [b"\x02\0\0\0", b"\x01"])
def test_a_security_layer_that_is_not_offered_is_refused(client: Connection, realm: Kdc, choice: bytes, caplog):
    assert log_in(client, initiator(realm, "alice"), choice).error_code == 58
    assert "security layer" in caplog.text


def test_a_ticket_for_another_service_is_refused(client: Connection, realm: Kdc, caplog):
    answer = establish(client, initiator(realm, "alice", "http/localhost"))
    assert answer.error_code == 58
    assert "invalid credentials with SASL mechanism GSSAPI" in answer.error_message
    assert "ticket or message is not accepted" in caplog.text


def test_what_is_no_ticket_is_refused(client: Connection):
    assert handshake(client, "GSSAPI").error_code == 0
    assert send_token(client, b"no ticket").error_code == 58


def test_data_before_the_offer_is_refused(client: Connection, realm: Kdc):
    context = initiator(realm, "alice")
    assert handshake(client, "GSSAPI").error_code == 0
    answer = send_token(client, context.step())
    context.step(bytes(answer.auth_bytes))
    assert context.complete
    assert send_token(client, b"too early").error_code == 58


@pytest.mark.option(
    "sasl.jaas.config",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
)
def test_a_principal_to_which_no_rule_applies_is_refused(realm: Kdc, caplog):
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[2:$1]"}
    with (
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm), **rules) as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        assert log_in(client, initiator(realm, "alice")).error_code == 58
    assert f"No rules apply to alice@{REALM}" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keyTab": "/none.keytab"}, "No such file"),
        ({"keyTab": ""}, "keyTab"),
        ({"useKeyTab": "false"}, "useKeyTab=true"),
        ({"principal": f"nobody@{REALM}"}, "has no key of nobody"),
        ({"serviceName": "other"}, "Conflicting serviceName"),
    ],
)
def test_a_listener_that_could_accept_no_ticket_does_not_start(realm: Kdc, changed: dict[str, str], message: str):
    with pytest.raises(ConfigError, match=message):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm, **changed)).start()


def test_the_name_of_the_service_is_needed(realm: Kdc):
    given = {name: value for name, value in options(realm).items() if name != "sasl.kerberos.service.name"}
    with pytest.raises(ConfigError, match="No serviceName defined"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **given).start()


def test_kafka_opts_name_the_configuration_of_kerberos(realm: Kdc, monkeypatch, tmp_path: Path):
    """As Java's `-Djava.security.krb5.conf` does, where the environment names none."""
    own = tmp_path / "krb5.conf"
    own.write_text(realm.krb5_conf.read_text().replace(f"default_realm = {REALM}", "default_realm = ELSE.WHERE"))
    monkeypatch.delenv("KRB5_CONFIG")
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.krb5.conf={own}")
    from kafka_shim.security.sasl.gssapi import default_realm

    assert default_realm() == "ELSE.WHERE"
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.krb5.realm=NAMED")
    assert default_realm() == "NAMED"
    monkeypatch.setenv("KRB5_CONFIG", str(realm.krb5_conf))


def test_a_keytab_that_everybody_can_read_is_a_door_left_open(realm: Kdc, caplog):
    keytab = realm.folder / "kafka_localhost.keytab"
    keytab.chmod(0o600)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm)):
        assert "can read" not in caplog.text
    keytab.chmod(0o604)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm)):
        assert f"every user of this machine can read {keytab}" in caplog.text
    keytab.chmod(0o600)


def test_without_the_extra_the_start_says_how_to_get_it(realm: Kdc, monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install gssapi"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(realm)).start()


# --- the client of the command line


def properties(realm: Kdc, jaas: str = "", **changed: str) -> dict[str, str]:
    keytab = realm.folder / "alice.keytab"
    words = jaas or f'useKeyTab=true keyTab="{keytab}" principal="alice@{REALM}"'
    found = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.jaas.config": f"{LOGIN_MODULE} required {words};",
        "sasl.kerberos.service.name": "kafka",
        **changed,
    }
    return {name: text for name, text in found.items() if text}


def test_the_command_line_logs_in_with_a_ticket(broker: Broker, realm: Kdc):
    address = broker.bootstrap_servers.replace("127.0.0.1", "localhost")
    with Connection(address, security=ClientSecurity(properties(realm))) as connection:
        assert connection.request(MetadataRequest(topics=[]), 12).cluster_id
        principals = broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})
        assert "User:alice" in principals
    with pytest.raises(WireClientError, match=r"no ticket for other@localhost: .*; check the keytab"):
        Connection(address, security=ClientSecurity(properties(realm, **{"sasl.kerberos.service.name": "other"})))


@pytest.mark.parametrize(
    ("jaas", "changed", "reason"),
    [
        ("", {"sasl.kerberos.service.name": ""}, "set sasl.kerberos.service.name"),
        ("useKeyTab=true", {}, "needs keyTab"),
        ('principal="alice"', {}, "useTicketCache=true"),
        ("", {"sasl.jaas.config": "Other required;"}, "needs com.sun"),
    ],
)
def test_properties_that_make_no_ticket_are_refused(realm: Kdc, jaas: str, changed: dict[str, str], reason: str):
    with pytest.raises(ConfigError, match=reason):
        ClientSecurity(properties(realm, jaas, **changed))
