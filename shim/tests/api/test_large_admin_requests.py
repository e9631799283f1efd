"""Administrators' requests with very many entries, or with very long names: taken in steps, answered with little."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kafka_shim.api import TABLE
from kafka_shim.context import Context
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.session import Listener, Session
from kafka_shim.targets.requests import make
from kafka_shim.tests.api.admin import create, new_topic
from kafka_shim.wire_client import Connection

MANY = 1000
PARTITIONS = list(range(MANY))
# The longest that a string may be.
LONG = "x" * 0x7FFF


def taken(broker: Broker, request: Any, version: int, protocol: str = "PLAINTEXT") -> tuple[int, Any]:
    """The number of steps that a request takes, and what they return."""

    def take(state: Any) -> tuple[int, Any]:
        listener = Listener("L", "127.0.0.1", 1, protocol)
        session = Session(listener, ("127.0.0.1", 1), ("127.0.0.1", 2))
        context = Context(state, session, request.API_KEY, version, 1, "c", state.clock.now_ms())
        api = TABLE[request.API_KEY]
        api.load()
        steps = api.handle(context, request)
        count = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return count, end.value
            count += 1

    return broker.call(take, broker.state)


@pytest.mark.parametrize(
    ("name", "version", "least", "fields"),
    [
        ("ElectLeaders", 2, MANY, {"timeout_ms": 1, "topic_partitions": [{"topic": "t", "partitions": PARTITIONS}]}),
        (
            "AlterPartitionReassignments",
            1,
            MANY,
            {"timeout_ms": 1, "topics": [{"name": "t", "partitions": [{"partition_index": n} for n in PARTITIONS]}]},
        ),
        ("ListPartitionReassignments", 0, MANY, {"topics": [{"name": "t", "partition_indexes": PARTITIONS}]}),
        (
            "DescribeQuorum",
            2,
            MANY,
            {"topics": [{"topic_name": "t", "partitions": [{"partition_index": n} for n in PARTITIONS]}]},
        ),
        (
            "AlterReplicaLogDirs",  # they are sorted by their directory first
            2,
            2 * MANY,
            {"dirs": [{"path": "/d", "topics": [{"name": "t", "partitions": PARTITIONS}]}]},
        ),
        ("DescribeLogDirs", 4, MANY, {"topics": [{"topic": "t", "partitions": PARTITIONS}]}),
        (
            "AlterClientQuotas",
            1,
            2 * MANY,
            {
                "validate_only": True,
                "entries": [
                    {
                        "entity": [{"entity_type": "user", "entity_name": "u"}],
                        "ops": [{"key": f"k{n}", "remove": True} for n in PARTITIONS],
                    }
                ],
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_entry_is_a_step(broker: Broker, name: str, version: int, least: int, fields: dict[str, Any]):
    steps, found = taken(broker, make(name, **fields), version)
    assert steps >= least
    if hasattr(found, "close"):
        found.close()  # what comes then is a coroutine


def test_resources_are_listed_a_step_each(broker: Broker, client: Connection):
    """10,000 topics held the event loop for 7 ms."""
    create(client, *[new_topic(f"t{number}") for number in range(30)])
    steps, answer = taken(broker, make("ListConfigResources"), 1)
    assert len(answer.config_resources) == 32  # with the broker, and its loggers
    assert steps == 32


def test_owners_of_delegation_tokens_are_taken_in_steps():
    owners = [{"principal_type": "User", "principal_name": f"u{number}"} for number in PARTITIONS]
    with Broker(delegation_token_secret_key="k") as running:
        steps, answer = taken(running, make("DescribeDelegationToken", owners=owners), 3, "SASL_PLAINTEXT")
    assert answer.error_code == 0
    assert steps >= MANY


class Denier:
    """An authorizer that allows nothing, and counts the names that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> set[str]:
        self.asked.append(len(list(names)))
        return set()

    def allowed_on_any(self, *_: Any) -> bool:
        return False


@pytest.fixture
def denier(broker: Broker) -> Denier:
    broker.state.authorizer = found = Denier()
    return found


def test_few_of_the_topics_that_shall_grow_are_authorized_at_a_time(client: Connection, denier: Denier):
    topics = [{"name": f"t{number}", "count": 3, "assignments": None} for number in PARTITIONS]
    answer = client.request(make("CreatePartitions", timeout_ms=1000, topics=topics), 3)
    assert {one.error_code for one in answer.results} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert sum(denier.asked) == MANY
    assert max(denier.asked) < 100


def test_a_topic_whose_producers_are_described_is_authorized_once(client: Connection, denier: Denier):
    request = make("DescribeProducers", topics=[{"name": "t", "partition_indexes": PARTITIONS}])
    (topic,) = client.request(request, 0).topics
    assert {one.error_code for one in topic.partitions} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert denier.asked == [1]


@pytest.mark.parametrize(
    ("name", "version", "fields"),
    [
        ("DescribeProducers", 0, {"topics": [{"name": LONG, "partition_indexes": PARTITIONS}]}),
        ("ElectLeaders", 2, {"timeout_ms": 1, "topic_partitions": [{"topic": LONG, "partitions": PARTITIONS}]}),
        (
            "AlterPartitionReassignments",
            1,
            {"timeout_ms": 1, "topics": [{"name": LONG, "partitions": [{"partition_index": n} for n in PARTITIONS]}]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_long_name_is_not_in_the_error_of_each_partition(
    client: Connection, name: str, version: int, fields: dict[str, Any]
):
    """It was there thousands of times as long as the request: of 400 KB it made gigabytes."""
    answer = client.request(make(name, **fields), version)
    topics = getattr(
        answer, {"ElectLeaders": "replica_election_results", "DescribeProducers": "topics"}.get(name, "responses")
    )
    (topic,) = topics
    partitions = topic.partition_result if name == "ElectLeaders" else topic.partitions
    assert len(partitions) == MANY
    assert all(one.error_code and LONG[:100] in one.error_message for one in partitions)
    assert max(len(one.error_message) for one in partitions) < 1000


def test_an_alteration_that_names_a_quota_again_and_again_is_refused_once(broker: Broker):
    entity = [{"entity_type": "user", "entity_name": LONG[:32_000]}]
    ops = [{"key": "producer_byte_rate", "value": 1.0}] * MANY
    steps, answer = taken(broker, make("AlterClientQuotas", entries=[{"entity": entity, "ops": ops}]), 1)
    (entry,) = answer.entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST
    assert entry.error_message.startswith("Ignoring duplicate entity ")
    assert steps >= 2 * MANY


# --- error messages that no string may hold


@pytest.mark.parametrize("others", [1, 20_000], ids=["few", "many"])
def test_an_error_with_a_long_name_in_it_is_cut(client: Connection, others: int):
    """The connection was closed, with a traceback in the log."""
    client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)  # which makes the topic
    groups = [LONG, *(f"g{number}" for number in range(others))]
    found = client.request(make("DescribeGroups", groups=groups), 6).groups
    assert [one.group_id for one in found] == groups
    assert {one.error_code for one in found} == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert found[0].error_message.startswith("Group xxx")
    assert len(found[0].error_message) < 2000
    assert found[1].error_message == "Group g0 not found."
    users = client.request(make("DescribeUserScramCredentials", users=[{"name": LONG}]), 0).results
    assert [one.error_code for one in users] == [ErrorCode.RESOURCE_NOT_FOUND]


def test_other_topics_of_a_request_with_a_long_name_are_created_and_answered(client: Connection):
    results = create(client, new_topic(LONG), new_topic("t"))
    assert results[LONG].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert results["t"].error_code == 0
