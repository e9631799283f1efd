"""A classic group whose upgrade to the consumer protocol does not succeed: who waits is answered, and it stays. And
what an upgrade takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer_protocol import write_assignment
from kafka_shim.tests.group.harness import SESSION_MS, Node, subscription

E = ErrorCode
RANGE = (("range", subscription("four")),)
PATIENT = {"version": 3, "protocols": RANGE, "rebalance_timeout_ms": 3 * SESSION_MS}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    made.topic("four", 4)
    yield made
    made.close()


def refusal(node: Node, **fields: Any) -> ErrorCode:
    """The code for a member of the consumer protocol that joins."""
    with pytest.raises(KafkaError) as caught:
        node.modern("g", "new", **{"subscribed_topic_names": ["four"], **fields})
    return caught.value.code


def rebalancing(node: Node) -> tuple[Any, Any]:
    """A group in which one member has not joined again, and one that came waits for it."""
    first = node.join("g", **PATIENT)
    node.sync("g", first, {})
    waiting = node.join("g", **PATIENT)
    assert not waiting.is_done
    return first, waiting


@pytest.mark.parametrize("refused_for", ["expression", "size", "log"])
def test_a_join_that_waits_is_told_of_the_rebalance_whatever_refuses_the_newcomer(node: Node, refused_for: str) -> None:
    first, waiting = rebalancing(node)
    if refused_for == "expression":
        code = refusal(node, subscribed_topic_names=None, subscribed_topic_regex="(")
        assert code is E.INVALID_REGULAR_EXPRESSION
    elif refused_for == "size":
        node.config.group_consumer_max_size = 2
        assert refusal(node) is E.GROUP_MAX_SIZE_REACHED
    else:
        node.faults.arm("group.before_append", "error", "MESSAGE_TOO_LARGE")
        assert refusal(node) is E.UNKNOWN_SERVER_ERROR
        node.faults.disarm()
    assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
    assert (node.groups.find("g").TYPE, node.state("g")) == ("classic", "PreparingRebalance")
    # Both join again, and the rebalance goes on.
    again = node.join("g", waiting.response.member_id, **PATIENT)
    assert not again.is_done
    assert node.join("g", first.member_id, **PATIENT).generation_id == 2
    assert again.response.error_code == E.NONE


def test_a_member_whose_wait_was_ended_and_that_is_gone_is_removed_at_its_session_timeout(node: Node) -> None:
    first, waiting = rebalancing(node)
    first = node.join("g", first.member_id, **PATIENT)
    parked = node.sync("g", waiting.response)
    node.advance(SESSION_MS - 1)
    node.beat("g", first)
    node.advance(1)
    assert len(node.groups.find("g").members) == 2, "a request that waits stands for heartbeats"
    assert refusal(node, subscribed_topic_names=None, subscribed_topic_regex="(") is E.INVALID_REGULAR_EXPRESSION
    assert parked.response.error_code == E.REBALANCE_IN_PROGRESS
    node.advance(SESSION_MS - 2)
    node.beat("g", first)
    assert len(node.groups.find("g").members) == 2
    node.advance(2)
    assert set(node.groups.find("g").members) == {first.member_id}


def rejoined(node: Node, instance_id: str | None) -> tuple[Any, str]:
    """A group in which a member that has joined again waits for another; its request, and its member id."""
    how = {**PATIENT, "version": 5, "group_instance_id": instance_id} if instance_id else PATIENT
    first = node.join("g", **PATIENT)
    node.sync("g", first, {})
    joining = node.join("g", **how)
    node.sync("g", node.join("g", first.member_id, **PATIENT), {})
    member_id = joining.response.member_id
    node.sync("g", joining.response, {})
    node.join("g", **PATIENT)
    waiting = node.join("g", member_id, **how)
    assert not waiting.is_done
    return waiting, member_id


def test_a_static_member_that_waited_and_is_replaced_by_the_upgrade_has_no_session_any_more(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    waiting, replaced = rejoined(node, "i")
    node.modern("g", "new", instance_id="i", subscribed_topic_names=["four"])
    assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
    classic = set(node.groups.find("g").members) - {"new"}
    assert replaced not in classic
    with caplog.at_level("INFO", logger="kafka_shim.group"):
        node.advance(2 * SESSION_MS)
    assert set(node.groups.find("g").members) == {"new"}
    assert all(any(one in line for line in caplog.messages) for one in classic)
    assert not [line for line in caplog.messages if replaced in line]


def test_a_newcomer_under_the_id_of_a_member_that_waited_has_the_session_timeout_of_its_protocol(node: Node) -> None:
    waiting, member_id = rejoined(node, None)
    node.modern("g", member_id, subscribed_topic_names=["four"])
    assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
    node.advance(node.config.group_consumer_session_timeout_ms - 1)
    assert set(node.groups.find("g").members) == {member_id}
    node.advance(1)
    assert not node.groups.find("g").members


@pytest.mark.parametrize(("of_second", "is_upgraded"), [([2, 3], True), ([1, 2], False)])
def test_a_group_whose_members_share_a_partition_is_not_upgraded(
    node: Node, of_second: list[int], is_upgraded: bool
) -> None:
    """As in Apache Kafka: in a consumer group a partition has one owner, and nobody could release it for the other."""
    first, waiting = rebalancing(node)
    first = node.join("g", first.member_id, **PATIENT)
    second = waiting.response
    parked = node.sync("g", second)
    given = {
        first.member_id: write_assignment({"four": [0, 1]}, 0),
        second.member_id: write_assignment({"four": of_second}, 0),
    }
    node.sync("g", first, given)
    assert parked.response.error_code == E.NONE
    if is_upgraded:
        node.modern("g", "new", subscribed_topic_names=["four"])
        assert node.groups.find("g").TYPE == "consumer"
    else:
        waiting = node.join("g", **PATIENT)
        assert refusal(node) is E.UNKNOWN_SERVER_ERROR
        assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
        assert node.groups.find("g").TYPE == "classic"


@pytest.mark.parametrize("topics", [["four"], ["four", "two"]], ids=["the same topics", "other topics"])
def test_an_upgrade_leaves_out_partitions_that_a_topic_has_no_longer(node: Node, topics: list[str]) -> None:
    """The topic was deleted since the leader's assignment, and is there again with fewer partitions."""
    node.topic("two", 2)
    first = node.join("g", **PATIENT)
    node.sync("g", first, {first.member_id: write_assignment({"four": [4, 5, -1]}, 0)})
    joined = node.modern("g", "new", subscribed_topic_names=topics)
    group = node.groups.find("g")
    four = node.metadata.image.topics["four"].topic_id
    assert joined.error_code == E.NONE
    owned = sorted(each for target in group.target.values() for each in target.get(four, ()))
    assert owned == [0, 1, 2, 3], group.target


@pytest.mark.parametrize(("max_size", "kind"), [(2, "classic"), (1, "consumer")])
def test_a_group_is_converted_back_if_a_classic_one_may_have_its_members(node: Node, max_size: int, kind: str) -> None:
    first, waiting = rebalancing(node)
    node.join("g", first.member_id, **PATIENT)
    node.sync("g", waiting.response)
    node.sync("g", first, {}, generation_id=waiting.response.generation_id)
    node.modern("g", "new", subscribed_topic_names=["four"])
    node.config.group_max_size = max_size
    node.modern("g", "new", -1)
    group = node.groups.find("g")
    assert (group.TYPE, set(group.members)) == (kind, {first.member_id, waiting.response.member_id})


def test_each_classic_member_that_leaves_a_consumer_group_has_its_own_code(node: Node) -> None:
    first = node.join("g", **PATIENT)
    node.sync("g", first, {})
    node.modern("g", "new", subscribed_topic_names=["four"])
    answer = node.leave("g", "nobody", first.member_id)
    codes = {each.member_id: each.error_code for each in answer.members}
    assert codes == {"nobody": E.UNKNOWN_MEMBER_ID, first.member_id: E.NONE}
    assert set(node.groups.find("g").members) == {"new"}
