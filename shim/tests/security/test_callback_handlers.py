"""Python classes in the place of Kafka's callback handlers, one for each mechanism."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.plugins import InvalidTokenError, ScramCredential
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.tests.security import sasl_client as sasl
from kafka_shim.wire_client import Connection

MECHANISMS = {"PLAIN": "Passwords", "SCRAM-SHA-256": "Vault", "OAUTHBEARER": "Tokens"}
PREFIX = "listener.name.sasl_plaintext."
OPTIONS = {
    **sasl.listener_options(
        "SASL_PLAINTEXT",
        PLAIN=sasl.plain_jaas(alice="in-the-option"),
        SCRAM_SHA_256=f"{sasl.SCRAM_MODULE} required;",
        OAUTHBEARER=f'{sasl.OAUTH_MODULE} required realm="here";',
    ),
    **{
        f"{PREFIX}{mechanism.lower()}.sasl.server.callback.handler.class": f"{__name__}.{name}"
        for mechanism, name in MECHANISMS.items()
    },
    "connection.failed.authentication.delay.ms": "0",
}


class Configured:
    configured: ClassVar[dict[str, tuple[Mapping[str, str], Sequence[Mapping[str, str]]]]] = {}

    def configure(self, options: Mapping[str, str], mechanism: str, login_options: Sequence[Mapping[str, str]]) -> None:
        self.configured[mechanism] = options, login_options


class Passwords(Configured):
    async def authenticate(self, user: str, password: str) -> Any:
        await asyncio.sleep(0)
        # Anything that is not True is no.
        return password == "from-the-class" if user == "alice" else "yes"


class Vault(Configured):
    def credential(self, user: str) -> ScramCredential | None:
        return ScramCredential.of("SCRAM-SHA-256", "from-the-vault") if user == "alice" else None


class Tokens(Configured):
    def validate(self, token: str) -> tuple[str, int]:
        if token == "broken":
            raise ZeroDivisionError
        if token != "good":
            raise InvalidTokenError("the token is of another realm")
        return "alice", 4_000_000_000_000


class WithoutMethods:
    pass


class Awaited:
    async def credential(self, user: str) -> None:
        pass

    async def configure(self, *_: object) -> None:
        pass

    async def authenticate(self, user: str, password: str) -> bool:
        return True


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", **OPTIONS) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker._word(1).split(",")[1].partition("://")[2]) as connection:
        yield connection


@pytest.mark.parametrize(
    ("user", "password", "code"),
    [
        ("alice", "from-the-class", 0),
        ("alice", "in-the-option", ErrorCode.SASL_AUTHENTICATION_FAILED),
        ("bob", "from-the-class", ErrorCode.SASL_AUTHENTICATION_FAILED),
    ],
)
def test_handler_of_plain_knows_the_passwords(client: Connection, user: str, password: str, code: int):
    answer = sasl.log_in_plain(client, user, password)
    assert answer.error_code == code
    if code:
        assert answer.error_message == "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(("password", "code"), [("from-the-vault", 0), ("x", ErrorCode.SASL_AUTHENTICATION_FAILED)])
def test_handler_of_scram_has_the_credentials(client: Connection, password: str, code: int):
    assert sasl.log_in_scram(client, "SCRAM-SHA-256", "alice", password).error_code == code


def test_handler_of_scram_that_knows_no_such_user(client: Connection):
    answer = sasl.log_in_scram(client, "SCRAM-SHA-256", "bob", "from-the-vault")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def log_in_with(client: Connection, token: str) -> Any:
    assert sasl.handshake(client, "OAUTHBEARER").error_code == 0
    return sasl.send_token(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())


def test_handler_of_oauthbearer_checks_the_token(client: Connection):
    answer = log_in_with(client, "good")
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert answer.session_lifetime_ms > 0


def test_token_that_the_handler_refuses(client: Connection):
    assert bytes(log_in_with(client, "bad").auth_bytes) == b'{"status":"invalid_token"}'


def test_handler_that_fails_refuses_the_client(client: Connection, caplog: pytest.LogCaptureFixture):
    assert log_in_with(client, "broken").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "ZeroDivisionError" in caplog.text


def test_handler_knows_the_options_and_the_login_module(broker: Broker):
    options, login_options = Configured.configured["OAUTHBEARER"]
    assert options["connection.failed.authentication.delay.ms"] == "0"
    assert login_options == [{"realm": "here"}]


@pytest.mark.option("sasl.server.callback.handler.class")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.example.Handler", "cannot be loaded"),
        (f"{__name__}.WithoutMethods", "has no method authenticate"),
        (f"{__name__}.Awaited", "configure is async, but nothing awaits it"),
    ],
)
def test_handler_that_cannot_be_used_stops_the_start(name: str, reason: str):
    options = {**OPTIONS, f"{PREFIX}plain.sasl.server.callback.handler.class": name}
    with pytest.raises(ConfigError, match=f"listener SASL_PLAINTEXT, PLAIN: .*{reason}"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options).start()


def test_no_stored_option_brings_in_a_handler(broker: Broker):
    name = f"{PREFIX}plain.sasl.server.callback.handler.class"
    changes = [AlterableConfig(name=name, config_operation=0, value=f"{__name__}.WithoutMethods")]
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=changes)
    with Connection(broker.bootstrap_servers) as admin:
        (answer,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "only if the options that the broker starts with name it" in answer.error_message
