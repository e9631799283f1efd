"""Delegation tokens on the shim and on Apache Kafka: every refusal, Kafka's own tool, a Java client that authenticates
by token, and one directory that both open."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial

import pytest

from kafka_shim.compat.tests.security.principals import ALICE, BOB, ROOT, Rule, Secured
from kafka_shim.compat.tests.security.test_acls_of_both import read
from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.targets import requests
from kafka_shim.targets.secured import SecuredKafka, SecuredShim
from kafka_shim.tests.security.sasl_client import SCRAM_MODULE, log_in_by_token
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.java

KEYS = {
    "delegation.token.secret.key": "one key of both",
    "delegation.token.max.lifetime.ms": "86400000",
    "delegation.token.expiry.time.ms": "3600000",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
}
ACLS = [
    Rule(ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS),
    Rule(ResourceType.USER, "User:bob", AclOperation.DESCRIBE_TOKENS),
    Rule(ResourceType.TOPIC, "t", AclOperation.ALL),
    Rule(ResourceType.GROUP, "*", AclOperation.ALL),
]


def secured(kind: type[SecuredKafka | SecuredShim], data_dir: Path | None = None) -> Secured:
    side = Secured(kind, {}, data_dir)
    side.target.target.settings.update(KEYS)
    return side


@pytest.fixture(scope="module")
def tool() -> Iterator[ToolDriver]:
    with ToolDriver() as driver:
        yield driver


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Secured, Secured]]:
    with ExitStack() as stack:
        pair = (stack.enter_context(secured(SecuredShim)), stack.enter_context(secured(SecuredKafka)))
        for side in pair:
            side.set_acls(ACLS)
        yield pair


def create(side: Secured, user: str, version: int = 3, **fields: Any) -> Any:
    return side.ask(user, requests.make("CreateDelegationToken", **fields), version)


def shown(side: Secured, user: str, version: int = 3, *owners: str) -> list[Any]:
    named = [{"principal_type": "User", "principal_name": owner} for owner in owners] or None
    answer = side.ask(user, requests.make("DescribeDelegationToken", owners=named), version)
    assert answer.error_code == 0
    return sorted(answer.tokens, key=lambda token: token.issue_timestamp)


def facts(message: Any, since_ms: int) -> Any:
    """A response without what is of one token alone: its id, its HMAC; times become durations."""
    if isinstance(message, list):
        return [facts(one, since_ms) for one in message]
    if not hasattr(message, "FIELDS"):
        return message
    found = {}
    for row in message.FIELDS:
        value = getattr(message, row[0])
        if "timestamp" in row[0] and value > 0:
            value = round((value - since_ms) / 60_000)
        elif row[0] in ("token_id", "hmac"):
            value = len(value)
        found[row[0]] = facts(value, since_ms)
    return found


def conversation(side: Secured) -> list[Any]:
    """What is answered to every use and misuse of a token."""
    told: list[Any] = []
    token = create(side, ALICE, renewers=[{"principal_type": "User", "principal_name": "bob"}])
    since_ms = token.issue_timestamp_ms
    told.append(token)
    told += [create(side, ALICE, version, max_lifetime_ms=60_000) for version in (1, 2, 3)]
    told += [
        create(side, ALICE, owner_principal_type="User", owner_principal_name="bob"),
        create(side, ALICE, owner_principal_type="User", owner_principal_name="root"),
        create(side, ALICE, owner_principal_type="User", owner_principal_name=""),
        create(side, ALICE, renewers=[{"principal_type": "Group", "principal_name": "g"}]),
        create(side, ALICE, max_lifetime_ms=2**63 - 1),
    ]
    secret = bytes(token.hmac)
    read(partial(shown, side, ALICE), lambda tokens: len(tokens) == 7)
    for user, hmac, period_ms in (
        (ALICE, secret, -1),
        (BOB, secret, 120_000),
        (ROOT, secret, -1),
        (ALICE, secret, 2**62),
        (ALICE, b"unknown", -1),
        (ALICE, b"", -1),
    ):
        told += [
            side.ask(user, requests.make("RenewDelegationToken", hmac=hmac, renew_period_ms=period_ms), version)
            for version in (1, 2)
        ]
        expire = requests.make("ExpireDelegationToken", hmac=hmac, expiry_time_period_ms=600_000)
        told.append(side.ask(user, expire, 2))
        if not told[-1].error_code:
            # Kafka's broker shows a change some time after the controller's answer.
            expiry_ms = told[-1].expiry_timestamp_ms
            read(
                partial(shown, side, ALICE),
                lambda tokens, expected=expiry_ms: expected in {one.expiry_timestamp for one in tokens},
            )
    told += [[facts(one, since_ms) for one in shown(side, ALICE, version)] for version in (1, 2, 3)]
    told += [
        facts(one, since_ms) for one in (shown(side, ALICE, 3, "bob"), shown(side, BOB), shown(side, BOB, 3, "alice"))
    ]
    told.append(side.ask(ALICE, requests.make("DescribeDelegationToken", owners=[]), 3))
    with Connection(side.target.addresses["SASL_PLAINTEXT"]) as by_token:
        told.append(log_in_by_token(by_token, "SCRAM-SHA-256", token.token_id, secret).error_code)
        told += [
            by_token.request(requests.make("CreateDelegationToken"), 3),
            by_token.request(requests.make("RenewDelegationToken", hmac=secret, renew_period_ms=-1), 2),
            by_token.request(requests.make("ExpireDelegationToken", hmac=secret, expiry_time_period_ms=-1), 2),
            by_token.request(requests.make("DescribeDelegationToken", owners=None), 3),
        ]
        told.append(side.ask(ALICE, requests.make("ExpireDelegationToken", hmac=secret, expiry_time_period_ms=-1), 2))
        read(partial(shown, side, ALICE), lambda tokens: token.token_id not in {one.token_id for one in tokens})
        told.append(by_token.request(requests.make("Metadata", topics=[]), 12).controller_id)
    for word in (secret, b"guess"):
        with Connection(side.target.addresses["SASL_PLAINTEXT"]) as refused:
            answer = log_in_by_token(refused, "SCRAM-SHA-512", token.token_id, word)
            told.append((answer.error_code, answer.error_message))
    with Connection(side.target.bootstrap.split("://")[-1].split(",")[0]) as anonymous:
        told += [
            anonymous.request(requests.make("CreateDelegationToken"), 3),
            anonymous.request(requests.make("RenewDelegationToken", hmac=secret, renew_period_ms=-1), 1),
            anonymous.request(requests.make("ExpireDelegationToken", hmac=secret, expiry_time_period_ms=-1), 1),
            anonymous.request(requests.make("DescribeDelegationToken", owners=None), 1),
        ]
    return [facts(one, since_ms) for one in told]


def test_each_use_and_misuse_of_a_token_has_kafkas_answer(both: tuple[Secured, Secured]) -> None:
    ours, theirs = (conversation(side) for side in both)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, number
    assert len(ours) > 40


def config(path: Path, user: str) -> Path:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return _config(path / f"{user}.properties", "PLAIN", f'{module} required username="{user}" password="{user}";')


def _config(path: Path, mechanism: str, jaas: str) -> Path:
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n")
    return path


def test_kafkas_tool_makes_a_token_by_which_a_java_client_authenticates(
    tool: ToolDriver, both: tuple[Secured, Secured], tmp_path: Path
) -> None:
    """kafka-delegation-tokens creates, describes, renews and expires; a Java client has the owner's rights by it."""
    printed = []
    for side in both:
        address = side.target.addresses["SASL_PLAINTEXT"]
        side.ask(
            ROOT,
            requests.make(
                "CreateTopics", topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}], timeout_ms=9000
            ),
            5,
        )
        words = ("--bootstrap-server", address, "--command-config", str(config(tmp_path, ALICE)))
        run = partial(tool.run, "kafka-delegation-tokens", *words)
        made = run("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
        token_id, secret = re.findall(r"^(\S+)\s+(\S+)\s+User:alice", made, re.MULTILINE)[0]
        read(partial(run, "--describe"), lambda text, wanted=token_id: wanted in text)
        jaas = f'{SCRAM_MODULE} required username="{token_id}" password="{secret}" tokenauth="true";'
        by_token = _config(tmp_path / "token.properties", "SCRAM-SHA-512", jaas)
        listed = tool.run(
            "kafka-topics", "--bootstrap-server", address, "--command-config", str(by_token), "--list"
        ).split()
        refused = _refused(tool, address, by_token)
        renewed = run("--renew", "--renew-time-period", "-1", "--hmac", secret)
        described = run("--describe", "--owner-principal", "User:alice").replace(token_id, "ID").replace(secret, "HMAC")
        expired = run("--expire", "--expiry-time-period", "-1", "--hmac", secret)
        printed.append(
            [
                listed,
                refused,
                *(re.sub(r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d|\d\d:\d\d|\s+", " ", text) for text in (renewed,)),
            ]
        )
        assert "ID" in described
        assert "HMAC" in described
        assert "Completed renew" in renewed
        assert "Completed expire" in expired
    assert printed[0][:2] == printed[1][:2] == [["t"], True]


def _refused(tool: ToolDriver, address: str, by_token: Path) -> bool:
    """A token begets no token."""
    from kafka_shim.targets.jvm import ToolError

    words = ("--bootstrap-server", address, "--command-config", str(by_token))
    try:
        tool.run("kafka-delegation-tokens", *words, "--create", "--max-life-time-period", "-1")
    except ToolError as err:
        return "Calling create token operation" in str(err)  # the reason goes to stderr
    return False


def test_a_directory_keeps_its_tokens_from_one_broker_to_the_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seen = []
    with secured(SecuredShim, data) as shim:
        token = create(shim, ALICE, renewers=[{"principal_type": "User", "principal_name": "bob"}])
        gone = create(shim, ALICE)
        hmac = bytes(gone.hmac)
        assert (
            shim.ask(ALICE, requests.make("ExpireDelegationToken", hmac=hmac, expiry_time_period_ms=-1), 2).error_code
            == 0
        )
        seen.append([_fields(one) for one in shown(shim, BOB)])
    with secured(SecuredKafka, data) as kafka:
        seen.append([_fields(one) for one in shown(kafka, BOB)])
        _log_in(kafka, token)
        by_kafka = create(kafka, BOB)
        read(partial(shown, kafka, BOB), lambda tokens: len(tokens) == 2)
        seen.append([_fields(one) for one in shown(kafka, BOB)])
    with secured(SecuredShim, data) as shim:
        seen.append([_fields(one) for one in shown(shim, BOB)])
        _log_in(shim, token)
        _log_in(shim, by_kafka)
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert [len(one) for one in seen] == [1, 1, 2, 2]


def _fields(token: Any) -> dict[str, Any]:
    return {
        row[0]: facts(getattr(token, row[0]), 0) if row[0] == "renewers" else getattr(token, row[0])
        for row in token.FIELDS
    }


def _log_in(side: Secured, token: Any) -> None:
    with Connection(side.target.addresses["SASL_PLAINTEXT"]) as client:
        assert log_in_by_token(client, "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 0
