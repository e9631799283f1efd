"""Kinds of groups are a table: every record has a row."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode as E
from kafka_shim.group.kinds import KINDS
from kafka_shim.protocol.record_types import GROUP_KEYS
from kafka_shim.tests.group.harness import Node


def test_every_record_of_a_group_belongs_to_one_kind() -> None:
    numbers = [number for kind in KINDS.values() for number in kind.records]
    assert sorted(numbers) == sorted(GROUP_KEYS.keys() - {0, 1}), "0 and 1 are offsets"


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(LookupError, match="unknown kind of group 'cluster': the table of kinds has classic, consumer"):
        KINDS["cluster"]


def test_each_kind_describes_its_own_groups_only(node: Node) -> None:
    node.stable("c")
    node.modern("m", "a", subscribed_topic_names=["t"])
    for kind, group_id, code in (
        ("classic", "c", E.NONE),
        ("classic", "m", E.GROUP_ID_NOT_FOUND),
        ("consumer", "m", E.NONE),
        ("consumer", "c", E.GROUP_ID_NOT_FOUND),
        ("streams", "c", E.GROUP_ID_NOT_FOUND),
        ("streams", "m", E.GROUP_ID_NOT_FOUND),
    ):
        told = KINDS[kind].describe(group_id, node.groups.find(group_id), 6, node.groups.image)
        assert (told.group_id, told.error_code) == (group_id, code)
