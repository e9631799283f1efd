"""Commits and deletions of very many offsets."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    answer_when,
    begun,
    producer,
    steps_of,
    topics,
)
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_commit_that_no_batch_holds_is_refused_before_it_is_built(broker: Broker, is_transactional: bool) -> None:
    """Long names take their part of the batch, too."""
    name, count = "t" * 200, 4500
    topics(broker, **{name: 1})
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}] * count}]
        if is_transactional:
            who = producer(client, "x")
            join = make("AddOffsetsToTxn", group_id="g", **who)
            answer_when(client, join, 3, lambda answer: not answer.error_code)
            request, version = make("TxnOffsetCommit", group_id="g", **who, topics=rows), 3
        else:
            request, version = make("OffsetCommit", group_id="g", topics=rows), 8
        built: list[int] = []
        broker.call(lambda: setattr(broker.state.groups._runtime, "write_offsets", lambda *arguments: built.append(1)))
        answer = client.request(request, version)
    assert {part.error_code for part in answer.topics[0].partitions} == {-1}
    assert built == []


def test_offsets_are_looked_up_in_steps_and_deleted_in_one(broker: Broker) -> None:
    topics(broker, t=30, u=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        parts = [{"partition_index": number, "committed_offset": 1} for number in range(30)]
        commit = make("OffsetCommit", group_id="g", topics=[{"name": "t", "partitions": parts}])
        answer_when(client, commit, 8, lambda answer: not answer.topics[0].partitions[0].error_code)

        def run(state: Any) -> tuple[Any, int]:
            rows = [
                {"name": "u", "partitions": [{"partition_index": 0}]},
                {"name": "t", "partitions": [{"partition_index": number} for number in range(31)]},
            ]
            steps = begun(state, make("OffsetDelete", group_id="g", topics=rows), 0, 20)
            state.metadata.delete_topic("u")
            outcome, count = steps_of(steps)
            codes = {
                (topic.name, part.partition_index): part.error_code
                for topic in outcome.response.topics
                for part in topic.partitions
            }
            return codes, count

        codes, count = broker.call(run, broker.state)
        assert {key: code for key, code in codes.items() if code} == {("t", 30): 3}
        assert len(codes) == 32
        assert count >= 11
        fetch = make("OffsetFetch", groups=[{"group_id": "g", "topics": None}])
        assert client.request(fetch, 8).groups[0].topics == []
