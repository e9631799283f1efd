"""SASL over the wire: what a client may send when, what it is told of a failure, and what the operator reads."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.security.sasl.authenticator import State
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.tests.security import test_principals as principals
from kafka_shim.tests.security.sasl_client import (
    OAUTH_MODULE,
    SCRAM_MODULE,
    handshake,
    listener_options,
    log_in_oauth,
    log_in_plain,
    log_in_scram,
    plain_jaas,
    plain_token,
    send_token,
    unsecured_token,
)
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection, WireClientError

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
JAAS_NAME = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
OPTIONS = {
    **listener_options(
        "SASL_PLAINTEXT",
        PLAIN=plain_jaas(alice="alice-secret"),
        SCRAM_SHA_256=f"{SCRAM_MODULE} required;",
        SCRAM_SHA_512=f"{SCRAM_MODULE} required;",
        OAUTHBEARER=f"{OAUTH_MODULE} required;",
    ),
    "connection.failed.authentication.delay.ms": "0",
}
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


def sasl_address(broker: Broker) -> str:
    return broker._word(1).split(",")[1].partition("://")[2]


def user_of(broker: Broker) -> set[str]:
    return broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})


def login_states(broker: Broker) -> set[State]:
    """Call it on the broker's thread."""
    return {one.session.authenticator.state for one in broker._server._registry.connections}


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(listen=LISTENERS, **OPTIONS) as running:
        add_user(running, "alice", "SCRAM-SHA-256", 1)
        add_user(running, "a=b,c", "SCRAM-SHA-512", 2)
        yield running


def add_user(broker: Broker, name: str, mechanism: str, code: int, password: str = "scram-secret") -> None:
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=code,
        iterations=4096,
        salt=b"salt",
        salted_password=salted_password(mechanism, password, b"salt", 4096),
    )
    with Connection(broker.bootstrap_servers) as admin:
        (result,) = admin.request(AlterUserScramCredentialsRequest(upsertions=[upsertion])).results
    assert (result.error_code, result.error_message) == (0, None)


@pytest.fixture
def client(secured: Broker) -> Iterator[Connection]:
    with Connection(sasl_address(secured)) as connection:
        yield connection


def closed(connection: Connection) -> bool:
    """Whether the broker has closed the connection, without another answer."""
    try:
        connection.receive_frame()
    except WireClientError as err:
        return "closed" in str(err) or "reset" in str(err)
    return False


# --- success


def test_plain_makes_the_user_a_principal(secured: Broker, client: Connection):
    answer = log_in_plain(client, "alice", "alice-secret")
    assert (answer.error_code, bytes(answer.auth_bytes), answer.session_lifetime_ms) == (0, b"", 0)
    assert client.request(MetadataRequest(topics=[]), 12).cluster_id == secured.cluster_id
    assert "User:alice" in user_of(secured)


@pytest.mark.parametrize(("mechanism", "user"), [("SCRAM-SHA-256", "alice"), ("SCRAM-SHA-512", "a=b,c")])
def test_scram_proves_both_sides(secured: Broker, client: Connection, mechanism: str, user: str):
    assert log_in_scram(client, mechanism, user, "scram-secret").error_code == 0
    assert client.request(MetadataRequest(topics=[]), 12).brokers
    assert f"User:{user}" in user_of(secured)


def test_an_unsecured_token_is_accepted_and_limits_the_session(secured: Broker, client: Connection):
    now = secured.clock.now_ms() / 1000
    answer = log_in_oauth(client, unsecured_token(sub="carol", iat=now, exp=now + 60), "traceId=7\x01")
    assert answer.error_code == 0
    assert 55_000 < answer.session_lifetime_ms <= 60_000
    assert "User:carol" in user_of(secured)


def test_version_0_of_the_handshake_takes_raw_tokens(secured: Broker, client: Connection):
    assert handshake(client, "PLAIN", 0).error_code == 0
    token = plain_token("alice", "alice-secret")
    client.send_bytes(len(token).to_bytes(4) + token)
    assert client.receive_frame() == b""
    assert client.request(MetadataRequest(topics=[]), 12).brokers


def test_a_wrong_raw_token_gets_no_answer(client: Connection):
    assert handshake(client, "PLAIN", 0).error_code == 0
    token = plain_token("alice", "wrong")
    client.send_bytes(len(token).to_bytes(4) + token)
    assert closed(client)


