"""Answers of two brokers are compared by what they mean."""

from __future__ import annotations

import pytest

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


def test_entries_of_a_list_are_matched_without_ignored_fields() -> None:
    recorded = [DescribeLogDirsResult(log_dir=name, is_cordoned=one) for name, one in (("/a", True), ("/b", False))]
    now = [DescribeLogDirsResult(log_dir=name, is_cordoned=one) for name, one in (("/c", False), ("/d", True))]
    assert differences(recorded, now, Pairs()) == []
    now[0].is_cordoned = True
    (line,) = differences(recorded, now, Pairs())
    assert "is_cordoned" in line
