"""StreamsGroupHeartbeat and StreamsGroupDescribe over a connection: who may, and the topics that the broker makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode as E
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.targets.requests import make
from kafka_shim.wire_client import Connection

pytestmark = pytest.mark.usefixtures("looked_up")

MISSING_INTERNAL = 3


def topology(source: str = "in", **log: Any) -> dict[str, Any]:
    row = {"subtopology_id": "0", "source_topics": [source], "state_changelog_topics": [{"name": "log", **log}]}
    return {"subtopologies": [row]}


def join(client: Connection, group: str = "g", shape: dict[str, Any] | None = None, **fields: Any) -> Any:
    none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    first = {"member_id": "a", "rebalance_timeout_ms": 1000, "process_id": "p", **none}
    request = make("StreamsGroupHeartbeat", group_id=group, **{**first, "topology": shape or topology(), **fields})
    return client.request(request, 0)


def describe(client: Connection, *groups: str, **fields: Any) -> list[Any]:
    return client.request(make("StreamsGroupDescribe", group_ids=list(groups), **fields), 0).groups


class Denies:
    """An authorizer that denies what it is told to."""

    def __init__(self, denied: Callable[[AclOperation, ResourceType, str], bool]) -> None:
        self.denied = denied

    def allowed(self, _: str, __: str, operation: AclOperation, kind: ResourceType, names: Iterable[str]) -> set[str]:
        return {name for name in names if not self.denied(operation, kind, name)}


@pytest.fixture
def topic(client: Connection) -> str:
    rows = [{"name": "in", "num_partitions": 3, "replication_factor": 1}]
    client.request(make("CreateTopics", topics=rows, timeout_ms=1000), 7)
    return "in"


def test_internal_topics_are_created_with_their_options(broker, client: Connection, topic: str) -> None:
    shape = topology(topic_configs=[{"key": "cleanup.policy", "value": "compact"}], replication_factor=1)
    told = join(client, shape=shape)
    assert [status.status_code for status in told.status] == [5, MISSING_INTERNAL]
    made = broker.state.metadata.image.topics["log"]
    assert len(made.partitions) == 3
    assert broker.state.metadata.topic_config("log").compact
    (group,) = describe(client, "g", include_authorized_operations=True)
    assert (group.group_state, group.authorized_operations > 0) == ("NotReady", True)
    join(client, shape=shape, user_endpoint={"host": "h", "port": 9}, client_tags=[{"key": "k", "value": "v"}])
    (group,) = describe(client, "g")
    (subtopology,) = group.topology.subtopologies
    (log,) = subtopology.state_changelog_topics
    assert (subtopology.source_topics, log.name, log.partitions, log.replication_factor) == (["in"], "log", 3, 1)
    assert [(each.key, each.value) for each in log.topic_configs] == [("cleanup.policy", "compact")]
    (member,) = group.members
    assert (member.user_endpoint.host, member.client_tags[0].key, group.group_state) == ("h", "k", "Assigning")


def test_why_a_topic_could_not_be_created_is_said(broker, client: Connection, topic: str) -> None:
    shape = topology(topic_configs=[{"key": "no.such", "value": "1"}])
    first = join(client, shape=shape)
    details = [each.status_detail for each in first.status if each.status_code == MISSING_INTERNAL]
    assert details == ["Internal topics are missing: log"]
    second = join(client, shape=shape)
    details = [each.status_detail for each in second.status if each.status_code == MISSING_INTERNAL]
    assert details == ["Internal topics are missing: log; Creation failed: log (Unknown topic config name: no.such)."]
    assert "log" not in broker.state.metadata.image.topics


def test_internal_topics_count_as_mutations_and_throttle_no_heartbeat(broker, client: Connection, topic: str) -> None:
    """Over quota the topics were made all the same, and the member's heartbeats were not read for the time that they
    took: a large topology could cost it its session."""
    quota = {"entity": [{"entity_type": "user", "entity_name": "ANONYMOUS"}]}
    rate = {"key": "controller_mutation_rate", "value": 0.1, "remove": False}
    answer: Any = client.request(make("AlterClientQuotas", entries=[{**quota, "ops": [rate]}]), 1)
    assert [each.error_code for each in answer.entries] == [E.NONE]
    assert join(client).throttle_time_ms == 0  # three partitions of a burst of 1.1
    assert "log" in broker.state.metadata.image.topics
    other = topology()
    other["subtopologies"][0]["state_changelog_topics"] = [{"name": "second"}]
    for detail in ("second", "second; Creation failed: second (The throttling quota has been exceeded.)."):
        told = join(client, "h", shape=other)
        assert (told.error_code, told.throttle_time_ms) == (E.NONE, 0)
        assert f"Internal topics are missing: {detail}" in [each.status_detail for each in told.status]
    assert "second" not in broker.state.metadata.image.topics
    broker.clock.advance(30_000)
    join(client, "h", shape=other)
    assert "second" in broker.state.metadata.image.topics


def test_errors_of_topics_are_forgotten() -> None:
    from kafka_shim.group.streams.requests import MOST_ERRORS, TopicErrors

    errors = TopicErrors()
    errors.put_all({"a": "full"}, 0, 10)
    assert (errors.get("a", 9), errors.get("a", 10), errors.get("b", 0)) == ("full", None, None)
    for number in range(MOST_ERRORS + 5):
        errors.put_all({f"t{number}": "full"}, 11, 10 + number)
    assert (errors.get("t4", 11), errors.get("t5", 11)) == (None, "full")


def test_who_may_not_create_is_told_which_topics(broker, client: Connection, topic: str) -> None:
    broker.state.authorizer = Denies(lambda operation, *_: operation is AclOperation.CREATE)
    try:
        told = join(client)
    finally:
        broker.state.authorizer = None
    assert told.error_code == E.NONE
    assert "Internal topics are missing: log; Unauthorized to CREATE on topics log." in [
        each.status_detail for each in told.status
    ]
    assert "log" not in broker.state.metadata.image.topics


def test_topics_that_no_string_can_name_are_told_in_part(broker, client: Connection, topic: str) -> None:
    """The connection was closed at each heartbeat, with a traceback."""
    shape = topology()
    logs = [{"name": f"{number:03}".ljust(100, "x")} for number in range(400)]
    shape["subtopologies"][0]["state_changelog_topics"] = logs
    broker.state.authorizer = Denies(lambda operation, *_: operation is AclOperation.CREATE)
    try:
        told = join(client, shape=shape)
    finally:
        broker.state.authorizer = None
    assert told.error_code == E.NONE
    (detail,) = [each.status_detail for each in told.status if each.status_code == MISSING_INTERNAL]
    assert "; Unauthorized to CREATE on topics " in detail
    assert detail.endswith("...")


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        ((AclOperation.READ, ResourceType.GROUP, "g"), E.GROUP_AUTHORIZATION_FAILED),
        ((AclOperation.DESCRIBE, ResourceType.TOPIC, "log"), E.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_join_is_refused(broker, client: Connection, topic: str, denied: Any, code: E) -> None:
    broker.state.authorizer = Denies(lambda *asked: asked == denied)
    try:
        assert join(client).error_code == code
    finally:
        broker.state.authorizer = None
    (group,) = describe(client, "g")
    assert group.error_code == E.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("name", ["__consumer_offsets", "no such name", ""])
def test_a_name_that_no_topic_can_have_is_refused(client: Connection, name: str) -> None:
    assert join(client, shape=topology(name)).error_code == E.STREAMS_INVALID_TOPOLOGY


def test_a_group_is_described_to_those_who_may(broker, client: Connection, topic: str) -> None:
    join(client)
    join(client, "h")
    denied = (AclOperation.DESCRIBE, ResourceType.GROUP, "h")
    broker.state.authorizer = Denies(lambda *asked: asked == denied)
    try:
        told = describe(client, "g", "h", "")
    finally:
        broker.state.authorizer = None
    codes = [(each.group_id, each.error_code) for each in told]
    assert codes == [("h", E.GROUP_AUTHORIZATION_FAILED), ("g", E.NONE), ("", E.INVALID_GROUP_ID)]
    broker.state.authorizer = Denies(lambda *asked: asked == (AclOperation.DESCRIBE, ResourceType.TOPIC, "log"))
    try:
        (group,) = describe(client, "g")
    finally:
        broker.state.authorizer = None
    assert (group.error_code, group.members, group.topology) == (E.TOPIC_AUTHORIZATION_FAILED, [], None)


def test_without_the_feature_both_are_refused(client: Connection) -> None:
    for level, code in ((0, E.UNSUPPORTED_VERSION), (1, E.GROUP_ID_NOT_FOUND)):
        update = {"feature": "streams.version", "max_version_level": level, "upgrade_type": 1 if level else 2}
        answer: Any = client.request(make("UpdateFeatures", timeout_ms=1000, feature_updates=[update]), 1)
        assert answer.error_code == E.NONE
        assert [each.error_code for each in describe(client, "g")] == [code]
        if not level:
            assert join(client).error_code == code


def test_a_broker_without_the_protocol_refuses_both() -> None:
    with (
        Broker(group_coordinator_rebalance_protocols="classic,consumer") as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        assert join(client).error_code == E.UNSUPPORTED_VERSION
        assert [each.error_code for each in describe(client, "g")] == [E.UNSUPPORTED_VERSION]


@pytest.mark.parametrize("kind", ["source_topics", "repartition_sink_topics", "state_changelog_topics"])
def test_a_topology_that_no_record_may_hold_is_refused_before_its_names_are_looked_at(
    broker, client: Connection, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    names = [f"topic{number:03}" for number in range(100)]
    named = [{"name": name} for name in names] if kind == "state_changelog_topics" else names
    shape = {"subtopologies": [{"subtopology_id": "0", "source_topics": ["in"], kind: named}]}
    with monkeypatch.context() as patch:
        patch.setattr(broker.state.groups.image.config, "message_max_bytes", 900)
        asked: list[Any] = []
        broker.state.authorizer = Denies(lambda *about: bool(asked.append(about)))
        try:
            told = join(client, shape=shape)
        finally:
            broker.state.authorizer = None
    assert told.error_code == E.UNKNOWN_SERVER_ERROR
    assert not any(operation is AclOperation.DESCRIBE for operation, *_ in asked)
    assert join(client, shape=shape).error_code == 0