# --- failure


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (plain_token("alice", "wrong"), "Authentication failed: Invalid username or password"),
        (plain_token("eve", "alice-secret"), "Authentication failed: Invalid username or password"),
        (plain_token("eve", ""), "Authentication failed: password not specified"),
        (plain_token("", "x"), "Authentication failed: username not specified"),
        (
            plain_token("alice", "alice-secret", "bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_plain_says_what_kafka_says(client: Connection, token: bytes, message: str):
    handshake(client, "PLAIN")
    answer = send_token(client, token)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert closed(client)


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("eve", "scram-secret")])
def test_scram_does_not_say_whether_the_user_or_the_password_is_wrong(client: Connection, user: str, password: str):
    answer = log_in_scram(client, "SCRAM-SHA-256", user, password)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == INVALID + "SCRAM-SHA-256"
    assert closed(client)


@pytest.mark.parametrize("token", [b"", b"n,,n=alice", b"y,,n=alice,r=x", b"n,,n=alice,r=x,tokenauth=true", b"\xff"])
def test_a_malformed_first_message_of_scram_is_refused(client: Connection, token: bytes):
    handshake(client, "SCRAM-SHA-512")
    assert send_token(client, token).error_message == INVALID + "SCRAM-SHA-512"
    assert closed(client)


def test_a_refused_token_is_explained_after_the_clients_last_word(secured: Broker, client: Connection):
    now = secured.clock.now_ms() / 1000
    refused = log_in_oauth(client, unsecured_token(sub="carol", exp=now - 1))
    assert (refused.error_code, bytes(refused.auth_bytes)) == (0, b'{"status":"invalid_token"}')
    last = send_token(client, b"\x01")
    assert (last.error_code, last.error_message) == (58, '{"status":"invalid_token"}')
    assert closed(client)


