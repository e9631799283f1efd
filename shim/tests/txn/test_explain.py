"""The history that `kafka-shim transactions explain` prints: its reasons, and what it may cost."""

from __future__ import annotations

import asyncio

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.producers import ProducerRefusal
from kafka_shim.tests.txn.harness import Node, Stopped, code_of, state_of, stop_here
from kafka_shim.txn import explain
from kafka_shim.txn.explain import Explanations
from kafka_shim.txn.transaction import (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TV2,
    State,
    Transaction,
)


def transaction(state: State, count: int) -> Transaction:
    partitions = frozenset(("t", number) for number in range(count))
    return Transaction("app", 7, 7, -1, 0, -1, 1000, state, partitions, 10, 10 + count, 2)


def test_a_refusal_of_a_log_comes_with_its_reason() -> None:
    """Kafka sends no message with these codes, so the reason is not in `message`."""
    explanations = Explanations()
    refusal = ProducerRefusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "t-0: producer 7: sequence 9, expected 3")
    explanations.refused("Produce", "app", refusal, 5, (7, 1))
    assert explanations.lines("app") == [
        "5 Produce refused with OUT_OF_ORDER_SEQUENCE_NUMBER: producer id 7 epoch 1: "
        "t-0: producer 7: sequence 9, expected 3"
    ]


def test_an_idempotent_producer_s_refusal_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="kafka_shim.txn")
    explanations = Explanations()
    explanations.refused("InitProducerId", None, KafkaError(ErrorCode.INVALID_REQUEST, "half an id"), 5)
    assert "InitProducerId refused with INVALID_REQUEST: half an id" in caplog.text
    assert explanations.lines("") == []


def test_topics_that_the_reader_may_not_describe_are_not_named() -> None:
    explanations = Explanations()
    both = frozenset({("mine", 0), ("secret", 1)})
    explanations.moved(Transaction("app", 7, 7, -1, 0, -1, 1000, ONGOING, both, 10, 11, 2))
    for reason in (
        "mine-0: producer 7: sequence 9, expected 3",
        "1 of 2 partitions are refused, the first is secret-1",
        "1 of 2 partitions do not exist, the first is deleted-3.",
        "the topic secret is full.",
        "epoch 7, current is 0",
    ):
        explanations.refused("Produce", "app", KafkaError(ErrorCode.INVALID_REQUEST, reason), 5)
    explanations.noted("app", 5, "marker for secret-1 refused")
    lines = explanations.lines("app", lambda topic: topic == "mine", {"mine", "secret"})
    assert lines[0].endswith("[mine-0]")
    assert [line.partition("INVALID_REQUEST: ")[2] for line in lines[1:6]] == [
        "mine-0: producer 7: sequence 9, expected 3",
        explain.HIDDEN,
        explain.HIDDEN,
        explain.HIDDEN,
        "epoch 7, current is 0",
    ]
    assert lines[6] == f"5 {explain.HIDDEN}"
    assert "secret" in "".join(explanations.lines("app"))


def test_a_growing_transaction_is_one_event() -> None:
    explanations = Explanations()
    for count in range(1, 200):
        explanations.moved(transaction(ONGOING, count))
    explanations.moved(transaction(PREPARE_COMMIT, 199))
    explanations.moved(transaction(COMPLETE_COMMIT, 0))
    explanations.moved(transaction(ONGOING, 1))
    lines = explanations.lines("app")
    assert [line.split()[2] for line in lines] == ["Ongoing", "PrepareCommit", "CompleteCommit", "Ongoing"]
    assert lines[0].endswith("t-99 and 99 more]")


def test_a_history_keeps_no_more_partitions_than_it_shows() -> None:
    """Those of a thousand ids would take gigabytes."""
    explanations = Explanations()
    explanations.moved(transaction(ONGOING, 101))
    explanations.moved(transaction(PREPARE_COMMIT, 101))
    kept = [event.partitions for event in explanations.events["app"] if isinstance(event, Transaction)]
    assert kept == [transaction(ONGOING, explain.SHOWN_PARTITIONS).partitions] * 2
    for line in explanations.lines("app"):
        assert line.endswith("t-99 and 1 more]")
    for line in explanations.lines("app", lambda topic: True):
        assert line.endswith("t-99 and more]")
    for line in explanations.lines("app", lambda topic: False):
        assert line.endswith("version 2")


