"""What a SASL client is told, compared with Apache Kafka: every failure by its code and its text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.targets import jvm
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.tests.security import sasl_client as sasl
from kafka_shim.wire_client import Connection, WireClientError

pytestmark = pytest.mark.java

SESSION_S = 2

OPTIONS = {
    **sasl.listener_options(
        "SASL_PLAINTEXT",
        PLAIN=sasl.plain_jaas(alice="alice-secret", bob="bob-secret"),
        SCRAM_SHA_256=f"{sasl.SCRAM_MODULE} required;",
        SCRAM_SHA_512=f"{sasl.SCRAM_MODULE} required;",
        OAUTHBEARER=f"{sasl.OAUTH_MODULE} required;",
    ),
    "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "600000",
    "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms": f"{SESSION_S * 1000}",
    "connection.failed.authentication.delay.ms": "10",
}


def salted(name: str, mechanism: int = 1, iterations: int = 4096, **more: Any) -> ScramCredentialUpsertion:
    password = salted_password("SCRAM-SHA-256" if mechanism == 1 else "SCRAM-SHA-512", "scram-secret", b"salt", 4096)
    values = {"salt": b"salt", "salted_password": password, **more}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **values)


def what(answer: Any) -> tuple[Any, ...]:
    fields = ("error_code", "error_message", "mechanisms", "auth_bytes", "session_lifetime_ms")
    return tuple(getattr(answer, field, None) for field in fields)


def after(connection: Connection, answer: Any) -> list[Any]:
    """The answer, and whether the connection is closed after it."""
    try:
        connection.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    except WireClientError:
        return [what(answer), "closed"]
    return [what(answer), "open"]


def exchange(mechanism: str, *tokens: bytes, version: int = 1) -> Callable[[Connection], Any]:
    def run(connection: Connection) -> Any:
        answers = [what(sasl.handshake(connection, mechanism, version))]
        answers += [what(sasl.send_token(connection, token)) for token in tokens[:-1]]
        return [answers, after(connection, sasl.send_token(connection, tokens[-1]))]

    return run


def again(user: str, password: str, mechanism: str = "PLAIN") -> Callable[[Connection], Any]:
    def run(connection: Connection) -> Any:
        first = sasl.log_in_plain(connection, "alice", "alice-secret")
        shaken = sasl.handshake(connection, mechanism)
        return [
            what(first),
            what(shaken),
            after(connection, sasl.send_token(connection, sasl.plain_token(user, password))),
        ]

    return run


def raw(token: bytes) -> Callable[[Connection], Any]:
    def run(connection: Connection) -> Any:
        sasl.handshake(connection, "PLAIN", 0)
        connection.send_bytes(len(token).to_bytes(4) + token)
        return after(connection, connection.receive_frame())

    return run


def early(message: Any, version: int, *, shaken: bool) -> Callable[[Connection], Any]:
    def run(connection: Connection) -> Any:
        if shaken:
            sasl.handshake(connection, "PLAIN")
        return after(connection, connection.request(message, version))

    return run


plain = sasl.plain_token
CASES: dict[str, Callable[[Connection], Any]] = {
    "plain": exchange("PLAIN", plain("alice", "alice-secret")),
    "plain, wrong password": exchange("PLAIN", plain("alice", "x")),
    "plain, no user": exchange("PLAIN", plain("eve", "x")),
    "plain, no password": exchange("PLAIN", plain("alice", "")),
    "plain, empty user": exchange("PLAIN", plain("", "x")),
    "plain, other authzid": exchange("PLAIN", plain("alice", "alice-secret", "bob")),
    "plain, two parts": exchange("PLAIN", b"alice\0x"),
    "plain, five parts": exchange("PLAIN", b"\0a\0b\0c\0d"),
    "plain, empty": exchange("PLAIN", b""),
    "scram, no user": exchange("SCRAM-SHA-256", b"n,,n=eve,r=abc"),
    "scram, other mechanism": exchange("SCRAM-SHA-512", b"n,,n=carol,r=abc"),
    "scram, malformed": exchange("SCRAM-SHA-256", b"n,,n=carol"),
    "scram, channel binding": exchange("SCRAM-SHA-256", b"p=tls-unique,,n=carol,r=abc"),
    "scram, other authzid": exchange("SCRAM-SHA-256", b"n,a=dave,n=carol,r=abc"),
    "scram, wrong password": lambda connection: after(
        connection, sasl.log_in_scram(connection, "SCRAM-SHA-256", "carol", "x")
    ),
    "scram": lambda connection: after(
        connection, sasl.log_in_scram(connection, "SCRAM-SHA-256", "carol", "scram-secret")
    )[1],
    "oauth, signed": exchange("OAUTHBEARER", b"n,,\x01auth=Bearer eyJhbGciOiJSUzI1NiJ9.e30.x\x01\x01", b"\x01"),
    "oauth, no auth": exchange("OAUTHBEARER", b"n,,\x01a=b\x01\x01"),
    "oauth, malformed": exchange("OAUTHBEARER", b"auth=Bearer x"),
    "oauth, expired": exchange(
        "OAUTHBEARER", f"n,,\x01auth=Bearer {sasl.unsecured_token(sub='a', exp=5)}\x01\x01".encode(), b"\x01"
    ),
    "oauth, other authzid": exchange(
        "OAUTHBEARER", f"n,a=b,\x01auth=Bearer {sasl.unsecured_token(sub='a', exp=9e9)}\x01\x01".encode()
    ),
    "unknown mechanism": lambda connection: after(connection, sasl.handshake(connection, "GSSAPI")),
    "unknown mechanism, version 0": lambda connection: after(connection, sasl.handshake(connection, "nothing", 0)),
    "raw": raw(plain("alice", "alice-secret")),
    "raw, wrong": raw(plain("alice", "x")),
    "early metadata": early(MetadataRequest(topics=[]), 12, shaken=False),
    "metadata in the exchange": early(MetadataRequest(topics=[]), 12, shaken=True),
    "versions in the exchange": early(
        ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, shaken=True
    ),
    "again": again("alice", "alice-secret"),
    "again, wrong password": again("alice", "x"),
    "again, another user": again("bob", "bob-secret"),
    "again, another mechanism": again("alice", "alice-secret", "SCRAM-SHA-256"),
    "again, unknown mechanism": lambda connection: [
        what(sasl.log_in_plain(connection, "alice", "alice-secret")),
        after(connection, sasl.handshake(connection, "nothing")),
    ],
}
ALTERATIONS = [
    AlterUserScramCredentialsRequest(upsertions=[salted("")]),
    AlterUserScramCredentialsRequest(upsertions=[salted("a", iterations=4095)]),
    AlterUserScramCredentialsRequest(upsertions=[salted("a", iterations=16385)]),
    AlterUserScramCredentialsRequest(upsertions=[salted("a", mechanism=3)]),
    AlterUserScramCredentialsRequest(upsertions=[salted("a"), salted("a", mechanism=2)]),
    AlterUserScramCredentialsRequest(upsertions=[salted("a", salted_password=b"")]),
    AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="nobody", mechanism=1)]),
    AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="carol", mechanism=1)], upsertions=[salted("carol", mechanism=2)]
    ),
    DescribeUserScramCredentialsRequest(users=[UserName(name="carol")]),
    DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in ("x", "y", "y")]),
]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[SecuredKafka, SecuredShim]]:
    with SecuredKafka(OPTIONS) as kafka, SecuredShim(OPTIONS) as shim:
        for target in (kafka, shim):
            with Connection(target.bootstrap) as admin:
                admin.request(
                    AlterUserScramCredentialsRequest(upsertions=[salted("carol"), salted("dave", mechanism=2)])
                )
        yield kafka, shim


def ask(target: SecuredKafka | SecuredShim, run: Callable[[Connection], Any]) -> Any:
    with Connection(target.addresses["SASL_PLAINTEXT"], timeout_s=60) as connection:
        try:
            return run(connection)
        except WireClientError as err:
            return "closed" if "closed" in str(err) or "reset" in str(err) else str(err)


@pytest.mark.parametrize("name", CASES)
def test_a_client_is_told_what_kafka_tells_it(pair, name: str):
    kafka, shim = pair
    assert ask(shim, CASES[name]) == ask(kafka, CASES[name])


@pytest.mark.parametrize("is_begun_in_time", [False, True])
def test_a_session_is_over_for_a_request_that_is_complete_too_late(pair, is_begun_in_time: bool):
    """Wherever the time goes: a client that authenticates again at 95% of the time at the latest is cut off by both, if
    its last request before that arrives behind it."""

    def late(connection: Connection) -> Any:
        told = sasl.log_in_scram(connection, "SCRAM-SHA-512", "dave", "scram-secret").session_lifetime_ms
        frame = encode_request_frame(ListGroupsRequest(), 4, 1, "late")
        cut = len(frame) // 2 if is_begun_in_time else 0
        connection.send_bytes(frame[:cut])
        time.sleep(SESSION_S + 0.3)
        try:
            connection.send_bytes(frame[cut:])
            return told, len(connection.receive_frame())
        except WireClientError:
            return told, "closed"

    assert [ask(target, late) for target in pair] == [(SESSION_S * 1000, "closed")] * 2


@pytest.mark.parametrize("number", range(len(ALTERATIONS)))
def test_credentials_are_checked_as_kafka_checks_them(pair, number: int):
    answers = []
    for target in pair:
        with Connection(target.bootstrap) as admin:
            answer = admin.request(ALTERATIONS[number])
        answers.append(sorted(repr(result) for result in answer.results))
    assert answers[0] == answers[1]


def test_kafkas_tool_adds_and_removes_a_user(pair):
    _, shim = pair
    common = ["--bootstrap-server", shim.bootstrap, "--entity-type", "users"]
    tool = "kafka.admin.ConfigCommand"
    jvm.run(
        tool, *common, "--alter", "--entity-name", "tom", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=p]"
    )
    with Connection(shim.addresses["SASL_PLAINTEXT"]) as client:
        assert sasl.log_in_scram(client, "SCRAM-SHA-512", "tom", "p").error_code == 0
    assert "SCRAM-SHA-512=iterations=8192" in str(jvm.run(tool, *common, "--describe").stdout)
    jvm.run(tool, *common, "--alter", "--entity-name", "tom", "--delete-config", "SCRAM-SHA-512")
    with Connection(shim.addresses["SASL_PLAINTEXT"]) as client:
        assert sasl.log_in_scram(client, "SCRAM-SHA-512", "tom", "p").error_code == 58


def test_users_are_there_when_the_directory_changes_hands(tmp_path):
    """Kafka writes them, the shim adds one, Kafka reads both."""

    def works(target: SecuredKafka | SecuredShim, user: str) -> bool:
        with Connection(target.addresses["SASL_PLAINTEXT"]) as client:
            return sasl.log_in_scram(client, "SCRAM-SHA-256", user, "scram-secret").error_code == 0

    for kind, user, known in (
        (SecuredKafka, "one", ()),
        (SecuredShim, "two", ("one",)),
        (SecuredKafka, "", ("one", "two")),
    ):
        with kind(OPTIONS, tmp_path / "data") as target:
            assert all(works(target, name) for name in known)
            if user:
                with Connection(target.bootstrap) as admin:
                    admin.request(AlterUserScramCredentialsRequest(upsertions=[salted(user)]))