def test_an_unknown_mechanism_gets_the_list_of_those_there_are(client: Connection):
    answer = handshake(client, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER"]  # as a HashMap of Java
    assert closed(client)


def test_another_request_before_the_handshake_closes_the_connection(client: Connection):
    client.send(MetadataRequest(topics=[]), 12)
    assert closed(client)


def test_another_request_during_the_exchange_is_an_illegal_state(client: Connection):
    handshake(client, "PLAIN")
    answer = client.request(DescribeUserScramCredentialsRequest(), 0)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == (
        "Unexpected Kafka request of type DESCRIBE_USER_SCRAM_CREDENTIALS during SASL authentication."
    )
    assert closed(client)


def test_api_versions_is_served_once_before_authentication(client: Connection):
    versions = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.request(versions, 3).error_code == 0
    client.send(versions, 3)
    assert closed(client)


def test_a_second_login_without_a_session_limit_is_an_illegal_state(client: Connection):
    log_in_plain(client, "alice", "alice-secret")
    assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = send_token(client, plain_token("alice", "alice-secret"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"


def test_the_operator_reads_which_client_failed_and_what_to_do(client: Connection, caplog):
    handshake(client, "PLAIN")
    send_token(client, plain_token("alice", "tell-nobody"))
    (line,) = [record.getMessage() for record in caplog.records if "failed to authenticate" in record.getMessage()]
    assert "127.0.0.1 on SASL_PLAINTEXT" in line
    assert "'alice'" in line
    assert "user_NAME" in line
    assert "tell-nobody" not in caplog.text


def test_what_a_client_says_stays_on_one_short_line(secured: Broker, client: Connection, caplog):
    handshake(client, "OAUTHBEARER")
    token = unsecured_token(sub="carol", exp=secured.clock.now_ms() / 1000 + 60)
    wanted = "eve\n2026-01-01 root logged in" + "x" * 20_000
    send_token(client, f"n,a={wanted},\x01auth=Bearer {token}\x01\x01".encode())
    (line,) = [record.getMessage() for record in caplog.records if "failed to authenticate" in record.getMessage()]
    assert line.isprintable()
    assert len(line) < 1000


class Faulty:
    """A builder of principals with a bug."""

    def build(self, context: principals.AuthenticationContext) -> str:
        raise RuntimeError(f"no such\nuser {context.authorization_id}")


def test_a_fault_of_a_plug_in_fails_the_login_and_is_logged_once(caplog):
    options = OPTIONS | {"principal.builder.class": f"{__name__}.Faulty"}
    with Broker(listen=LISTENERS, **options) as broker, Connection(sasl_address(broker)) as client:
        answer = log_in_plain(client, "alice", "alice-secret")
        assert (answer.error_code, answer.error_message) == (58, INVALID + "PLAIN")
        assert closed(client)
    (line,) = [record.getMessage() for record in caplog.records if "RuntimeError" in record.getMessage()]
    assert "RuntimeError: no such\\nuser alice\n" in line
    assert "in build" in line


def test_a_request_over_the_limit_before_authentication_is_not_read(client: Connection):
    client.send_bytes((524_289).to_bytes(4) + bytes(100))
    assert closed(client)


@pytest.mark.option("sasl.server.max.receive.size")
def test_the_limit_before_authentication_is_an_option():
    with (
        Broker(listen=LISTENERS, **OPTIONS, **{"sasl.server.max.receive.size": "1000"}) as broker,
        Connection(sasl_address(broker)) as client,
    ):
        client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1" * 999), 3)
        assert closed(client)


@pytest.mark.option("sasl.server.max.receive.size")
def test_the_limit_holds_for_a_client_that_authenticates_again_until_it_has(caplog: pytest.LogCaptureFixture):
    options = OPTIONS | {
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "10000",
        "sasl.server.max.receive.size": "1000",
    }
    large = MetadataRequest(topics=[MetadataRequestTopic(name="t" * 200)] * 6)
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        log_in_plain(client, "alice", "alice-secret")
        assert client.request(large, 8).brokers
        handshake(client, "PLAIN")
        assert send_token(client, plain_token("alice", "alice-secret")).error_code == 0
        assert client.request(large, 8).brokers
        broker.clock.advance("2s")
        handshake(client, "PLAIN")
        client.send_bytes((1001).to_bytes(4) + bytes(100))
        assert closed(client)
    assert "frame of 1001 bytes, sasl.server.max.receive.size is 1000" in caplog.text


# --- time


@pytest.mark.option("connection.failed.authentication.delay.ms")
def test_a_failure_is_answered_after_its_delay_and_the_login_must_be_in_time():
    options = OPTIONS | {"connection.failed.authentication.delay.ms": "700"}
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker:
        with Connection(sasl_address(broker)) as client:
            handshake(client, "PLAIN")
            client.send(SaslAuthenticateRequest(auth_bytes=plain_token("alice", "wrong")), 2)
            until(broker, lambda: State.FAILED in login_states(broker))
            broker.clock.advance(699)
            assert select.select([client._socket], [], [], 0)[0] == []
            broker.clock.advance(2)
            assert client.receive(36, 2)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with Connection(sasl_address(broker)) as silent, Connection(sasl_address(broker)) as known:
            handshake(silent, "PLAIN")
            log_in_plain(known, "alice", "alice-secret")
            broker.clock.advance("31s")
            assert closed(silent)
            assert known.request(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.option("connections.max.reauth.ms", "sasl.enabled.mechanisms")
def test_a_session_ends_unless_its_client_authenticates_again():
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "10000"}
    options["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = plain_jaas(alice="alice-secret", bob="bob-secret")
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        assert log_in_plain(client, "alice", "alice-secret").session_lifetime_ms == 10_000
        broker.clock.advance("9s")
        assert handshake(client, "PLAIN").error_code == 0
        assert send_token(client, plain_token("alice", "alice-secret")).session_lifetime_ms == 10_000
        broker.clock.advance("9s")
        assert client.request(MetadataRequest(topics=[]), 12).brokers
        assert handshake(client, "PLAIN").error_code == 0
        answer = send_token(client, plain_token("bob", "bob-secret"))
        assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
        assert closed(client)
        with Connection(sasl_address(broker)) as late:
            log_in_plain(late, "alice", "alice-secret")
            broker.clock.advance("11s")
            late.send(MetadataRequest(topics=[]), 12)
            assert closed(late)


def test_a_change_of_mechanism_does_not_prolong_a_session():
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "10000"}
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        log_in_plain(client, "alice", "alice-secret")
        broker.clock.advance("11s")
        assert handshake(client, "SCRAM-SHA-256").error_code == 0
        client.send(MetadataRequest(topics=[]), 12)
        assert closed(client)


def test_a_handshake_that_comes_too_soon_does_not_outlive_the_session():
    """Kafka lets a client authenticate again once in a second. Another handshake is an ordinary request."""
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "500"}
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        for _ in range(2):
            log_in_plain(client, "alice", "alice-secret")
        assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
        broker.clock.advance("700ms")
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert closed(client)


def test_after_a_change_of_mechanism_another_handshake_closes_the_connection():
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "10000"}
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        log_in_plain(client, "alice", "alice-secret")
        assert handshake(client, "SCRAM-SHA-256").error_code == 0
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert closed(client)


def test_a_login_without_a_limit_ends_the_limit_of_the_one_before():
    name = "listener.name.sasl_plaintext.plain.connections.max.reauth.ms"
    with (
        Broker(listen=LISTENERS, clock="virtual", **OPTIONS | {name: "10000"}) as broker,
        Connection(broker.bootstrap_servers) as admin,
        Connection(sasl_address(broker)) as client,
    ):
        assert log_in_plain(client, "alice", "alice-secret").session_lifetime_ms == 10_000
        config = AlterableConfig(name=name, config_operation=0, value="0")
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        (result,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert (result.error_code, result.error_message) == (0, None)
        broker.clock.advance("5s")
        assert handshake(client, "PLAIN").error_code == 0
        assert send_token(client, plain_token("alice", "alice-secret")).session_lifetime_ms == 0
        broker.clock.advance("9s")
        assert client.request(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.option("connections.max.reauth.ms")
def test_version_0_of_the_handshake_takes_a_raw_token_again_after_a_login_with_headers():
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "10000"}
    token = plain_token("alice", "alice-secret")
    with Broker(listen=LISTENERS, clock="virtual", **options) as broker, Connection(sasl_address(broker)) as client:
        log_in_plain(client, "alice", "alice-secret")
        assert handshake(client, "PLAIN", 0).error_code == 0
        client.send_bytes(len(token).to_bytes(4) + token)
        assert client.receive_frame() == b""
        assert client.request(MetadataRequest(topics=[]), 12).brokers
        broker.clock.advance("1s")
        assert handshake(client, "PLAIN", 0).error_code == 0
        client.send(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert closed(client)


def test_a_session_longer_than_kafka_can_count_gets_no_answer(caplog):
    options = OPTIONS | {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": str(2**63 - 1)}
    with Broker(listen=LISTENERS, **options) as broker:
        with Connection(sasl_address(broker)) as client:
            handshake(client, "PLAIN")
            client.send(SaslAuthenticateRequest(auth_bytes=plain_token("alice", "alice-secret")), 2)
            assert closed(client)
        assert "the session of User:alice would last 9223372036854775807 ms" in caplog.text
        with Connection(sasl_address(broker)) as client:
            handshake(client, "OAUTHBEARER")
            year_9999 = unsecured_token(sub="alice", exp=253_402_300_799)
            client.send(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {year_9999}\x01\x01".encode()), 2)
            assert closed(client)
        with Connection(sasl_address(broker)) as client:
            year_2286 = unsecured_token(sub="alice", exp=9_999_999_999)
            assert log_in_oauth(client, year_2286).session_lifetime_ms > 0


# --- administration


def test_a_users_password_changes_without_a_restart_and_is_never_shown(secured: Broker, caplog):
    with Connection(secured.bootstrap_servers) as admin:

        def alter(value: str) -> tuple[int, str | None]:
            config = AlterableConfig(name=JAAS_NAME, config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
            (result,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
            return result.error_code, result.error_message

        code, message = alter("not a login module")
        assert code == ErrorCode.INVALID_REQUEST
        assert "Invalid login module control flag" in message
        assert alter(plain_jaas(dave="dave-secret")) == (0, None)
        with Connection(sasl_address(secured)) as client:
            assert log_in_plain(client, "alice", "alice-secret").error_code == 58
        with Connection(sasl_address(secured)) as client:
            assert log_in_plain(client, "dave", "dave-secret").error_code == 0
        resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
        described = admin.request(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results[0]
        entry = next(one for one in described.configs if one.name == JAAS_NAME)
        assert entry.is_sensitive
        assert entry.value is None
        assert all(synonym.value is None for synonym in entry.synonyms)
        assert "dave-secret" not in repr(described)
        assert alter(plain_jaas(alice="alice-secret")) == (0, None)
    assert "dave-secret" not in caplog.text


def test_no_stored_option_makes_the_broker_load_a_class(caplog):
    name = "principal.builder.class"
    builder = f"{principals.__name__}.Upper"
    options = OPTIONS | {f"listener.name.sasl_plaintext.{name}": builder}
    with Broker(listen=LISTENERS, **options) as broker, Connection(broker.bootstrap_servers) as admin:

        def alter(option: str, value: str) -> tuple[int, str | None]:
            config = AlterableConfig(name=option, config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
            request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
            (result,) = admin.request(request).responses
            return result.error_code, result.error_message

        for option in (name, f"listener.name.sasl_plaintext.{name}", f"listener.name.plaintext.{name}"):
            code, message = alter(option, f"{principals.__name__}.never_called")
            assert code == ErrorCode.INVALID_REQUEST
            assert message is not None
            assert "only if the options that the broker starts with name it" in message
        assert alter(name, builder) == (0, None)
        assert alter(f"listener.name.sasl_plaintext.{name}", principals.DEFAULT_CLASS) == (0, None)


def test_scram_users_are_described_deleted_and_survive_a_restart(tmp_path):
    with Broker(listen=LISTENERS, data_dir=tmp_path / "data", **OPTIONS) as broker:
        add_user(broker, "alice", "SCRAM-SHA-256", 1)
        add_user(broker, "alice", "SCRAM-SHA-512", 2)
        add_user(broker, "bob", "SCRAM-SHA-512", 2)
    with Broker(listen=LISTENERS, data_dir=tmp_path / "data", **OPTIONS) as broker:
        with Connection(broker.bootstrap_servers) as admin:
            users = {
                one.user: [(info.mechanism, info.iterations) for info in one.credential_infos]
                for one in admin.request(DescribeUserScramCredentialsRequest(users=None)).results
            }
            assert users == {"alice": [(1, 4096), (2, 4096)], "bob": [(2, 4096)]}
            named = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in ("x", "bob", "bob")])
            assert [(one.error_code, one.error_message) for one in admin.request(named).results] == [
                (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: x"),
                (
                    ErrorCode.DUPLICATE_RESOURCE,
                    "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
                ),
            ]
            deletion = ScramCredentialDeletion(name="bob", mechanism=2)
            for expected in (0, ErrorCode.RESOURCE_NOT_FOUND):
                (result,) = admin.request(AlterUserScramCredentialsRequest(deletions=[deletion])).results
                assert result.error_code == expected
        with Connection(sasl_address(broker)) as client:
            assert log_in_scram(client, "SCRAM-SHA-512", "bob", "scram-secret").error_code == 58
        with Connection(sasl_address(broker)) as client:
            assert log_in_scram(client, "SCRAM-SHA-512", "alice", "scram-secret").error_code == 0


def test_before_authentication_nothing_but_a_frame_that_is_whole_is_held(secured: Broker):
    host, port = sasl_address(secured).split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall((100_000).to_bytes(4) + bytes(10))
        until(secured, lambda: secured._server._registry._login_bytes)
        assert secured.call(lambda: secured._server._registry._login_bytes) == 100_004
    until(secured, lambda: not secured._server._registry._login_bytes)


def test_clients_before_authentication_do_not_spend_the_memory_of_requests():
    limits = dict.fromkeys(("queued.max.request.bytes", "socket.request.max.bytes"), "1000000")
    with Broker(listen=LISTENERS, **OPTIONS | limits) as broker:
        host, port = sasl_address(broker).split(":")
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall((100_000).to_bytes(4) + bytes(10))
            until(broker, lambda: broker._server._registry._login_bytes)
            assert broker.call(lambda: broker.state.receive_memory.used_bytes) == 0
        until(broker, lambda: not broker._server._registry._login_bytes)
        assert broker.call(lambda: broker.state.receive_memory.used_bytes) == 0
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall((100_000).to_bytes(4) + bytes(10))
            until(broker, lambda: broker.state.receive_memory.is_full)
            with Connection(sasl_address(broker)) as client:
                handshake(client, "PLAIN")
                token = plain_token("alice", "alice-secret", "x" * 80_000)
                assert send_token(client, token).error_code == 58


# --- sessions of users whose password has changed


def change_password(admin: Connection, jaas: str) -> None:
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    changes = [AlterableConfig(name=name, config_operation=0, value=jaas)]
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=changes)
    (changed,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert (changed.error_code, changed.error_message) == (0, None)


@pytest.mark.option("kafka.shim.disconnect.changed.users")
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
def test_session_of_a_changed_user_goes_on_unless_it_is_to_end(ends: bool):
    """Two users by two mechanisms; what happens to one is nothing to the other."""

    def goes_on(client: Connection) -> bool:
        try:
            return bool(client.request(MetadataRequest(topics=[]), 12).brokers)
        except WireClientError:
            return False

    users = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(alice="alice-secret", bob="bob-secret")}
    options = {**OPTIONS, **users, "kafka.shim.disconnect.changed.users": str(ends).lower()}
    with Broker(listen=LISTENERS, **options) as broker, ExitStack() as stack:
        add_user(broker, "alice", "SCRAM-SHA-256", 1)
        add_user(broker, "eve", "SCRAM-SHA-256", 1)
        address = sasl_address(broker)
        clients = [stack.enter_context(Connection(address)) for _ in range(4)]
        plain_alice, plain_bob, scram_alice, scram_eve = clients
        assert log_in_plain(plain_alice, "alice", "alice-secret").error_code == 0
        assert log_in_plain(plain_bob, "bob", "bob-secret").error_code == 0
        assert log_in_scram(scram_alice, "SCRAM-SHA-256", "alice", "scram-secret").error_code == 0
        assert log_in_scram(scram_eve, "SCRAM-SHA-256", "eve", "scram-secret").error_code == 0
        add_user(broker, "alice", "SCRAM-SHA-256", 1, "other")
        assert [goes_on(client) for client in clients] == [True, True, not ends, True]
        with Connection(broker.bootstrap_servers) as admin:
            change_password(admin, plain_jaas(alice="alice-secret"))
        assert [goes_on(client) for client in clients] == [True, not ends, not ends, True]


def test_a_password_that_is_changed_during_the_exchange_lets_nobody_in():
    """The sessions of a changed user are closed when the change is made: a login that is under way is none yet."""
    users = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(alice="alice-secret", bob="bob-secret")}
    with Broker(listen=LISTENERS, **OPTIONS | users) as broker, ExitStack() as stack:
        add_user(broker, "alice", "SCRAM-SHA-256", 1)
        scram, plain_alice, plain_bob = [stack.enter_context(Connection(sasl_address(broker))) for _ in range(3)]
        change = partial(add_user, broker, "alice", "SCRAM-SHA-256", 1, "other")
        refused = log_in_scram(scram, "SCRAM-SHA-256", "alice", "scram-secret", meanwhile=change)
        assert (refused.error_code, refused.error_message) == (58, f"{INVALID}SCRAM-SHA-256")
        for client in (plain_alice, plain_bob):
            assert handshake(client, "PLAIN").error_code == 0
        with Connection(broker.bootstrap_servers) as admin:
            change_password(admin, plain_jaas(alice="other", bob="bob-secret"))
        assert send_token(plain_alice, plain_token("alice", "alice-secret")).error_code == 58
        assert send_token(plain_bob, plain_token("bob", "bob-secret")).error_code == 0


def test_passwords_of_one_listener_are_nothing_to_another_and_who_changes_the_own_is_told_so_first():
    listeners = f"{LISTENERS},OTHER://127.0.0.1:0"
    protocols = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,OTHER:SASL_PLAINTEXT"
    options = {
        **OPTIONS,
        **listener_options("OTHER", PLAIN=plain_jaas(alice="alice-secret")),
        "listener.security.protocol.map": protocols,
        "kafka.shim.disconnect.changed.users": "true",
    }
    with Broker(listen=listeners, **options) as broker, ExitStack() as stack:
        addresses = [one.partition("://")[2] for one in broker._word(1).split(",")[1:]]
        own, other = [stack.enter_context(Connection(address)) for address in addresses]
        for client in (own, other):
            assert log_in_plain(client, "alice", "alice-secret").error_code == 0
        change_password(own, plain_jaas(alice="new"))
        assert closed(own)
        assert other.request(MetadataRequest(topics=[]), 12).brokers


def test_user_whose_own_session_changes_the_password_is_told_so_first():
    with Broker(listen=LISTENERS, **OPTIONS, kafka_shim_disconnect_changed_users=True) as broker:
        add_user(broker, "alice", "SCRAM-SHA-256", 1)
        with Connection(sasl_address(broker)) as client:
            assert log_in_scram(client, "SCRAM-SHA-256", "alice", "scram-secret").error_code == 0
            request = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="alice", mechanism=1)])
            (result,) = client.request(request).results
            assert result.error_code == 0
            assert closed(client)
