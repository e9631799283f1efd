"""What a start makes of `__transaction_state`: partitions that it cannot read yet, and partitions that were added."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_hash import internal_partition
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.targets.waiting import right_answer
from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn.explain import REFUSED_IDS
from kafka_shim.txn.transaction import FIELDS, Transaction
from kafka_shim.wire_client import Connection

ASKED = make("InitProducerId", transactional_id="t", transaction_timeout_ms=60_000)


def test_ids_that_the_start_cannot_read_are_served_once_it_can(tmp_path: Path) -> None:
    """They are not ids that were never there, whose producers nobody fences and whose transactions nobody ends."""
    described = make("DescribeTransactions", transactional_ids=["t"])
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        create_topic(client, "orders", 1)
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["t"]), 4)
        first = client.request(ASKED, 4)
        assert first.error_code == 0
        begin = make(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=first.producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[{"name": "orders", "partitions": [0]}],
        )
        (topic,) = client.request(begin, 3).results_by_topic_v3_and_below
        assert [one.partition_error_code for one in topic.results_by_partition] == [0]
    (log,) = (path for path in tmp_path.glob("__transaction_state-*/*.log") if path.stat().st_size)
    with log.with_suffix(".index").open("ab") as index:
        index.write(b"\xff" * 8)
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        (state,) = client.request(described, 0).transaction_states
        assert state.error_code == ErrorCode.NOT_COORDINATOR
        assert client.request(ASKED, 4).error_code == ErrorCode.NOT_COORDINATOR
        (state,) = right_answer(
            lambda: client.request(described, 0).transaction_states,
            lambda states: states[0].error_code == 0,
            "the id is served",
        )
        assert (state.transaction_state, state.producer_id) == ("Ongoing", first.producer_id)
        again = right_answer(
            lambda: client.request(ASKED, 4), lambda answer: answer.error_code == 0, "the producer is fenced"
        )
        assert again.producer_id == first.producer_id
        assert again.producer_epoch > first.producer_epoch


def test_an_id_stays_in_its_partition_when_others_are_added(tmp_path: Path) -> None:
    """All its records are in one partition, so that none is read behind a later one of another."""
    name = next(name for name in map(str, range(9999)) if internal_partition(name, 50) > internal_partition(name, 60))
    asked = make("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    grown = make(
        "CreatePartitions", topics=[{"name": "__transaction_state", "count": 60, "assignments": None}], timeout_ms=9000
    )
    answers = []
    for life in range(4):
        with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
            client.request(make("FindCoordinator", key_type=1, coordinator_keys=[name]), 4)
            if life == 1:
                (result,) = client.request(grown, 3).results
                assert result.error_code == 0
            for _ in range(2):
                answer = client.request(asked, 4)
                answers.append((answer.error_code, answer.producer_id, answer.producer_epoch))
    assert answers == [(0, answers[0][1], epoch) for epoch in range(8)]


def test_of_two_partitions_that_have_an_id_the_later_record_counts(node: Node) -> None:
    """A version of before left such directories behind, where somebody had added partitions."""
    node.init("t")
    log = node.coordinator._log
    slot = log.slots["t"]
    assert slot.transaction is not None
    other = slot.partition + 1

    def at(last_update_ms: int) -> Transaction:
        fields = {name: getattr(slot.transaction, name) for name in FIELDS}
        return Transaction(**{**fields, "last_update_ms": last_update_ms})

    now_ms = slot.transaction.last_update_ms
    for txn in (at(now_ms - 1), None):
        log.apply("t", txn, other)
        assert log.slots["t"] is slot
    later = at(now_ms + 1)
    log.apply("t", later, other)
    assert (log.slots["t"].partition, log.slots["t"].transaction) == (other, later)
    log.apply("t", None, slot.partition)
    assert "t" in log.slots
    log.apply("t", None, other)
    assert "t" not in log.slots


def test_refusals_of_an_id_that_a_start_has_read_are_not_dropped_by_those_of_made_up_ids(tmp_path: Path) -> None:
    node = Node(tmp_path)
    producer_id, epoch = node.init("app")
    node.restart()
    for name in ("app", *(f"made-up-{number}" for number in range(REFUSED_IDS))):
        with pytest.raises(KafkaError):
            node.end(name, (producer_id, epoch + 5), True)
    lines = node.coordinator.explanations.lines("app")
    assert [line.split(" ", 2)[1] for line in lines] == ["EndTxn"]
    node.stop()
