"""Very many partitions of one transaction."""

from __future__ import annotations

from typing import Any

from kafka_shim.api import (
    k24_add_partitions_to_txn,
)
from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    begun,
    producer,
    steps_of,
    topics,
)
from kafka_shim.wire_client import Connection


def test_partitions_that_go_between_two_steps_are_not_added_and_one_bad_fails_all(broker: Broker) -> None:
    count = 3 * k24_add_partitions_to_txn.PARTITIONS_PER_STEP
    topics(broker, kept=count, gone=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        who = {f"v3_and_below_{name}": value for name, value in producer(client, "x").items()}

        def add(state: Any, deletes: bool) -> tuple[list[int], int, int]:
            rows = [{"name": "kept", "partitions": list(range(count))}]
            rows += [{"name": "gone", "partitions": [0]}] if deletes else []
            request = make(
                "AddPartitionsToTxn",
                **who,
                v3_and_below_topics=rows,
            )
            steps = begun(state, request, 3, 3)
            if deletes:
                state.metadata.delete_topic("gone")
            outcome, left = steps_of(steps)
            codes = [
                one.partition_error_code
                for topic in outcome.response.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ]
            _, transaction = state.transactions._find("x")
            return codes, len(transaction.partitions), left

        refused = broker.call(add, broker.state, True)
        assert refused[:2] == ([55] * count + [3], 0)  # OPERATION_NOT_ATTEMPTED
        added, known, left = broker.call(add, broker.state, False)
        assert (added, known) == ([0] * count, count)
        assert left >= 6  # looked up and answered in parts


def test_markers_are_written_a_partition_a_step(broker: Broker) -> None:
    topics(broker, t=30)

    def run(state: Any) -> tuple[list[int], list[int], int]:
        row = {"name": "t", "partition_indexes": list(range(30))}
        marker = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "topics": [row]}
        steps = begun(state, make("WriteTxnMarkers", markers=[marker]), 1, 10)
        ends = [state.logs.get("t", number).log_end_offset for number in range(30)]
        state.metadata.delete_topic("t")
        answer, count = steps_of(steps)
        return ends, [one.error_code for one in answer.markers[0].topics[0].partitions], count

    ends, codes, count = broker.call(run, broker.state)
    assert ends == [1] * 10 + [0] * 20
    assert codes == [0] * 10 + [3] * 20
    assert count >= 49
