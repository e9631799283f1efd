"""Kinds of groups are a table: every record has a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode as E
from kafka_shim.errors import KafkaError
from kafka_shim.group.describe import described_classic, described_consumer
from kafka_shim.group.kinds import KINDS
from kafka_shim.group.share_describe import described_share
from kafka_shim.group.streams.describe import described_streams
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.record_types import GROUP_KEYS
from kafka_shim.tests.group.harness import Node
from kafka_shim.tests.group.test_share import ShareNode


def test_every_record_of_a_group_belongs_to_one_kind() -> None:
    numbers = [number for kind in KINDS.values() for number in kind.records]
    assert sorted(numbers) == sorted(GROUP_KEYS.keys() - {0, 1}), "0 and 1 are offsets"


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(LookupError, match="unknown kind of group 'cluster': the table of kinds has classic, consumer"):
        KINDS["cluster"]


def test_each_kind_describes_its_own_groups_only(node: Node) -> None:
    node.stable("c")
    node.modern("m", "a", subscribed_topic_names=["t"])
    find, image = node.groups.find, node.groups.image
    for group_id, own in (
        ("c", described_classic("c", find("c"), 6)),
        ("m", described_consumer("m", find("m"), image)),
    ):
        assert (own.group_id, own.error_code) == (group_id, E.NONE)
    for group_id, other in (
        ("m", described_classic("m", find("m"), 6)),
        ("c", described_consumer("c", find("c"), image)),
        ("c", described_share("c", find("c"), image)),
        ("m", described_share("m", find("m"), image)),
        ("c", described_streams("c", find("c"))),
        ("m", described_streams("m", find("m"))),
    ):
        assert (other.group_id, other.error_code) == (group_id, E.GROUP_ID_NOT_FOUND)


def test_a_described_consumer_has_its_instance_id_and_rack(node: Node) -> None:
    node.modern("m", "a", instance_id="i", rack_id="r", subscribed_topic_names=["t"])
    (member,) = described_consumer("m", node.groups.find("m"), node.groups.image).members
    assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")


def test_a_group_of_share_or_streams_members_has_no_classic_ones(tmp_path: Path) -> None:
    node = ShareNode(tmp_path)
    node.topic("t")
    node.beat("a", 0, "t", group="share")
    node.streams("streams", "a", topology={"epoch": 0, "subtopologies": []})
    asked: dict[str, Callable[[str], Any]] = {
        "sync": lambda group: node.sync(group, JoinGroupResponse(member_id="a", generation_id=2)),
        "heartbeat": lambda group: Node.beat(node, group, JoinGroupResponse(member_id="a", generation_id=2)),
        "leave": lambda group: node.leave(group, "a"),
    }
    for group in ("share", "streams"):
        before = node.groups.find(group)
        for name, ask in asked.items():
            try:
                code = ask(group).error_code
            except KafkaError as error:
                code = error.code
            assert code == E.UNKNOWN_MEMBER_ID, (group, name)
        assert node.groups.find(group) is before and not before.is_empty
    node.close()
