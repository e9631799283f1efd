"""The one gate is asked what KafkaApis and ControllerApis of Kafka 4.3.1 ask, for every API and resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kafka_shim.api import APIS, TABLE, ThrottleClass
from kafka_shim.errors import ErrorCode
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.tests.authorization import CASES, INSTEAD, SILENT
from kafka_shim.tests.authorization.groups import offset_commit
from kafka_shim.tests.authorization.requests import ID, TOPIC, new
from kafka_shim.tests.authorization.transactions import add_partitions
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection


class Recorder:
    """An authorizer that writes down what it is asked and denies what `denies` says."""

    def __init__(self, denies: Callable[[AclOperation, ResourceType], bool]) -> None:
        self.denies = denies
        self.asked: set[tuple[str, str, str]] = set()

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> set[str]:
        assert (principal, host) == ("User:ANONYMOUS", "127.0.0.1")
        names = set(names)
        self.asked.update((operation.name, resource_type.name, name) for name in names)
        return set() if self.denies(operation, resource_type) else names

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        self.asked.add((operation.name, resource_type.name, "*any*"))
        return not self.denies(operation, resource_type)


@pytest.fixture
def prepared(broker, client: Connection) -> Connection:
    """A topic, a classic group with an offset, a consumer and a share group with a member each, an open
    transaction."""
    make_topic(client, TOPIC)
    for name in ("__consumer_offsets", "__transaction_state"):
        broker.call(broker.state.metadata.ensure_internal_topic, name)
    assert client.request(offset_commit(), 9).topics[0].partitions[0].error_code == 0
    altering = CASES[91, 0][0]()
    altering.group_id = "s"
    assert client.request(altering, 0).error_code == 0
    assert client.request(CASES[76, 1][0](), 1).assignment.topic_partitions
    joining = CASES[68, 1][0]()
    joining.group_id = "k"
    assert client.request(joining, 1).error_code == 0
    begin = CASES[22, 4][0]()
    begin.transaction_timeout_ms = 60_000
    told = client.request(begin, 4)
    adding = add_partitions(TOPIC)
    adding.v3_and_below_producer_id, adding.v3_and_below_producer_epoch = told.producer_id, told.producer_epoch
    answer = client.request(adding, 3)
    assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    return client


def ask(broker, client: Connection, case: tuple[int, int], recorder: Recorder) -> Any:
    broker.state.authorizer = recorder
    try:
        return client.request(CASES[case][0](), case[1])
    finally:
        broker.state.authorizer = None


def codes_in(message: Any) -> set[int]:
    """All error codes of an answer, at any depth."""
    found = set[int]()
    for row in message.FIELDS:
        value = getattr(message, row[0])
        if row[0].endswith("error_code"):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "FIELDS"):
                found |= codes_in(each)
    return found


AUTHORIZATION_FAILED = {code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")}


def test_every_api_has_a_case():
    assert {key for key, _ in CASES} == {api.key for api in APIS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{TABLE[case[0]].name}-v{case[1]}")
def test_what_kafka_asks_is_asked(broker, prepared: Connection, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: False)
    answer = ask(broker, prepared, case, recorder)
    assert recorder.asked == CASES[case][1]
    assert not codes_in(answer) & AUTHORIZATION_FAILED
    assert broker.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{TABLE[case[0]].name}-v{case[1]}")
def test_nothing_is_told_to_a_client_that_may_do_nothing(broker, prepared: Connection, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: True)
    answer = ask(broker, prepared, case, recorder)
    if case in SILENT:
        assert not codes_in(answer) & AUTHORIZATION_FAILED
    else:
        assert codes_in(answer) & AUTHORIZATION_FAILED
        assert codes_in(answer) <= {*AUTHORIZATION_FAILED, 0}
    assert broker.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("case", INSTEAD, ids=lambda case: TABLE[case[0]].name)
def test_a_client_that_may_not_on_the_cluster_is_asked_about_names(broker, prepared, case: tuple[int, int]):
    recorder = Recorder(lambda operation, resource_type: resource_type is ResourceType.CLUSTER)
    ask(broker, prepared, case, recorder)
    assert recorder.asked == CASES[case][1] | INSTEAD[case]


def test_a_client_that_may_not_read_a_topic_is_told_so_instead_of_its_producers(broker, prepared: Connection):
    (topic,) = ask(broker, prepared, (61, 0), Recorder(lambda operation, resource_type: True)).topics
    assert [(one.error_code, one.error_message) for one in topic.partitions] == [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    ]


def test_names_that_may_be_seen_are_answered_beside_those_that_may_not(broker, prepared: Connection):
    """A client learns nothing of a topic that it may not describe, not even that there is none."""
    make_topic(prepared, "other")
    recorder = Recorder(lambda operation, resource_type: False)
    recorder.allowed = lambda principal, host, operation, resource_type, names: {*names} & {TOPIC}  # type: ignore[method-assign]
    broker.state.authorizer = recorder
    names = [new("metadata_request.MetadataRequestTopic", name=name) for name in (TOPIC, "other", "none")]
    told = prepared.request(new("metadata_request.MetadataRequest", topics=names), 12)
    assert {(topic.name, topic.error_code, len(topic.partitions)) for topic in told.topics} == {
        (TOPIC, 0, 2),
        ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
        ("none", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
    }
    everything = prepared.request(new("metadata_request.MetadataRequest", topics=None), 12)
    assert [topic.name for topic in everything.topics] == [TOPIC]
    broker.state.authorizer = None


@pytest.mark.parametrize(("case", "group_id"), [((69, 1), "k"), ((77, 1), "s")], ids=["consumer", "share"])
def test_a_group_with_a_topic_that_the_client_may_not_describe_is_hidden(
    broker, prepared: Connection, case: tuple[int, int], group_id: str
):
    """Of the group remains its id, as in Kafka: neither members nor the names of topics, nor its epochs."""
    recorder = Recorder(lambda operation, kind: False)
    (shown,) = ask(broker, prepared, case, recorder).groups
    assigned = [part.topic_name for member in shown.members for part in member.assignment.topic_partitions]
    assert (shown.error_code, shown.group_epoch > 0, assigned) == (0, True, [TOPIC])
    hidden = ask(broker, prepared, case, Recorder(lambda operation, kind: kind is ResourceType.TOPIC)).groups
    expected = type(shown)(
        group_id=group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
    )
    assert hidden == [expected]


@pytest.mark.parametrize(("case", "group_id"), [((69, 1), "k"), ((77, 1), "s")], ids=["consumer", "share"])
def test_only_the_groups_with_a_topic_that_is_not_described_are_hidden(
    broker, prepared: Connection, case: tuple[int, int], group_id: str
):
    """A group without an assigned topic is shown beside it, and one that may not be described is asked for no topic."""
    request = CASES[case][0]()
    request.group_ids = [group_id, "none", "secret"]
    recorder = Recorder(lambda operation, kind: False)
    recorder.allowed = lambda principal, host, operation, kind, names: {  # type: ignore[method-assign]
        name for name in names if kind is ResourceType.GROUP and name != "secret"
    }
    broker.state.authorizer = recorder
    try:
        found = prepared.request(request, case[1]).groups
    finally:
        broker.state.authorizer = None
    assert [(group.group_id, group.error_code) for group in found] == [
        (group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]


def test_no_client_adds_an_internal_topic_to_a_transaction_by_its_name(broker, prepared: Connection):
    """As Kafka, without any authorizer."""
    (topic,) = prepared.request(add_partitions("__consumer_offsets"), 3).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_before_authentication_three_apis_are_served():
    assert {api.name for api in APIS if api.before_authentication} == {
        "api_versions",
        "sasl_handshake",
        "sasl_authenticate",
    }


def test_each_api_has_kafkas_throttle():
    throttles = {api.name: api.throttle for api in APIS if api.throttle is not ThrottleClass.REQUEST}
    assert throttles == {
        "produce": ThrottleClass.PRODUCE,
        "fetch": ThrottleClass.FETCH,
        "share_fetch": ThrottleClass.FETCH,
        "create_topics": ThrottleClass.CONTROLLER_MUTATION,
        "delete_topics": ThrottleClass.CONTROLLER_MUTATION,
        "create_partitions": ThrottleClass.CONTROLLER_MUTATION,
        "write_txn_markers": ThrottleClass.EXEMPT,
    }


def test_the_history_of_a_transaction_names_no_topic_that_the_client_may_not_describe(
    broker, prepared: Connection
) -> None:
    def told(recorder: Recorder | None) -> list[str]:
        broker.state.authorizer = recorder
        try:
            request = new("describe_transactions_request.DescribeTransactionsRequest", transactional_ids=[ID, ID])
            request.unknown_tags = {EXPLAIN_TAG: b""}
            states = prepared.request(request, 0).transaction_states
        finally:
            broker.state.authorizer = None
        return [bytes((state.unknown_tags or {}).get(EXPLAIN_TAG, b"")).decode() for state in states]

    whole, again = told(None)
    assert f"[{TOPIC}-0]" in whole
    assert again == ""  # once, however often it is asked for
    hidden, _ = told(Recorder(lambda operation, kind: kind is ResourceType.TOPIC))
    assert "-> Ongoing" in hidden
    assert f"{TOPIC}-0" not in hidden
