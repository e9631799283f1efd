"""Answers of two brokers are compared by what they mean."""

from __future__ import annotations

from itertools import permutations

import pytest

from kafka_shim.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_shim.protocol.messages.describe_groups_response import DescribedGroupMember
from kafka_shim.protocol.messages.describe_log_dirs_response import DescribeLogDirsResult
from kafka_shim.wiretap.compare import Pairs, differences


@pytest.mark.parametrize("live", [("1", "2"), ("2", "1")])
def test_entries_of_a_list_are_matched_without_their_generated_ids(live: tuple[str, str]) -> None:
    recorded = [DescribedGroupMember(member_id=name, client_id=client) for name, client in (("a", "x"), ("b", "y"))]
    now = [DescribedGroupMember(member_id=name, client_id=client) for name, client in zip(live, "yx", strict=True)]
    pairs = Pairs()
    assert differences(recorded, now, pairs) == []
    assert (pairs.live("member_id", "a"), pairs.live("member_id", "b")) == (live[1], live[0])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_entries_that_differ_in_ids_alone_are_matched_by_the_pairs_that_are_known(order: tuple[int, ...]) -> None:
    """A consumer group's assignment is in the order of the topics' ids, which each broker chooses."""
    recorded, live = [bytes([each]) * 16 for each in (1, 2, 3)], [bytes([each]) * 16 for each in (4, 5, 6)]
    pairs = Pairs()
    for before, now in list(zip(recorded, live, strict=True))[:2]:  # the third is seen first in the assignment
        assert pairs.learn("topic_id", before, now)
    both = ([TopicPartitions(topic_id=each, partitions=[0, 1]) for each in ids] for ids in (recorded, live))
    before, now = (ConsumerGroupHeartbeatResponse(assignment=Assignment(topic_partitions=each)) for each in both)
    now.assignment.topic_partitions = [now.assignment.topic_partitions[each] for each in order]
    assert differences(before, now, pairs) == []
    assert pairs.live("topic_id", recorded[2]) == live[2]
    now.assignment.topic_partitions[0].topic_id = bytes([7]) * 16
    assert differences(before, now, pairs)


def test_an_id_that_differed_has_no_pair() -> None:
    pairs = Pairs()
    assert pairs.learn("member_id", "a", "y")
    assert not pairs.learn("member_id", "a", "x")
    recorded, now = ([DescribedGroupMember(member_id=each) for each in ids] for ids in ("ab", "xy"))
    assert differences(recorded, now, pairs) == []


def test_entries_of_a_list_are_matched_without_ignored_fields() -> None:
    recorded = [DescribeLogDirsResult(log_dir=name, is_cordoned=one) for name, one in (("/a", True), ("/b", False))]
    now = [DescribeLogDirsResult(log_dir=name, is_cordoned=one) for name, one in (("/c", False), ("/d", True))]
    assert differences(recorded, now, Pairs()) == []
    now[0].is_cordoned = True
    (line,) = differences(recorded, now, Pairs())
    assert "is_cordoned" in line