def test_an_event_between_two_additions_keeps_its_place() -> None:
    explanations = Explanations()
    explanations.moved(transaction(ONGOING, 1))
    explanations.noted("app", 11, "here")
    explanations.moved(transaction(ONGOING, 2))
    assert [line.split()[1] for line in explanations.lines("app")] == ["->", "here", "->"]


def test_a_long_reason_is_cut() -> None:
    explanations = Explanations()
    explanations.refused("EndTxn", "app", KafkaError(ErrorCode.INVALID_TXN_STATE, "x" * 10_000), 5)
    assert len(explanations.lines("app")[0]) < explain.REASON_CHARACTERS + 50


def test_the_id_that_was_seen_last_is_kept_longest() -> None:
    explanations = Explanations()
    explanations.moved(transaction(ONGOING, 1))
    for number in range(explain.IDS - 1):
        explanations.noted(f"other-{number}", 1, "here")
    explanations.moved(transaction(PREPARE_COMMIT, 1))
    explanations.noted("one more", 1, "here")
    assert len(explanations.lines("app")) == 2
    assert explanations.lines("other-0") == []


def test_refusals_of_ids_that_do_not_exist_drop_no_other() -> None:
    explanations = Explanations()
    refusal = KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "unknown transactional id")
    explanations.refused("AddPartitionsToTxn", "app", refusal, 1)
    explanations.moved(transaction(ONGOING, 1))
    for number in range(explain.IDS):
        explanations.refused("AddPartitionsToTxn", f"unknown-{number}", refusal, 2)
    explanations.refused("EndTxn", "app", refusal, 3)
    assert [line.split()[0] for line in explanations.lines("app")] == ["1", "11", "3"]
    assert explanations.lines("unknown-0") == []
    assert len(explanations.lines(f"unknown-{explain.IDS - 1}")) == 1


def test_every_refusal_is_explained(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="kafka_shim.txn")
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    second = node.end("app", producer, True)
    code_of(node.end, "app", (producer[0], 7), True)
    lines = node.coordinator.explanations.lines("app")
    assert [line.split(" ", 1)[1].split(" producer")[0] for line in lines[:4]] == [
        "-> Empty",
        "-> Ongoing",
        "-> PrepareCommit",
        "-> CompleteCommit",
    ]
    assert "EndTxn refused with PRODUCER_FENCED" in lines[4]
    assert f"producer id {producer[0]} epoch 7: epoch 7, current is {second[1]}" in lines[4]
    assert "last transitions: Ongoing epoch 0, PrepareCommit epoch 1, CompleteCommit epoch 1" in caplog.text


def test_a_request_that_fences_stands_before_the_transitions_that_it_causes(node: Node) -> None:
    node.produce("app", node.init("app"), "orders", 0, "a")
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    node.init("app")
    assert [line.split(" ", 1)[1].split(" producer")[0] for line in node.coordinator.explanations.lines("app")] == [
        "-> Empty",
        "-> Ongoing",
        "InitProducerId refused with CONCURRENT_TRANSACTIONS: an open transaction is fenced and aborted first",
        "-> PrepareAbort",
        "-> CompleteAbort",
        "-> Empty",
    ]


def test_the_history_is_bounded(node: Node) -> None:
    producer = node.init("app")
    for _ in range(explain.EVENTS_PER_ID * 2):
        node.produce("app", producer, "orders", 0, "a")
        producer = node.end("app", producer, True)
    assert len(node.coordinator.explanations.lines("app")) == explain.EVENTS_PER_ID
    explanations = explain.Explanations()
    for number in range(explain.IDS + 10):
        explanations.noted(f"id-{number}", 1, "here")
    assert explanations.lines("id-0") == []
    assert explanations.lines(f"id-{explain.IDS + 9}") == ["1 here"]


def test_a_history_is_gone_with_the_topic_of_the_transactional_ids(node: Node) -> None:
    node.init("app")
    node.coordinator.explanations.refused("EndTxn", "unknown", KafkaError(ErrorCode.INVALID_REQUEST, "no"), 1)
    node.metadata.delete_topic("__transaction_state")
    assert node.coordinator.explanations.lines("app") == node.coordinator.explanations.lines("unknown") == []


def test_prepared_aborts_are_told_apart_from_commits(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.faults.arm("txn.after_prepare", stop_here)
    with pytest.raises(Stopped):
        asyncio.run(node.coordinator.end_stepwise("app", *producer, False, TV2))
    assert state_of(node).state is PREPARE_ABORT
    node.crash()
    assert any("resumed the abort" in line for line in node.coordinator.explanations.lines("app"))
