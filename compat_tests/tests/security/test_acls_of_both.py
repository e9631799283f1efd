"""ACLs as Kafka's own tool manages them, on the shim and on Apache Kafka, and one directory that both open."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import pytest

from kafka_shim.compat.comparison import lines
from kafka_shim.compat.tests.security.principals import ANY, AUTHORIZER, NAMED
from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.targets import make, requests
from kafka_shim.targets.waiting import last_answer
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from kafka_shim.targets import Target

SHOWN_S = 60.0
SETTINGS = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.fixture(scope="module")
def tool() -> Iterator[ToolDriver]:
    with ToolDriver() as driver:
        yield driver


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Target, Target]]:
    """A shim and an Apache Kafka whose anonymous clients are super users."""
    with ExitStack() as stack:
        shim, kafka = (stack.enter_context(make(kind, settings=SETTINGS)) for kind in ("shim", "kafka-native"))
        yield shim, kafka


def acls(tool: ToolDriver, target: Target, *words: str) -> list[str]:
    """What kafka-acls prints, without the order of its hash maps."""
    return sorted(tool.run("kafka-acls", "--bootstrap-server", target.bootstrap, *words).splitlines())


def read(ask: Callable[[], Any], is_shown: Callable[[Any], bool]) -> Any:
    """What Kafka shows, read until `is_shown` accepts it or SHOWN_S are over: it answers a change before its broker has
    applied it."""
    return last_answer(ask, is_shown, SHOWN_S)


TOPIC = ("--topic", "orders")
STEPS: list[tuple[str, ...]] = [
    ("--add", *TOPIC, "--allow-principal", "User:alice", "--operation", "Read", "--operation", "AlterConfigs"),
    ("--add", *TOPIC, "--allow-principal", "User:alice", "--operation", "Read"),
    ("--add", *TOPIC, "--deny-principal", "User:bob", "--deny-host", "10.0.0.1"),
    ("--add", "--group", "g-", "--resource-pattern-type", "prefixed", "--allow-principal", "User:*"),
    ("--add", "--cluster", "--allow-principal", "User:alice", "--operation", "IdempotentWrite"),
    ("--add", "--producer", "--topic", "*", "--transactional-id", "x", "--allow-principal", "User:carol"),
    ("--add", "--consumer", "--topic", "a", "--group", "*", "--allow-principal", "User:carol"),
    ("--add", "--user-principal", "User:dora", "--allow-principal", "User:eve", "--operation", "CreateTokens"),
    ("--list",),
    ("--list", *TOPIC),
    ("--list", "--group", "g-1", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:carol"),
    ("--remove", "--force", *TOPIC, "--allow-principal", "User:alice", "--operation", "Read"),
    ("--remove", "--force", "--transactional-id", "x"),
    ("--remove", "--force", "--topic", "none"),
    ("--list",),
]


def test_kafkas_tool_prints_the_same(tool: ToolDriver, both: tuple[Target, Target]) -> None:
    shim, kafka = both
    for step in STEPS:
        if step[0] == "--add":
            # Kafka's tool lists the ACLs afterwards, from a broker that may not have seen them yet.
            ours, theirs = ([line for line in acls(tool, target, *step) if "Adding" in line] for target in both)
        else:
            # A removal lists what is left and removes nothing when it is done again.
            ours = acls(tool, shim, *step)
            theirs = read(partial(acls, tool, kafka, *step), ours.__eq__)
        assert ours == theirs, step
    assert any("User:eve" in line for line in acls(tool, shim, "--list"))
    assert acls(tool, kafka, "--list") == acls(tool, shim, "--list")


VALID: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
CREATIONS: list[dict[str, Any]] = [
    VALID,
    VALID,
    *({**VALID, "resource_type": kind} for kind in (1, 4, 6, 7, 8, 99, -3)),
    {**VALID, "resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
    {**VALID, "resource_type": 4, "resource_name": "", "operation": 1},
    {**VALID, "resource_name": ""},
    *({**VALID, "resource_pattern_type": kind} for kind in (1, 2, 4, 9)),
    *({**VALID, "operation": code} for code in (1, 2, 12, 15, 16, 99)),
    *({**VALID, "permission_type": code} for code in (1, 2, 4)),
    *({**VALID, "principal": text} for text in ("", "a", "Group:a", ":", "User:", "User:a:b", "User:*")),
    *({**VALID, "host": text} for text in ("", "h", "10.0.0.0/8", "::1")),
]
FILTERS: list[dict[str, Any]] = [
    {**ANY, **NAMED, **fields}
    for fields in (
        *({"resource_type_filter": kind} for kind in (4, 9, 99)),
        *({"pattern_type_filter": kind, "resource_name_filter": "tx"} for kind in (1, 2, 3, 4, 9)),
        *({"operation": code} for code in (2, 3, 16, 99)),
        *({"permission_type": code} for code in (2, 9)),
        {"principal_filter": "User:a"},
        {"principal_filter": ""},
        {"host_filter": "h"},
        {},
    )
]


def plain(message: Any) -> Any:
    """A message as plain values; lists in an order of their own."""
    if isinstance(message, list):
        return sorted((plain(one) for one in message), key=repr)
    if not hasattr(message, "FIELDS"):
        return message
    return {row[0]: plain(getattr(message, row[0])) for row in message.FIELDS}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_valid_and_invalid_acl_has_kafkas_answer_and_text(both: tuple[Target, Target], version: int) -> None:
    deletion = requests.make("DeleteAcls", filters=FILTERS)
    with Connection(both[0].bootstrap) as shim, Connection(both[1].bootstrap) as kafka:
        sides = (shim, kafka)
        texts = set()
        for wanted in CREATIONS:
            created = requests.make("CreateAcls", creations=[wanted, VALID])
            ours, theirs = ([plain(one) for one in side.request(created, version).results] for side in sides)
            for one, other in zip(ours, theirs, strict=True):
                if other["error_code"] == -1:
                    one["error_message"] = other["error_message"]  # Kafka says no more than that it failed
            assert lines(ours, theirs) == [], wanted
            texts.update(one["error_message"] for one in ours)
        assert len(texts) > 8
        for wanted in FILTERS:
            described = requests.make("DescribeAcls", **wanted)
            ours = plain(shim.request(described, version))
            theirs = read(lambda asked=described: plain(kafka.request(asked, version)), ours.__eq__)
            assert lines(ours, theirs) == [], wanted
        ours, theirs = ([plain(one) for one in side.request(deletion, version).filter_results] for side in sides)
        assert lines(ours, theirs) == []


def test_without_an_authorizer_both_say_so() -> None:
    with make("shim") as shim, make("kafka-native") as kafka:
        told = []
        for target in (shim, kafka):
            with Connection(target.bootstrap) as client:
                described = requests.make("DescribeAcls", **ANY, **NAMED)
                created = requests.make("CreateAcls", creations=[VALID, VALID])
                deleted = requests.make("DeleteAcls", filters=[{**ANY, **NAMED}])
                told.append([plain(client.request(one, 3)) for one in (described, created, deleted)])
    assert lines(*told) == []


def test_a_directory_keeps_its_acls_from_one_broker_to_the_other(tool: ToolDriver, tmp_path: Path) -> None:
    data = tmp_path / "data"
    listed = []
    with make("shim", settings=SETTINGS, data_dir=data) as shim:
        for step in STEPS[:8]:
            acls(tool, shim, *step)
        listed.append(acls(tool, shim, "--list"))
    with make("kafka-native", settings=SETTINGS, data_dir=data) as kafka:
        listed.append(acls(tool, kafka, "--list"))
        acls(tool, kafka, "--remove", "--force", *TOPIC)
        acls(tool, kafka, "--add", "--topic", "of-kafka", "--allow-principal", "User:k")
        listed.append(read(partial(acls, tool, kafka, "--list"), lambda told: any("of-kafka" in line for line in told)))
    with make("shim", settings=SETTINGS, data_dir=data) as shim:
        listed.append(acls(tool, shim, "--list"))
    assert listed[0] == listed[1]
    assert listed[2] == listed[3]
    assert len(listed[0]) > 15
    assert any("of-kafka" in line for line in listed[3])
    assert not any("name=orders" in line for line in listed[3])
