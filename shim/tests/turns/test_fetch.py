"""Fetch in turns."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim import connection
from kafka_shim.api import (
    k01_fetch,
)
from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import batch, fetch_request, produce
from kafka_shim.tests.turns.harness import (
    begun,
    context_of,
    steps_of,
    topics,
    until,
)
from kafka_shim.turns import at_once
from kafka_shim.wire_client import Connection

MANY = k01_fetch.MANY + 100


def fetch_of(count: int, topic: str = "t", **how: Any) -> Any:
    return fetch_request({(topic, number): 0 for number in range(count)}, **how)


def test_a_large_fetch_is_that_of_a_small_one_and_opens_a_session_that_knows_of_later_news(broker: Broker) -> None:
    topics(broker, t=MANY)
    records = batch(b"a")
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for number in (3, MANY - 1):
            produce(client, "t", number, records)

        def run(state: Any) -> tuple[Any, int]:
            steps = begun(state, fetch_of(MANY, session_epoch=0), 11, MANY + 200)
            # It has read this partition, and has not said so yet.
            state.logs.get("t", 5).append_as_leader(records, now_ms=state.clock.now_ms(), version=9)
            return steps_of(steps)

        answer, count = broker.call(run, broker.state)
        (topic,) = answer.responses
        assert [part.partition_index for part in topic.partitions] == list(range(MANY))
        assert [part.partition_index for part in topic.partitions if part.records] == [3, MANY - 1]
        assert count >= MANY // k01_fetch.PARTITIONS_PER_STEP
        following = fetch_request({}, session_id=answer.session_id, session_epoch=1)
        news = client.request(following, 11)
        assert news.error_code == 0
        assert sorted(part.partition_index for part in news.responses[0].partitions) == [3, 5, MANY - 1]


def test_a_topic_that_is_deleted_while_a_large_fetch_reads_is_unknown_for_the_rest(broker: Broker) -> None:
    topics(broker, t=MANY, u=1)

    def run(state: Any) -> Any:
        request = fetch_of(MANY, session_epoch=-1)
        request.topics += fetch_of(1, "u").topics
        steps = begun(state, request, 11, 2 * MANY - 100)
        state.metadata.delete_topic("t")
        return steps_of(steps)[0]

    answer = broker.call(run, broker.state)
    codes = {part.error_code for topic in answer.responses if topic.topic == "t" for part in topic.partitions}
    assert codes == {0, 3}
    assert sum(len(topic.partitions) for topic in answer.responses) == MANY + 1
    # Kafka lists unknown partitions last.
    assert [topic.partitions[0].error_code for topic in answer.responses][-1] == 3
    assert broker.call(lambda: broker.state.metrics.errors_unexpected) == 0


def test_a_request_of_a_session_that_comes_while_another_is_answered_makes_that_one_a_duplicate(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        opened = client.request(fetch_of(MANY, session_epoch=0), 11)
        assert opened.session_id

        def run(state: Any) -> tuple[Any, Any]:
            moved = fetch_of(MANY, session_id=opened.session_id, session_epoch=1)
            steps = begun(state, moved, 11, 2 * MANY)
            later = fetch_request({}, session_id=opened.session_id, session_epoch=2)
            context = context_of(state, later, 11)
            context.is_large = True
            second = at_once(k01_fetch._in_steps(context, later))  # type: ignore[arg-type]
            return steps_of(steps)[0], second

        first, second = broker.call(run, broker.state)
        assert first.error_code == 71  # INVALID_FETCH_SESSION_EPOCH
        assert second.error_code == 0


def test_a_session_that_is_gone_before_its_partitions_joined_follows_no_log(broker: Broker) -> None:
    topics(broker, t=MANY)

    def run(state: Any) -> tuple[Any, int, int]:
        sessions = state.fetch_sessions
        steps = begun(state, fetch_of(MANY, session_epoch=0), 11, 0)
        while not len(sessions):
            next(steps)
        next(steps)
        for session_id in list(sessions._sessions):
            sessions._sessions.pop(session_id).close()
        answer = steps_of(steps)[0]
        followed = sum(len(log._readers or ()) for log in state.logs.loaded())
        return answer, followed, len(sessions)

    answer, followed, count = broker.call(run, broker.state)
    assert (answer.error_code, followed, count) == (0, 0, 0)


def test_a_large_fetch_waits_for_records_as_a_small_one_does(broker: Broker) -> None:
    topics(broker, t=MANY)
    with (
        Connection(broker.bootstrap_servers, timeout_s=60) as reader,
        Connection(broker.bootstrap_servers, timeout_s=60) as writer,
    ):
        reader.send(fetch_of(MANY, session_epoch=0, max_wait_ms=60_000), 11)
        until(broker, lambda: len(broker.state.parked))
        produce(writer, "t", MANY - 1, batch(b"a"))
        answer = reader.receive(1, 11)[1]
        parts = [part for topic in answer.responses for part in topic.partitions]
        assert len(parts) == MANY
        assert [part.partition_index for part in parts if part.records] == [MANY - 1]
        assert answer.session_id


def test_a_response_of_many_small_parts_is_sent_on_many_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of small parts are tens of thousands of calls of the system."""
    calls: list[int] = []
    send_more = connection.Connection._send_more

    def counted(self: connection.Connection) -> None:
        before = sent[0]
        send_more(self)
        calls.append(sent[0] - before)

    sent = [0]
    send_file = connection.NetworkSend.send_file

    def noted(self: Any, socket_fd: int, limit_bytes: int) -> int:
        sent[0] += 1
        return send_file(self, socket_fd, limit_bytes)

    monkeypatch.setattr(connection.Connection, "_send_more", counted)
    monkeypatch.setattr(connection.NetworkSend, "send_file", noted)
    topics(broker, t=1000)
    records = batch(b"x" * 1000)  # beyond 64 kB in all they are sent from their files
    data = [{"index": number, "records": records} for number in range(1000)]
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("Produce", acks=1, topic_data=[{"name": "t", "partition_data": data}]), 9)
        answer = client.request(fetch_of(1000, session_epoch=-1), 11)
    assert sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions) == 1000 * len(
        records
    )
    assert sum(calls) > 800
    assert max(calls) <= connection.TURN_BYTES // connection.CALL_BYTES + 1
