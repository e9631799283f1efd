"""No password, key or token is in a log, a description, a dump, a traceback or the process list."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.client_security import ClientSecurity
from kafka_shim.commands.main import run
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.alter_configs_request import AlterableConfig as OldConfig
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsResource as OldResource
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.security import sasl_client as sasl
from kafka_shim.wire_client import Connection

FIRST, STORED, WRONG, SCRAM = "first-s3cret", "stored-s3cret", "wrong-s3cret", "scram-s3cret"
TOKEN = sasl.unsecured_token(sub="carol", exp=9e9)
LISTEN = "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"
SALTED = salted_password("SCRAM-SHA-256", SCRAM, b"salt-s3cret", 4096)


class Broken:
    """A principal builder with a bug, whose traceback goes through the login."""

    def build(self, context: Any) -> str:
        if context.authorization_id == "bob":
            raise ZeroDivisionError
        return f"User:{context.authorization_id}"


@pytest.fixture
def options() -> dict[str, str]:
    key, chain = CertificateAuthority().issue("localhost")
    given = sasl.listener_options(
        "SASL_SSL",
        PLAIN=sasl.plain_jaas(alice=FIRST, bob=FIRST),
        SCRAM_SHA_256=f"{sasl.SCRAM_MODULE} required;",
        OAUTHBEARER=f"{sasl.OAUTH_MODULE} required;",
    )
    return {
        **given,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
        "ssl.key.password": "key-s3cret",
        "principal.builder.class": f"{__name__}.Broken",
        "connection.failed.authentication.delay.ms": "0",
    }


def key_of(options: dict[str, str]) -> str:
    """A line of the private key that nothing else has."""
    return options["ssl.keystore.key"].splitlines()[1]


@pytest.fixture
def everything_said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def tls(**more: str) -> ClientSecurity:
    """A client that checks no certificate."""
    security = ClientSecurity({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "", **more})
    assert security._context is not None
    security._context.verify_mode = ssl.CERT_NONE
    return security


def log_in_plain(client: Connection, mechanism: str, user: str, password: str) -> Any:
    return sasl.log_in_plain(client, user, password)


def do_everything_with_secrets(broker: Broker, data_dir: Path) -> list[str]:
    """Returns what was answered and printed."""
    words: list[str] = []
    plain, secured = (one.partition("://")[2] for one in broker._word(1).split(","))
    with Connection(plain) as admin:
        changes = [
            AlterableConfig(name=JAAS, config_operation=0, value=sasl.plain_jaas(alice=STORED, bob=STORED)),
            AlterableConfig(name="some.option.of.mine", config_operation=0, value=STORED),
        ]
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=changes)
        (changed,) = admin.request(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert changed.error_code == 0
        refused = AlterConfigsResource(
            resource_type=4,
            resource_name="1",
            configs=[AlterableConfig(name=JAAS, config_operation=0, value=f'Module required user_alice="{STORED}"')],
        )
        words.append(repr(admin.request(IncrementalAlterConfigsRequest(resources=[refused]))))
        old = OldResource(resource_type=4, resource_name="", configs=[OldConfig(name="ssl.key.password", value=STORED)])
        words.append(repr(admin.request(AlterConfigsRequest(resources=[old]))))
        upsertion = ScramCredentialUpsertion(
            name="dave", mechanism=1, iterations=4096, salt=b"salt-s3cret", salted_password=SALTED
        )
        admin.request(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        described = [DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)]
        request = DescribeConfigsRequest(resources=described, include_synonyms=True, include_documentation=True)
        words.append(repr(admin.request(request)))
        words.append(repr(admin.request(DescribeUserScramCredentialsRequest(users=None))))
    for mechanism, user, password in (
        ("PLAIN", "alice", STORED),
        ("PLAIN", "alice", WRONG),
        ("PLAIN", "nobody", WRONG),
        ("PLAIN", "bob", STORED),
        ("SCRAM-SHA-256", "dave", SCRAM),
        ("SCRAM-SHA-256", "dave", WRONG),
    ):
        with Connection(secured, security=tls()) as client:
            log_in = log_in_plain if mechanism == "PLAIN" else sasl.log_in_scram
            words.append(repr(log_in(client, mechanism, user, password)))
    for token in (TOKEN, f"{TOKEN}signature"):
        with Connection(secured, security=tls()) as client:
            sasl.handshake(client, "OAUTHBEARER")
            words.append(repr(sasl.send_token(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())))
    (log,) = (data_dir / "__cluster_metadata-0").glob("*.log")
    words.append(str(log))
    return words


def assert_no_secret(text: str, options: dict[str, str]) -> None:
    secrets = [FIRST, STORED, WRONG, SCRAM, "s3cret", key_of(options), TOKEN.split(".")[1], SALTED.hex()]
    assert [secret for secret in secrets if secret in text] == []


def test_no_secret_is_told(
    tmp_path: Path,
    options: dict[str, str],
    everything_said: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
):
    with Broker(listen=LISTEN, data_dir=tmp_path, **options) as broker:
        *words, log = do_everything_with_secrets(broker, tmp_path)
        plain = broker._word(1).split(",")[0].partition("://")[2]
        at = ["--bootstrap-server", plain]
        assert run(["configs", "describe", *at, "--entity-type", "brokers", "--entity-name", "1", "--all"]) == 0
        assert run(["users", "list", *at]) == 0
    logged = everything_said.text
    assert run(["dump-log", "--files", log, "--cluster-metadata-decoder"]) == 0
    printed = capsys.readouterr().out
    # The test sees what it looks through: each part has what belongs beside a secret.
    assert "ZeroDivisionError" in logged
    assert "user 'alice' has another password" in logged
    assert "[hidden]" in logged
    assert f"{JAAS}=None sensitive=true" in printed
    assert printed.count("(redacted)") >= 5
    assert "dave" in printed
    for text in (logged, printed, *words):
        assert_no_secret(text, options)


def test_the_owner_may_ask_for_them(tmp_path: Path, options: dict[str, str], capsys: pytest.CaptureFixture[str]):
    with Broker(listen=LISTEN, data_dir=tmp_path, **options) as broker:
        *_, log = do_everything_with_secrets(broker, tmp_path)
    capsys.readouterr()
    assert run(["dump-log", "--files", log, "--cluster-metadata-decoder", "--show-secrets"]) == 0
    assert STORED in capsys.readouterr().out


def test_the_process_list_shows_none(options: dict[str, str]):
    given = {**options, "principal.builder.class": ""}
    with Broker(listen=LISTEN, process=True, **given) as broker:
        assert broker._process is not None
        told = Path(f"/proc/{broker._process.popen.pid}/cmdline").read_bytes().decode().split("\0")
        environment = Path(f"/proc/{broker._process.popen.pid}/environ").read_bytes().decode(errors="replace")
        secured = broker._word(1).split(",")[1].partition("://")[2]
        with Connection(secured, security=tls()) as client:
            assert sasl.log_in_plain(client, "alice", FIRST).error_code == 0
    assert "connection.failed.authentication.delay.ms=0" in told
    path = Path(told[told.index("--config") + 1])
    assert not path.exists()
    for text in (*told, environment):
        assert_no_secret(text, options)
