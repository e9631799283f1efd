from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_shim.commands.main import run
from kafka_shim.embedded import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture
def address() -> Iterator[str]:
    with Broker(authorizer_class_name=AUTHORIZER, super_users="User:ANONYMOUS") as broker:
        yield broker.bootstrap_servers


def acls(address: str, word: str, *words: str) -> int:
    return run(["acls", word, "--bootstrap-server", address, *words])


def listed(address: str, capsys: pytest.CaptureFixture[str], *words: str) -> set[tuple[str, ...]]:
    capsys.readouterr()
    assert acls(address, "list", "--json", *words) == 0
    return {tuple(row.values()) for row in json.loads(capsys.readouterr().out)}


def test_acls_are_added_shown_as_kafkas_tool_shows_them_and_removed(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--topic",
        "orders",
        "--allow-principal",
        "User:alice",
        "--operation",
        "Read",
        "--operation",
        "ALTER_CONFIGS",
    ]
    assert acls(address, "add", *words) == 0
    words = ["--group", "g-", "--resource-pattern-type", "prefixed", "--deny-principal", "User:bob", "--deny-host", "h"]
    assert acls(address, "add", *words) == 0
    read = ("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")
    alter = (*read[:5], "ALTER_CONFIGS", "ALLOW")
    bob = ("GROUP", "g-", "PREFIXED", "User:bob", "h", "ALL", "DENY")
    assert listed(address, capsys) == {read, alter, bob}
    assert listed(address, capsys, "--principal", "User:bob") == {bob}
    assert listed(address, capsys, "--topic", "orders") == {read, alter}
    assert listed(address, capsys, "--group", "g-1") == set()
    assert listed(address, capsys, "--group", "g-1", "--resource-pattern-type", "match") == {bob}
    capsys.readouterr()
    assert acls(address, "list", "--group", "g-", "--resource-pattern-type", "any") == 0
    assert capsys.readouterr().out == (
        "Current ACLs for resource `ResourcePattern(resourceType=GROUP, name=g-, patternType=PREFIXED)`:\n"
        "\t(principal=User:bob, host=h, operation=ALL, permissionType=DENY)\n\n"
    )
    words = ["--topic", "orders", "--allow-principal", "User:alice", "--operation", "Read", "--force"]
    assert acls(address, "remove", *words) == 0
    assert listed(address, capsys) == {alter, bob}
    assert acls(address, "remove", "--topic", "orders", "--force") == 0
    assert listed(address, capsys) == {bob}


def test_acls_of_the_cluster(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert acls(address, "add", "--cluster", "--allow-principal", "User:a", "--operation", "IdempotentWrite") == 0
    row = ("CLUSTER", "kafka-cluster", "LITERAL", "User:a", "*", "IDEMPOTENT_WRITE", "ALLOW")
    assert listed(address, capsys, "--cluster") == {row}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["add", "--allow-principal", "User:a"], "name a resource"),
        (["add", "--topic", "t"], "at least one of --allow-principal and --deny-principal"),
        (["add", "--topic", "t", "--allow-principal", "alice"], "alice is not User:NAME"),
        (
            ["add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Fly"],
            "Fly is not an operation on a resource",
        ),
        (["remove", "--force"], "name a resource"),
    ],
)
def test_a_wrong_use_says_what_is_missing(
    address: str, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert acls(address, *words) == 2
    assert reason in capsys.readouterr().err


def test_a_broker_without_an_authorizer_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert acls(broker.bootstrap_servers, "list") == 1
    told = "error: SECURITY_DISABLED: No Authorizer is configured on the broker"
    assert capsys.readouterr().err == f"{told} (the broker's option authorizer.class.name names one)\n"
