"""The answers of members that waited are written from what the group knows (`cext.late_answers`). Each frame is the
codec's, and those who wait go on together."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.cext.late_answers import LateAnswer
from kafka_shim.cext.messages import encode_response_frame
from kafka_shim.cext.replies import DelayedBase, answer_all, wake_first
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.client import Client
from kafka_shim.group.decision import SESSION
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse

LONG = "é" * 20_000  # more bytes than a string of the protocol may have


def member(member_id: str, instance_id: str | None, metadata: bytes, protocol: str = "range") -> ClassicMember:
    return ClassicMember(member_id, instance_id, Client("c", "/h"), 1000, 1000, [(protocol, metadata)])


def group_of(*members: ClassicMember, protocol: str = "range") -> ClassicGroup:
    group = ClassicGroup("g", 0)
    for each in members:
        group.add(each, "consumer")
        group.await_join(each, each.member_id)
    group.generation_id, group.protocol = 7, protocol
    return group


def joins(group: ClassicGroup) -> dict[Any, LateAnswer]:
    replies: list[tuple[Any, Any]] = []
    group.end_joins("g", SESSION, JoinGroupResponse, JoinGroupResponseMember, replies, [])
    return dict(replies)


def frame_of(message: Any, version: int) -> bytes:
    return b"".join(encode_response_frame(9, message, version))


@pytest.mark.parametrize("version", range(JoinGroupResponse.MIN_VERSION, JoinGroupResponse.MAX_VERSION + 1))
def test_a_join_is_answered_as_by_the_codec(version: int) -> None:
    group = group_of(member("leader", None, b"m" * 300), member("é", "static", b""), member("", None, b"x"))
    answers = joins(group)
    rows = [
        JoinGroupResponseMember(member_id="leader", metadata=b"m" * 300),
        JoinGroupResponseMember(member_id="é", group_instance_id="static", metadata=b""),
        JoinGroupResponseMember(member_id="", metadata=b"x"),
    ]
    for member_id in ("leader", "é", ""):
        expected = JoinGroupResponse(
            generation_id=7,
            protocol_type="consumer",
            protocol_name="range",
            leader="leader",
            member_id=member_id,
            members=rows if member_id == "leader" else [],
        )
        assert answers[member_id].written(9, version) == frame_of(expected, version)
        assert answers[member_id].message() == expected


@pytest.mark.parametrize("version", range(SyncGroupResponse.MIN_VERSION, SyncGroupResponse.MAX_VERSION + 1))
def test_a_sync_is_answered_as_by_the_codec(version: int) -> None:
    group = group_of(member("leader", None, b"m"), member("other", None, b"m"))
    group.members["other"].awaiting_sync = "waits"
    replies: list[tuple[Any, Any]] = []
    given = {"leader": b"a" * 200}
    group.answer_syncs("g", SESSION, SyncGroupResponse, given, "leader", "asks", replies, [])
    assert [token for token, _ in replies] == ["asks", "waits"]
    for (_, answer), assignment in zip(replies, (b"a" * 200, b""), strict=True):
        expected = SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=assignment)
        assert answer.written(9, version) == frame_of(expected, version)
        assert answer.message() == expected


def test_what_cannot_be_written_is_left_to_the_codec() -> None:
    group = group_of(member("leader", LONG, b"m"), member("other", None, b"m"))
    answers = joins(group)
    assert answers["leader"].written(9, 9) is None
    assert answers["leader"].written(9, 4) is not None  # which names no instance
    assert answers["other"].written(9, 9) is not None
    group = group_of(member("leader", None, b"m"))
    group.protocol = None  # null in some versions
    assert joins(group)["leader"].written(9, 9) is None


def test_an_answer_has_the_attributes_of_its_message() -> None:
    (answer,) = joins(group_of(member("leader", "i", b"m"))).values()
    assert (answer.error_code, answer.leader, answer.members[0].group_instance_id) == (0, "leader", "i")
    assert answer.message() is answer.message()
    with pytest.raises(AttributeError):
        answer.nothing  # noqa: B018


def waiting(count: int, went_on: list[int], turns: list[Any]) -> list[DelayedBase]:
    tokens = [DelayedBase(lambda code: code) for _ in range(count)]
    for number, token in enumerate(tokens):
        token.then(lambda number=number: went_on.append(number), turns.append)  # type: ignore[misc]
    return tokens


def test_those_who_wait_go_on_together_in_order_on_the_next_turn() -> None:
    went_on: list[int] = []
    turns: list[Any] = []
    purgatory: dict[Any, str] = {}
    tokens = waiting(5, went_on, turns)
    for token in tokens:
        token.park(purgatory, "g")
    answer_all([(token, number) for number, token in enumerate(tokens)], ())
    assert (went_on, len(turns), len(purgatory)) == ([], 1, 5)
    turns[0]()
    assert (went_on, purgatory) == ([0, 1, 2, 3, 4], {})
    turns[0]()
    assert len(went_on) == 5


def test_who_is_woken_before_the_turn_goes_on_once() -> None:
    """As where the broker stops meanwhile."""
    went_on: list[int] = []
    turns: list[Any] = []
    tokens = waiting(3, went_on, turns)
    answer_all([(token, "answer") for token in tokens], ())
    tokens[1].wake()
    for turn in turns:
        turn()
    assert sorted(went_on) == [0, 1, 2]


def test_one_that_fails_does_not_keep_the_others_from_going_on() -> None:
    went_on: list[int] = []
    turns: list[Any] = []
    tokens = waiting(2, went_on, turns)
    bad = DelayedBase(lambda code: code)

    def fail() -> None:
        raise RuntimeError("no")

    bad.then(fail, turns.append)
    answer_all([(token, "answer") for token in (bad, *tokens)], ())
    with pytest.raises(RuntimeError):
        turns[0]()
    assert went_on == [0, 1]


def test_without_memory_for_the_turn_all_still_wait() -> None:
    went_on: list[int] = []
    turns: list[Any] = []
    failures = [MemoryError()]

    def soon(call: Any) -> None:
        if failures:
            raise failures.pop()
        turns.append(call)

    tokens = [DelayedBase(lambda code: code) for _ in range(3)]
    for number, token in enumerate(tokens):
        token.then(lambda number=number: went_on.append(number), soon)  # type: ignore[misc]
    completed = [token for token in tokens if token.complete("answer")]
    with pytest.raises(MemoryError):
        wake_first(completed, 2)
    assert (completed, turns) == (tokens, [])
    wake_first(completed, 3)
    turns[0]()
    assert (completed, went_on) == ([], [0, 1, 2])


def test_so_many_go_on_in_one_turn() -> None:
    went_on: list[int] = []
    turns: list[Any] = []
    completed = waiting(5, went_on, turns)
    for token in completed:
        token.complete("answer")
    left = list(completed)
    wake_first(left, 3)
    assert (left, len(turns)) == (completed[3:], 1)
    turns[0]()
    assert went_on == [0, 1, 2]


def test_a_generation_that_no_field_holds_is_the_codecs() -> None:
    group = group_of(member("leader", None, b"m"))
    group.generation_id = 0x7FFFFFFF
    assert group.record_value(0, {}) is not None
    assert joins(group)["leader"].written(9, 9) is not None
    group.await_join(group.members["leader"], "leader")
    group.generation_id += 1
    assert group.record_value(0, {}) is None
    assert joins(group)["leader"].written(9, 9) is None
