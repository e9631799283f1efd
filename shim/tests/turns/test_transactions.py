"""Very many partitions of one transaction."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.api import (
    k24_add_partitions_to_txn,
)
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import begun, producer, steps_of, topics
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.txn import marking
from kafka_shim.txn.transaction import COMPLETE_COMMIT
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


def test_markers_of_a_large_transaction_are_written_on_later_turns(broker: Broker) -> None:
    """Thousands of them held the loop for their whole time."""
    count = 5 * marking.MOST_MARKERS_AT_ONCE
    topics(broker, t=count, gone=1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        who = producer(client, "x")
        rows = [{"name": "t", "partitions": list(range(count))}, {"name": "gone", "partitions": [0]}]
        named = {f"v3_and_below_{name}": value for name, value in who.items()}
        add = make("AddPartitionsToTxn", **named, v3_and_below_topics=rows)
        assert client.request(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0

        def marked(state: Any) -> int:
            return sum(state.logs.get("t", number).log_end_offset for number in range(count))

        async def run(state: Any) -> list[int]:
            transactions = state.transactions
            outcome = transactions.decide("x", who["producer_id"], who["producer_epoch"], True, 0)
            outcome.follow_up()
            seen = [marked(state)]
            assert len(transactions.describe("x").partitions) == count + 1
            with pytest.raises(KafkaError) as caught:
                transactions.add_partitions("x", who["producer_id"], who["producer_epoch"], frozenset({("t", 0)}), 0)
            assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
            state.metadata.delete_topic("gone")
            deadline = time.monotonic() + PATIENCE_S
            while transactions.describe("x").state is not COMPLETE_COMMIT:
                assert time.monotonic() < deadline
                await asyncio.sleep(0)
                seen.append(marked(state))
                left = transactions.describe("x").partitions
                assert not left or {("t", number) for number in range(seen[-1], count)} == left - {("gone", 0)}
            return seen

        seen = broker.call(run, broker.state)
    assert seen[0] == 0
    assert seen[-1] == count
    assert len(set(seen)) > 2
    assert broker.call(lambda: broker.state.metrics.errors_unexpected) == 0


def test_a_transaction_that_is_cut_while_its_markers_are_written_is_completed_by_the_next_start(tmp_path: Path) -> None:
    count = 5 * marking.MOST_MARKERS_AT_ONCE
    with Broker(data_dir=str(tmp_path)) as broker:
        topics(broker, t=count)
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            who = producer(client, "x")
            named = {f"v3_and_below_{name}": value for name, value in who.items()}
            rows = [{"name": "t", "partitions": list(range(count))}]
            client.request(make("AddPartitionsToTxn", **named, v3_and_below_topics=rows), 3)

        def stop_at_once(state: Any) -> None:
            state.transactions.decide("x", who["producer_id"], who["producer_epoch"], True, 0).follow_up()
            state.transactions.stop()

        broker.call(stop_at_once, broker.state)
    with Broker(data_dir=str(tmp_path)) as broker:
        until(broker, lambda: broker.state.transactions.describe("x").state is COMPLETE_COMMIT)
        ends = broker.call(lambda: [broker.state.logs.get("t", number).log_end_offset for number in range(count)])
        assert ends == [1] * count
