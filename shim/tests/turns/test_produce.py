"""Produce in turns."""

from __future__ import annotations

from typing import Any

from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import create_topic
from kafka_shim.tests.produced import batch, produce, produce_request
from kafka_shim.tests.turns.harness import begun, steps_of
from kafka_shim.wire_client import Connection

PARTITIONS = 3


def test_times_of_appends_ascend_with_offsets_while_a_large_request_is_under_way() -> None:
    """Another client appends between two of its steps."""
    with (
        Broker(auto_create_topics_enable=False, clock="virtual") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        create_topic(client, "t", PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
        request = produce_request("t", 0, batch(b"large"))
        request.topic_data = [
            data for number in range(PARTITIONS) for data in produce_request("t", number, batch(b"large")).topic_data
        ]
        last = PARTITIONS - 1
        # Each is located, then looked at, then the first is appended.
        (taken,) = broker.call(lambda: [begun(broker.state, request, 9, 2 * PARTITIONS + 1)])
        assert [broker.state.logs.get("t", number).log_end_offset for number in range(PARTITIONS)] == [1, 0, 0]
        broker.clock.advance(1000)
        first_ms = produce(client, "t", last, batch(b"small")).log_append_time_ms

        def rest() -> Any:
            answer, _ = steps_of(taken)
            return [one for topic in answer.responses for one in topic.partition_responses][last]

        told = broker.call(rest)
        assert (told.base_offset, told.error_code) == (1, 0)
        assert told.log_append_time_ms >= first_ms
