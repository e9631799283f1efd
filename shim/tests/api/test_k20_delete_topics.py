from __future__ import annotations

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.tests.api.admin import create, delete, new_topic
from kafka_shim.tests.produced import batch, fetch, produce
from kafka_shim.tests.test_authorization import Recorder
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_goes_in_every_version_and_its_name_is_free(client, version):
    first = create(client, new_topic("t"))["t"].topic_id
    produce(client, "t", 0, batch(b"a"))
    assert delete(client, "t", version=version) == [("t", 0)]
    assert delete(client, "t", version=version) == [("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert create(client, new_topic("t"))["t"].topic_id != first
    assert fetch(client, "t", 0, 0).high_watermark == 0


def test_a_topic_goes_by_its_id(client):
    topic_id = create(client, new_topic("t"))["t"].topic_id
    assert delete(client, ids=[topic_id]) == [("t", 0)]
    assert delete(client, ids=[topic_id]) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_topic_by_name_and_id_at_once_stays(client):
    topic_id = create(client, new_topic("t"))["t"].topic_id
    assert delete(client, "t", ids=[topic_id]) == [("t", ErrorCode.INVALID_REQUEST)]
    assert delete(client, "t") == [("t", 0)]


def test_a_name_twice_stays(client):
    create(client, new_topic("t"), new_topic("u"))
    assert sorted(delete(client, "t", "u", "t")) == [("t", ErrorCode.INVALID_REQUEST), ("u", 0)]


ZERO = bytes(16)
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SUPPLIED_TWICE = "The provided topic name maps to an ID that was already supplied."


@pytest.mark.parametrize("denied", [{"DELETE"}, {"DESCRIBE", "DELETE"}, set()], ids=["shown", "hidden", "allowed"])
@pytest.mark.parametrize("times", [1, 2])
def test_an_id_that_a_name_repeats_is_told_to_those_who_may_delete_it(broker, client, denied: set[str], times: int):
    """It would tell others that the id is that topic's."""
    topic_id = create(client, new_topic("t"))["t"].topic_id
    topics = [DeleteTopicState(name="t")] + [DeleteTopicState(name=None, topic_id=topic_id)] * times
    broker.state.authorizer = Recorder(
        lambda operation, kind: operation.name in denied or (kind.name == "CLUSTER" and bool(denied))
    )
    try:
        answer = client.request(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    finally:
        broker.state.authorizer = None
    told = [(one.name, one.topic_id, one.error_code, one.error_message) for one in answer.responses]
    twice = [(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")] if times == 2 else []
    if not denied:
        assert told == [*twice, ("t", topic_id, ErrorCode.INVALID_REQUEST, SUPPLIED_TWICE)]
    else:
        name = None if "DESCRIBE" in denied else "t"
        assert told == [*(twice or [(name, topic_id, DENIED, None)]), ("t", ZERO, DENIED, None)]
    assert delete(client, "t") == [("t", 0)]


def test_a_name_that_may_be_deleted_but_not_described_is_refused(broker: Broker, client: Connection):
    """Kafka's controller looks at the right to describe first: an ACL that denies it keeps the topic."""
    create(client, new_topic("t"))
    broker.state.authorizer = Recorder(lambda operation, kind: operation.name == "DESCRIBE" or kind.name == "CLUSTER")
    try:
        assert delete(client, "t", "none") == [("t", DENIED), ("none", DENIED)]
    finally:
        broker.state.authorizer = None
    assert delete(client, "t") == [("t", 0)]


def test_deletion_may_be_forbidden():
    with Broker(delete_topic_enable=False) as broker, Connection(broker.bootstrap_servers) as client:
        create(client, new_topic("t"))
        assert delete(client, "t") == [("t", ErrorCode.TOPIC_DELETION_DISABLED)]
        assert delete(client, "t", version=2) == [("t", ErrorCode.INVALID_REQUEST)]
        late = client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=0), 6).responses
        assert [(one.error_code, one.error_message) for one in late] == [(ErrorCode.TOPIC_DELETION_DISABLED, None)]


def test_a_topic_that_may_not_be_deleted_is_late_too(broker: Broker, client: Connection):
    """Kafka's controller is asked for the ids of all named topics, denied ones too, before any is refused."""
    create(client, new_topic("t"))
    broker.state.authorizer = Recorder(lambda *_: True)
    try:
        for topics in ([DeleteTopicState(name="t")], [DeleteTopicState(name="t"), DeleteTopicState(name="nope")]):
            late = client.request(DeleteTopicsRequest(topics=topics, timeout_ms=0), 6).responses
            assert [one.error_code for one in late] == [ErrorCode.REQUEST_TIMED_OUT] * len(topics)
    finally:
        broker.state.authorizer = None
