"""Records of classic groups: what is back after a restart, and what is if one cannot be written."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from kafka_shim.cext.wire import EncodeError
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.group.announcements import announcements
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.classic_state import State
from kafka_shim.group.client import Client
from kafka_shim.group.records import GroupRecord, Record
from kafka_shim.protocol.records.group_metadata_key import GroupMetadataKey
from kafka_shim.protocol.records.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_shim.tests.group.harness import REBALANCE_MS, SESSION_MS, Node, code_of, subscription

E = ErrorCode


def test_a_stable_group_is_back_after_a_crash(node: Node) -> None:
    me = node.stable("g")
    node.commit("g", "t", 7, me.member_id, me.generation_id)
    node.crash()
    assert node.committed("g", "t") == (7, 0)
    assert code_of(node.beat, "g", me) is E.NONE
    assert node.sync("g", me).assignment == b"a"
    node.advance(SESSION_MS)
    assert node.state("g") == "Empty"


def test_members_of_a_group_that_nobody_asks_for_end_on_time_after_a_restart(node: Node) -> None:
    node.stable("g")
    node.crash()
    node.advance(SESSION_MS + 200)
    group = node.loader.by_partition[node.groups.partition_for("g")].by_id["g"]
    assert group.state is State.EMPTY


def test_a_static_member_whose_return_cannot_be_written_is_still_the_old_one(node: Node) -> None:
    me = node.stable("g", group_instance_id="one")
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    assert node.join("g", group_instance_id="one").error_code == E.NOT_COORDINATOR
    node.faults.disarm()
    assert code_of(node.beat, "g", me) is E.NONE
    node.advance(SESSION_MS)
    assert node.state("g") == "Empty", "its session goes on"


@pytest.mark.parametrize("end", ["leave", "session", "sync"])
def test_an_empty_generation_that_cannot_be_written_is_tried_again(node: Node, end: str) -> None:
    """Or the members of the generation before would be back after a restart, and the group's offsets would stay."""
    me = node.member("g") if end == "sync" else node.stable("g")
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    if end == "leave":
        assert code_of(node.leave, "g", me.member_id) is E.NOT_COORDINATOR
    else:
        for _ in range(REBALANCE_MS // SESSION_MS * 2):
            if end == "sync":
                node.beat("g", me)
            node.advance(SESSION_MS // 2)
        node.advance(500)
    assert node.state("g") == "PreparingRebalance", "not Empty before the record is written"
    node.faults.disarm()
    node.advance(1000)
    assert node.state("g") == "Empty"
    generation = node.groups.find("g").generation_id
    assert generation == me.generation_id + 1
    node.crash()
    assert (node.state("g"), node.groups.find("g").generation_id) == ("Empty", generation)


def _raise_key_error(**facts: object) -> None:
    """What a function of a test does that has a mistake."""
    raise KeyError("no such fact")


@pytest.mark.parametrize("point", ["group.before_append", "group.after_append", "log.after_append"])
@pytest.mark.parametrize("action", ["error", "oserror", "drop", pytest.param(_raise_key_error, id="function")])
@pytest.mark.parametrize("end", ["leave", "session"])
def test_a_fault_at_an_empty_generation_leaves_no_group_without_members_preparing(
    node: Node, end: str, action: str | Callable[..., object], point: str
) -> None:
    """No other event would end its join phase before somebody joins."""
    me = node.stable("g")
    node.faults.arm(point, action, nth=1)
    if end == "leave":
        with pytest.raises((KafkaError, OSError, DisconnectError, KeyError)):
            node.leave("g", me.member_id)
    else:
        node.advance(SESSION_MS)
    assert node.faults.reached(point) == 1
    node.logs.reopen_offline()
    node.advance(SESSION_MS * 2)
    assert node.state("g") == "Empty"
    generation = node.groups.find("g").generation_id
    node.crash()
    assert (node.state("g"), node.groups.find("g").generation_id) == ("Empty", generation)


def test_a_group_whose_record_is_appended_when_its_request_fails_is_what_the_log_says(node: Node) -> None:
    leader = node.join("g", version=3)
    node.faults.arm("group.after_append", "error", "NOT_COORDINATOR", nth=1)
    assert node.sync("g", leader, {leader.member_id: b"a"}).error_code == E.NOT_COORDINATOR
    assert node.sync("g", leader, {}).assignment == b"a"


def test_a_static_member_has_its_new_id_when_it_is_written(node: Node) -> None:
    me = node.stable("g", group_instance_id="one")
    seen: list[list[str]] = []
    group = node.groups.find("g")
    node.faults.arm("group.before_append", lambda **_: seen.append([*group.members, group.leader_id]))
    back = node.join("g", group_instance_id="one")
    assert seen == [[me.member_id, me.member_id]]
    assert [*group.members, group.leader_id] == [back.member_id, back.member_id]


def test_a_group_that_cannot_be_written_does_not_exist(node: Node) -> None:
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    assert node.join("g").error_code == E.NOT_COORDINATOR
    node.faults.disarm()
    assert node.groups.find("g") is None
    assert not len(node.timers)
    assert node.stable("g").error_code == E.NONE


def test_an_assignment_that_cannot_be_written_is_told_to_all_and_starts_a_rebalance(node: Node) -> None:
    leader = node.join("g", version=3)
    second = node.join("g", version=3)
    leader = node.join("g", leader.member_id, version=3)
    follower = second.response
    parked = node.sync("g", follower)
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    assert node.sync("g", leader, {leader.member_id: b"a"}).error_code == E.NOT_COORDINATOR
    node.faults.disarm()
    assert parked.response.error_code == E.NOT_COORDINATOR
    assert node.state("g") == "PreparingRebalance"
    assert node.beat("g", follower).error_code == E.REBALANCE_IN_PROGRESS
    again = node.join("g", leader.member_id, version=3)
    assert not again.is_done
    node.join("g", follower.member_id, version=3)
    assert again.response.generation_id == leader.generation_id + 1
    assert node.sync("g", again.response, {leader.member_id: b"a"}).assignment == b"a"


@pytest.mark.parametrize(("size_bytes", "protocol_bytes"), [(2_000_000, 0), (600_000, 500_000)])
def test_an_assignment_that_no_batch_may_hold_is_refused_before_its_record_is_made(
    node: Node, monkeypatch: pytest.MonkeyPatch, size_bytes: int, protocol_bytes: int
) -> None:
    mine = {"version": 3, "protocols": (("range", subscription("t") + bytes(protocol_bytes)),)}
    leader = node.join("g", **mine)
    second = node.join("g", **mine)
    leader = node.join("g", leader.member_id, **mine)
    parked = node.sync("g", second.response)
    monkeypatch.setattr(ClassicGroup, "record", lambda *_: pytest.fail("the record was made"))
    answer = node.sync("g", leader, {leader.member_id: bytes(size_bytes)})
    assert answer.error_code == parked.response.error_code == E.UNKNOWN_SERVER_ERROR
    assert node.state("g") == "PreparingRebalance"
    monkeypatch.undo()
    again = node.join("g", leader.member_id, **mine)
    node.advance(SESSION_MS)
    assert [each.member_id for each in again.response.members] == [leader.member_id]
    many = {leader.member_id: b"a", "stranger": bytes(size_bytes)}
    assert node.sync("g", again.response, many).assignment == b"a"


def test_a_follower_that_dies_when_its_assignment_cannot_be_written_is_removed(node: Node) -> None:
    leader = node.join("g", version=3)
    second = node.join("g", version=3)
    leader = node.join("g", leader.member_id, version=3)
    node.sync("g", second.response)
    node.advance(SESSION_MS - 1)
    node.beat("g", leader)
    node.advance(1)  # the follower's session ends in its wait
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    assert node.sync("g", leader, {}).error_code == E.NOT_COORDINATOR
    node.faults.disarm()
    again = node.join("g", leader.member_id, version=3)
    node.advance(SESSION_MS - 1)
    assert not again.is_done
    node.advance(1)
    assert [each.member_id for each in again.response.members] == [leader.member_id]


def group_of(*members: ClassicMember) -> ClassicGroup:
    group = ClassicGroup("g", 1234)
    for each in members:
        group.add(each, "consumer")
    group.generation_id, group.protocol = 7, "range"
    return group


def a_member(member_id: str, instance_id: str | None, metadata: bytes, client_id: str = "c") -> ClassicMember:
    return ClassicMember(member_id, instance_id, Client(client_id, "/h"), 2000, 1000, [("range", metadata), ("r", b"")])


def test_a_group_is_written_as_by_the_codec_and_read_when_somebody_asks(caplog: pytest.LogCaptureFixture) -> None:
    members = a_member("leader", None, b"m" * 300), a_member("\u00e9", "static", b""), a_member("", None, b"x", "")
    group = group_of(*members)
    given = {"leader": b"a" * 200, "\u00e9": b"", "stranger": b"s"}
    rows = [
        MemberMetadata(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            client_id=each.client_id,
            client_host="/h",
            rebalance_timeout=2000,
            session_timeout=1000,
            subscription=each.metadata("range"),
            assignment=given.get(each.member_id, b""),
        )
        for each in members
    ]
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="leader",
        current_state_timestamp=1234,
        members=rows,
    )
    expected, found = Record(GroupMetadataKey(group="g"), value, 3), group.record(given)
    assert isinstance(found, GroupRecord)
    assert found.encode() == expected.encode()
    group.members.clear()
    assert found.value == value
    with caplog.at_level(logging.INFO, "kafka_shim.group"):
        lines = announcements([found], lambda *_: False)
        assert lines == announcements([expected], lambda *_: False)
        assert lines == ["group g is at generation 7 with 3 members, assigned by range"]
    with pytest.raises(AttributeError):
        found.nothing  # noqa: B018


def test_a_group_that_no_record_can_hold_is_refused_when_it_is_appended() -> None:
    record = group_of(a_member("leader", None, b"m", "c" * 40_000)).record({})
    assert not isinstance(record, GroupRecord)
    with pytest.raises(EncodeError):
        record.encode()
