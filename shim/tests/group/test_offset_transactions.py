"""Offsets of transactions are pending until their end (B8, D14)."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.group.committed import NO_OFFSET, PRODUCER, UNSTABLE
from kafka_shim.tests.group.harness import Node


def test_offsets_of_a_transaction_are_seen_when_it_commits(node: Node) -> None:
    assert node.commit_in_transaction("g", "t", 5, PRODUCER) == 0
    assert node.committed("g", "t") == NO_OFFSET
    assert node.committed("g", "t", stable=True) == UNSTABLE
    assert node.committed("g", "t", stable=True, named=False) is None, "only pending: absent from the all-topics form"
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == (5, 0)
    node.crash()
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_offsets_of_a_transaction_are_gone_when_it_aborts(node: Node) -> None:
    node.commit("g", "t", 3)
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    assert node.committed("g", "t") == (3, 0)
    assert node.committed("g", "t", stable=True) == UNSTABLE
    assert node.committed("g", "t", stable=True, named=False) == UNSTABLE
    node.end_transaction("g", PRODUCER, False)
    assert node.committed("g", "t", stable=True) == (3, 0)


def test_pending_offsets_are_pending_after_a_crash(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.crash()
    assert node.committed("g", "t", stable=True) == UNSTABLE
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_a_marker_on_a_partition_that_nobody_has_read_counts(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.crash()
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == (5, 0)


@pytest.mark.parametrize("crash", [False, True])
def test_of_a_plain_and_a_transactional_commit_the_later_record_wins(node: Node, crash: bool) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.commit("g", "t", 9)
    node.end_transaction("g", PRODUCER, True)
    if crash:
        node.crash()
    assert node.committed("g", "t") == (9, 0)


def test_two_transactions_on_one_partition(node: Node) -> None:
    other = (2000, 0)
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.commit_in_transaction("g", "t", 6, other)
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t", stable=True) == UNSTABLE
    node.end_transaction("g", other, False)
    assert node.committed("g", "t", stable=True) == (5, 0)


def test_a_transactional_commit_of_members_and_strangers(node: Node) -> None:
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 3, "m") == ErrorCode.ILLEGAL_GENERATION
    me = node.stable("g")
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, me.generation_id, me.member_id) == 0
    assert node.commit_in_transaction("g", "t", 5, PRODUCER) == 0, "a producer that knows no group (before KIP-447)"
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 9, me.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, me.generation_id, "x") == ErrorCode.UNKNOWN_MEMBER_ID
    node.leave("g", me.member_id)
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, 3, "x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert node.commit_in_transaction("g", "t", 5, PRODUCER, -1, "x") == 0


def test_a_transactional_commit_without_a_producer_is_a_plain_one(node: Node) -> None:
    """Without `transaction.partition.verification.enable` nobody asks for the producer."""
    assert node.commit_in_transaction("g", "t", 5, (-1, -1)) == 0
    assert node.committed("g", "t", stable=True) == (5, 0)
    node.commit("g", "t", 9)
    node.crash()
    assert node.committed("g", "t", stable=True) == (9, 0)


def test_a_tombstone_takes_what_is_pending(node: Node) -> None:
    node.commit_in_transaction("g", "t", 5, PRODUCER)
    node.delete_group("g")
    node.end_transaction("g", PRODUCER, True)
    assert node.committed("g", "t") == NO_OFFSET
    node.crash()
    assert node.committed("g", "t") == NO_OFFSET
