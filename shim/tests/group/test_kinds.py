"""Kinds of groups are a table: every record has a row, and what a kind does not serve is refused."""

from __future__ import annotations

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode as E
from kafka_shim.errors import KafkaError
from kafka_shim.group.groups import Groups
from kafka_shim.group.kinds import KINDS
from kafka_shim.group.records import Record
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.protocol.record_types import GROUP_KEYS
from kafka_shim.protocol.records.share_group_metadata_key import ShareGroupMetadataKey
from kafka_shim.protocol.records.share_group_metadata_value import ShareGroupMetadataValue
from kafka_shim.protocol.records.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_shim.protocol.records.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kafka_shim.protocol.records.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_shim.tests.group.harness import Node

RECORDS = {
    "share": Record(ShareGroupMetadataKey(group_id="g"), ShareGroupMetadataValue(epoch=1)),
    "streams": Record(
        StreamsGroupMemberMetadataKey(group_id="g", member_id="m"), StreamsGroupMemberMetadataValue(client_id="c")
    ),
}


def test_every_record_of_a_group_belongs_to_one_kind() -> None:
    numbers = [number for kind in KINDS.values() for number in kind.records]
    assert sorted(numbers) == sorted(GROUP_KEYS.keys() - {0, 1}), "0 and 1 are offsets"


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(LookupError, match="unknown kind of group 'cluster': the table of kinds has classic, consumer"):
        KINDS["cluster"]


def read_back(node: Node, kind: str) -> None:
    """The node reads a log in which Kafka has left a group of this kind."""
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    log.append_batch(cext_records.build([(*RECORDS[kind].encode(), 1, ())]), now_ms=1)
    node.crash()


def code_of(call: object, *arguments: object, **fields: object) -> E:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **fields)  # type: ignore[operator]
    return caught.value.code


@pytest.mark.parametrize("kind", ["streams"])
def test_a_group_of_a_kind_that_is_not_served_keeps_its_id(node: Node, kind: str) -> None:
    """A group of another kind under the same id would leave a log that Kafka cannot read."""
    read_back(node, kind)
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    end = log.log_end_offset
    joined = node.join("g", member_id="")
    assert joined.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    joined.generation_id, joined.protocol_name = 1, None
    assert node.sync("g", joined).error_code == E.UNKNOWN_MEMBER_ID
    assert code_of(node.beat, "g", joined) is E.UNKNOWN_MEMBER_ID
    assert code_of(node.leave, "g", "m") is E.UNKNOWN_MEMBER_ID
    assert code_of(node.modern, "g", "m", subscribed_topic_names=["t"]) is E.GROUP_ID_NOT_FOUND
    assert code_of(node.commit, "g", "t", 1) is E.GROUP_ID_NOT_FOUND
    assert node.commit_in_transaction("g", "t", 1, (1, 0)) == E.GROUP_ID_NOT_FOUND
    assert code_of(node.committed, "g", "t") is E.GROUP_ID_NOT_FOUND
    assert code_of(node.groups.delete_group, "g") is E.GROUP_ID_NOT_FOUND
    node.topic("other")
    node.advance(2 * node.config.offsets_retention_minutes * 60_000)
    assert log.log_end_offset == end
    assert [(group.TYPE, group.state_name) for group in node.groups.all_groups()] == [(kind, "Unknown")]
    described = KINDS["classic"].describe("g", node.groups.find("g"), 6, node.groups.image)
    assert (described.group_state, described.error_code) == ("Dead", E.GROUP_ID_NOT_FOUND)


def test_the_id_is_free_when_the_group_is_gone() -> None:
    groups = Groups()
    groups.apply(RECORDS["streams"])
    groups.apply(Record(StreamsGroupMemberMetadataKey(group_id="g", member_id="m")))
    assert list(groups.by_id) == ["g"]
    groups.apply(Record(ShareGroupMetadataKey(group_id="g")))
    assert list(groups.by_id) == ["g"], "the tombstone of another kind"
    groups.apply(Record(StreamsGroupMetadataKey(group_id="g")))
    assert not groups.by_id


def test_a_group_that_is_served_is_not_replaced_by_one_that_is_not(node: Node) -> None:
    node.stable("g")
    groups = node.loader.by_partition[node.groups.partition_for("g")]
    served = groups.by_id["g"]
    groups.apply(RECORDS["share"])
    assert groups.by_id["g"] is served


def test_each_kind_describes_its_own_groups_only(node: Node) -> None:
    node.stable("c")
    node.modern("m", "a", subscribed_topic_names=["t"])
    for kind, group_id, code in (
        ("classic", "c", E.NONE),
        ("classic", "m", E.GROUP_ID_NOT_FOUND),
        ("consumer", "m", E.NONE),
        ("consumer", "c", E.GROUP_ID_NOT_FOUND),
    ):
        told = KINDS[kind].describe(group_id, node.groups.find(group_id), 6, node.groups.image)
        assert (told.group_id, told.error_code) == (group_id, code)
