"""The classic protocol: every request in every state, and every timeout, under a virtual clock."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_protocol, member_turns
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_state import ALLOWED_FROM, State
from kafka_shim.group.client import Client
from kafka_shim.group.metadata_image import GATHERING_MS
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_shim.tests.group.harness import REBALANCE_MS, SESSION_MS, Later, Node, code_of, documented, subscription
from kafka_shim.tests.work import calls_of

E = ErrorCode
STATES = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]


def request_of(member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("t"))],
    )


class Scene:
    """A group "g" brought into a state, with `me` a member of it (not the leader where there are two)."""

    def __init__(self, node: Node, state: str) -> None:
        self.node = node
        self.me = node.stable("g")
        if state == "Empty":
            node.leave("g", self.me.member_id)
        elif state == "PreparingRebalance":
            self.newcomer = node.member("g")
        elif state == "CompletingRebalance":
            self.newcomer = node.member("g")
            self.me = node.join("g", self.me.member_id)
        elif state == "Dead":
            node.groups.find("g").enter(State.DEAD, 0)
        assert node.state("g") == state


TABLE = {
    # request: the code in each of STATES; None: it waits
    "join": [E.UNKNOWN_MEMBER_ID, E.NONE, E.NONE, E.NONE, E.COORDINATOR_NOT_AVAILABLE],
    "join as new": [E.MEMBER_ID_REQUIRED] * 4 + [E.COORDINATOR_NOT_AVAILABLE],
    "sync": [E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, E.NONE, E.NONE, E.COORDINATOR_NOT_AVAILABLE],
    "heartbeat": [E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, E.NONE, E.NONE, E.COORDINATOR_NOT_AVAILABLE],
    "commit": [E.UNKNOWN_MEMBER_ID, E.NONE, E.REBALANCE_IN_PROGRESS, E.NONE, E.COORDINATOR_NOT_AVAILABLE],
    "commit without a group": [E.NONE, *[E.UNKNOWN_MEMBER_ID] * 3, E.COORDINATOR_NOT_AVAILABLE],
    "commit of a stranger": [E.UNKNOWN_MEMBER_ID] * 4 + [E.COORDINATOR_NOT_AVAILABLE],
    "old generation": [E.UNKNOWN_MEMBER_ID, *[E.ILLEGAL_GENERATION] * 3, E.COORDINATOR_NOT_AVAILABLE],
    "stranger": [E.UNKNOWN_MEMBER_ID] * 4 + [E.COORDINATOR_NOT_AVAILABLE],
    "unknown instance": [E.UNKNOWN_MEMBER_ID] * 4 + [E.COORDINATOR_NOT_AVAILABLE],
    "delete": [E.NONE, *[E.NON_EMPTY_GROUP] * 3, E.GROUP_ID_NOT_FOUND],
}


def ask(scene: Scene, request: str) -> ErrorCode:
    node, me = scene.node, scene.me
    member_id, generation = me.member_id, me.generation_id
    if request == "join":
        return code_of(node.join, "g", member_id)
    if request == "join as new":
        return code_of(node.join, "g")
    if request == "sync":
        return code_of(node.sync, "g", me)
    if request == "heartbeat":
        return code_of(node.beat, "g", me)
    if request == "commit":
        return code_of(node.commit, "g", "t", 5, member_id, generation)
    if request == "commit without a group":
        return code_of(node.commit, "g", "t", 5)
    if request == "commit of a stranger":
        return code_of(node.commit, "g", "t", 5, "stranger", generation)
    if request == "old generation":
        return code_of(node.beat, "g", me, generation_id=generation + 7)
    if request == "stranger":
        return code_of(node.sync, "g", me, member_id="stranger")
    if request == "unknown instance":
        return code_of(node.beat, "g", me, group_instance_id="i")
    try:
        node.delete_group("g")
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_name", "state", "expected"),
    [(name, state, code) for name, row in TABLE.items() for state, code in zip(STATES, row, strict=True)],
)
def test_every_request_in_every_state(node: Node, request_name: str, state: str, expected: ErrorCode) -> None:
    assert ask(Scene(node, state), request_name) is expected


def test_the_documented_table_is_this_one() -> None:
    told = {name: [code.name for code in row] for name, row in TABLE.items()}
    assert documented("classic") == {"request": STATES, **told}


@pytest.mark.parametrize("target", State)
@pytest.mark.parametrize("source", State)
def test_only_the_transitions_of_the_table_are_possible(source: State, target: State) -> None:
    group = ClassicGroup("g", 0, source)
    if source in ALLOWED_FROM[target]:
        group.enter(target, 5)
        assert (group.state, group.previous_state, group.state_ms) == (target, source, 5)
    else:
        with pytest.raises(AssertionError):
            group.enter(target, 5)


# --- time


def test_a_silent_member_is_removed_at_its_session_timeout(node: Node) -> None:
    me = node.stable("g")
    node.advance(SESSION_MS - 1)
    assert node.state("g") == "Stable"
    node.advance(1)
    assert node.state("g") == "Empty"
    assert code_of(node.beat, "g", me) is E.UNKNOWN_MEMBER_ID


def test_a_group_is_stable_one_heartbeat_after_a_crashed_members_session(node: Node) -> None:
    interval_ms = 500
    me = node.stable("g")
    crashed = node.member("g")
    me = node.join("g", me.member_id)
    crashed = crashed.response
    node.sync("g", crashed)
    node.sync("g", me, {me.member_id: b"half", crashed.member_id: b"half"})
    assert node.state("g") == "Stable"
    for _ in range(SESSION_MS // interval_ms):
        assert code_of(node.beat, "g", me) is E.NONE
        node.advance(interval_ms)
    assert list(node.groups.find("g").members) == [me.member_id], "not a moment longer"
    node.advance(interval_ms - 1)
    assert code_of(node.beat, "g", me) is E.REBALANCE_IN_PROGRESS
    me = node.join("g", me.member_id)
    assert node.sync("g", me, {me.member_id: b"all"}).assignment == b"all"
    assert node.state("g") == "Stable"


@pytest.mark.parametrize("sign", ["heartbeat", "commit"])
def test_a_sign_of_life_moves_the_session(node: Node, sign: str) -> None:
    me = node.stable("g")
    for _ in range(5):
        node.advance(SESSION_MS - 1)
        if sign == "heartbeat":
            assert code_of(node.beat, "g", me) is E.NONE
        else:
            assert node.commit("g", "t", 1, me.member_id, me.generation_id) == 0
    node.advance(SESSION_MS)
    assert node.state("g") == "Empty"


def test_a_parked_join_needs_no_heartbeat_but_the_others_must_come_in_time(node: Node) -> None:
    me = node.stable("g")
    waits = node.member("g")
    for _ in range(REBALANCE_MS // 5000):
        assert not waits.is_done
        assert code_of(node.beat, "g", me) is E.REBALANCE_IN_PROGRESS
        node.advance(5000)
    joined = waits.response
    assert [each.member_id for each in joined.members] == [joined.member_id], "who did not join is gone, the rest leads"
    assert code_of(node.beat, "g", me) is E.UNKNOWN_MEMBER_ID


def test_who_does_not_sync_in_time_is_removed(node: Node) -> None:
    me = node.stable("g")
    waits = node.member("g")
    again = node.join("g", me.member_id)
    other = waits.response
    assert node.state("g") == "CompletingRebalance"
    synced = node.sync("g", other)
    for _ in range(REBALANCE_MS // 5000):
        assert code_of(node.beat, "g", again) is E.NONE
        node.advance(5000)
    assert synced.response.error_code == E.REBALANCE_IN_PROGRESS
    assert code_of(node.beat, "g", again) is E.UNKNOWN_MEMBER_ID


def test_an_id_that_nobody_comes_back_with_is_forgotten(node: Node) -> None:
    node.stable("g")
    given = node.join("g")
    group = node.groups.find("g")
    assert list(group.pending_joins) == [given.member_id]
    node.advance(SESSION_MS)
    assert not group.pending_joins
    assert code_of(node.join, "g", given.member_id) is E.UNKNOWN_MEMBER_ID


def test_an_id_that_was_given_to_a_dynamic_member_is_none_of_a_static_one(node: Node) -> None:
    given = node.join("g")
    told = node.join("g", given.member_id, group_instance_id="i")
    assert (told.error_code, told.member_id) == (E.UNKNOWN_SERVER_ERROR, "")  # as Apache Kafka's illegal state
    assert node.join("g", given.member_id).error_code == 0


def test_a_first_join_that_is_never_answered_ends_after_five_minutes(node: Node) -> None:
    me = node.stable("g", rebalance_timeout_ms=3_600_000)
    node.member("g", rebalance_timeout_ms=3_600_000)
    group = node.groups.find("g")
    for _ in range(60):
        assert len(group.members) == 2
        node.advance(5000)
        node.beat("g", me)
    assert list(group.members) == [me.member_id]


def test_the_initial_delay_gathers_members_until_nobody_comes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka_shim.group")
    node = Node(tmp_path, group_initial_rebalance_delay_ms=1000)
    try:
        first = node.member("g")
        node.advance(900)
        second = node.member("g")
        node.advance(200)
        assert not first.is_done
        node.advance(1000)
        assert first.response.generation_id == second.response.generation_id == 1
        assert len(first.response.members) == 2
        assert caplog.messages[-1] == "group g, now CompletingRebalance: its join time is over"
    finally:
        node.close()


def test_the_initial_delay_ends_at_the_rebalance_timeout(tmp_path: Path) -> None:
    node = Node(tmp_path, group_initial_rebalance_delay_ms=1000)
    try:
        first = node.member("g", rebalance_timeout_ms=3000)
        for _ in range(6):
            node.advance(499)
            node.member("g", rebalance_timeout_ms=3000)
        node.advance(1100)
        assert first.is_done
    finally:
        node.close()


def test_a_later_member_with_a_longer_timeout_does_not_extend_the_initial_delay(tmp_path: Path) -> None:
    node = Node(tmp_path, group_initial_rebalance_delay_ms=3000)
    try:
        first = node.join("g", version=3, rebalance_timeout_ms=7000)
        for _ in range(3):
            node.advance(2000)
            node.join("g", version=3, rebalance_timeout_ms=60_000)
        node.advance(999)
        assert not first.is_done
        node.advance(1)
        assert len(first.response.members) == 4
    finally:
        node.close()


# --- without an initial delay


@pytest.fixture
def gathering(node: Node) -> Node:
    """A node that has members with ids waited for, as under a clock that is not virtual."""
    node.groups._runtime.image.gathering_ms = GATHERING_MS
    return node


def test_a_new_group_waits_for_those_that_have_their_ids(gathering: Node) -> None:
    late_id = gathering.join("g").member_id
    first = gathering.member("g")
    gathering.advance(GATHERING_MS - 1)
    assert not first.is_done
    late = gathering.join("g", late_id)
    assert first.response.generation_id == late.generation_id == 1
    assert len(first.response.members) == 2


def test_a_new_group_waits_not_for_long(gathering: Node) -> None:
    gathering.join("g")
    first = gathering.member("g")
    gathering.advance(GATHERING_MS)
    assert first.response.generation_id == 1
    assert len(first.response.members) == 1


def test_a_member_alone_waits_for_nobody(gathering: Node) -> None:
    assert gathering.member("g").generation_id == 1


def test_an_initial_delay_of_its_own_is_as_long_as_it_says(tmp_path: Path) -> None:
    node = Node(tmp_path, group_initial_rebalance_delay_ms=1)
    try:
        node.groups._runtime.image.gathering_ms = GATHERING_MS
        node.join("g")
        first = node.member("g")
        node.advance(1)
        assert first.response.generation_id == 1
    finally:
        node.close()


def test_nobody_waits_for_those_that_have_their_ids_while_a_virtual_clock_stands(node: Node) -> None:
    node.join("g")
    assert node.member("g").generation_id == 1


def test_members_that_come_on_one_turn_after_another_are_together(node: Node) -> None:
    """As in Kafka, a delay of 0 is extended like any other."""
    ids = [node.join("g").member_id for _ in range(4)]

    async def come() -> list[DelayedResponse]:
        joins = []
        for member_id in ids:
            joins.append(node.groups.classic.join_group(request_of(member_id), 9, Client("c", "/::1")))
            if member_id != ids[0]:  # the second one comes before the delay of the first is over
                await asyncio.sleep(0)
        await node.clock.advance_and_drain(0)
        return joins

    answers = [each.outcome.response for each in node.loop.run_until_complete(come())]
    assert [answer.generation_id for answer in answers] == [1] * 4


# --- members


def test_a_follower_with_new_metadata_starts_a_rebalance(node: Node) -> None:
    me = node.stable("g")
    waits = node.member("g")
    led = node.join("g", me.member_id)
    followed = waits.response
    node.sync("g", led, {led.member_id: b"1", followed.member_id: b"2"})
    assert node.sync("g", followed).assignment == b"2"
    same = node.join("g", followed.member_id)
    assert (same.generation_id, same.members, node.state("g")) == (led.generation_id, [], "Stable")
    assert isinstance(node.join("g", followed.member_id, protocols=(("range", subscription("u")),)), Later)
    assert node.state("g") == "PreparingRebalance"


def test_a_static_member_that_restarts_moves_nothing(node: Node) -> None:
    first = node.join("g", group_instance_id="one")
    node.sync("g", first, {first.member_id: b"mine"}, group_instance_id="one")
    back = node.join("g", group_instance_id="one")
    assert back.member_id != first.member_id
    assert (back.generation_id, back.skip_assignment, node.state("g")) == (first.generation_id, True, "Stable")
    assert node.sync("g", back, group_instance_id="one").assignment == b"mine"
    assert code_of(node.beat, "g", first, group_instance_id="one") is E.FENCED_INSTANCE_ID
    assert code_of(node.beat, "g", first) is E.UNKNOWN_MEMBER_ID
    node.crash()
    assert code_of(node.beat, "g", back, group_instance_id="one") is E.NONE


def test_a_static_member_that_restarts_elsewhere_is_shown_where_it_first_was(node: Node) -> None:
    """As in Apache Kafka, which copies client id and host of the member that is replaced."""
    first = node.join("g", group_instance_id="one")
    node.sync("g", first, {first.member_id: b"mine"}, group_instance_id="one")
    back = node.join("g", group_instance_id="one", client=Client("other", "/127.0.0.2"))
    member = node.groups.find("g").members[back.member_id]
    assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")


def test_an_old_static_leader_is_not_told_that_it_leads(node: Node) -> None:
    first = node.join("g", group_instance_id="one")
    node.sync("g", first, {first.member_id: b"mine"}, group_instance_id="one")
    back = node.join("g", version=8, group_instance_id="one")
    assert back.leader == first.member_id
    assert back.members == []


@pytest.mark.option("group.max.size")
def test_the_group_is_full(tmp_path: Path) -> None:
    node = Node(tmp_path, group_max_size=1)
    try:
        me = node.stable("g")
        assert node.join("g").error_code == E.GROUP_MAX_SIZE_REACHED
        assert code_of(node.beat, "g", me) is E.NONE
    finally:
        node.close()


def test_a_flood_of_first_joins_costs_bounded_memory(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.classic_join.MAX_PENDING_JOINS", 50)
    me = node.stable("g")
    given = [node.join("g").member_id for _ in range(200)]
    group = node.groups.find("g")
    assert list(group.pending_joins) == given[-50:]
    assert len(node.timers) == 51
    assert code_of(node.beat, "g", me) is E.NONE


def test_thousands_of_joins_that_never_sync_leave_the_other_groups_alone(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 3000
    monkeypatch.setattr(member_turns, "MOST_PER_TURN", count)  # all in the turn in which the join phase begins
    me = node.stable("other")
    request = request_of("")

    def join_many() -> list[Any]:
        return [node.groups.classic.join_group(request, 3, Client("c", "/::1")) for _ in range(count // 10)]

    async def flood() -> list[int]:
        """The calls that each tenth of the joins made. Members of old versions: they are in the group at once."""
        made = []
        for _ in range(10):
            answers, calls = calls_of(join_many)
            made.append(calls)
            waiting.extend(asyncio.ensure_future(each) for each in answers)
        await node.clock.advance_and_drain(0)
        return made

    waiting: list[asyncio.Future[Any]] = []
    made = node.loop.run_until_complete(flood())
    assert min(made[5:]) < 1.1 * min(made[:5]), "a join costs the same in a group of any size"
    group = node.groups.find("g")
    assert (group.state, len(group.members)) == (State.COMPLETING, count)
    assert code_of(node.beat, "other", me) is E.NONE
    node.advance(REBALANCE_MS // 4)
    assert code_of(node.beat, "other", me) is E.NONE
    node.advance(REBALANCE_MS - REBALANCE_MS // 4)
    assert (group.state, len(group.members), group.joining, group.protocol_counts) == (State.EMPTY, 0, set(), {})
    assert {each.result().response.error_code for each in waiting} == {E.NONE}
    assert len(node.timers) == 0


def stored_bytes(group: Any) -> int:
    return sum(len(name) + len(data) for each in group.members.values() for name, data in each.protocols)


def test_a_flood_of_metadata_costs_bounded_memory(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.group.classic_join.MAX_METADATA_BYTES", 10_000)
    large = {"version": 3, "protocols": (("range", subscription("t") + bytes(2900)), ("sticky", subscription("t")))}
    first = node.join("g", **large)
    node.sync("g", first, {first.member_id: b"a"})
    others = [node.join("g", **large) for _ in range(20)]
    group = node.groups.find("g")
    refused = [each for each in others if not isinstance(each, Later)]
    assert (len(group.members), len(refused)) == (3, 18)
    assert {each.error_code for each in refused} == {E.GROUP_MAX_SIZE_REACHED}
    assert group.metadata_bytes == stored_bytes(group)
    assert node.join("g", first.member_id, **large).error_code == 0, "who is in may come again"
    assert group.metadata_bytes == stored_bytes(group)
    assert group.protocol_counts == {"range": 3, "sticky": 3}
    smaller = {"version": 3, "protocols": (("range", subscription("t") + bytes(2800)),)}
    assert isinstance(node.join("g", first.member_id, **smaller), Later)
    assert group.metadata_bytes == stored_bytes(group)
    assert group.protocol_counts == {"range": 3, "sticky": 2}
    larger = {"version": 3, "protocols": (("range", subscription("t") + bytes(9900)),)}
    assert node.join("g", first.member_id, **larger).error_code == E.GROUP_MAX_SIZE_REACHED
    assert first.member_id in group.members
    names = {"version": 3, "protocols": tuple((f"{number:09900}", b"") for number in range(3))}
    assert node.join("h", **names).error_code == E.GROUP_MAX_SIZE_REACHED, "their names are stored too"
    assert node.join("g").error_code == E.MEMBER_ID_REQUIRED, "a small one finds room"
    node.advance(REBALANCE_MS)
    assert (group.members, group.metadata_bytes) == ({}, 0)


@pytest.mark.parametrize("metadata", [b"", b"\xff", b"\x00\x01\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x05ab"])
def test_hostile_metadata_makes_every_topic_count_as_used(node: Node, metadata: bytes) -> None:
    me = node.stable("g", protocols=(("range", metadata),))
    group = node.groups.find("g")
    assert group.subscribed_topics is None
    assert group.is_subscribed("anything")
    assert code_of(node.beat, "g", me) is E.NONE


@given(st.binary(max_size=80))
def test_bytes_of_clients_parse_or_are_refused(data: bytes) -> None:
    for read in (consumer_protocol.read_subscription, consumer_protocol.read_topics, consumer_protocol.read_assignment):
        try:
            read(data)
        except consumer_protocol.ConsumerProtocolError:
            continue
    for cut in range(len(OWNED)):
        with pytest.raises(consumer_protocol.ConsumerProtocolError):
            consumer_protocol.read_subscription(OWNED[:cut])


OWNED = b"\0\3" + subscription("t", "u")[2:] + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\5" + b"\0\0\0\7" + b"\0\2r1"


def test_a_subscription_of_version_three_is_read_whole() -> None:
    found = consumer_protocol.read_subscription(OWNED)
    assert (found.topics, found.owned, found.rack_id) == (["t", "u"], {"t": [5]}, "r1")
    assigned = consumer_protocol.write_assignment({"t": [0, 2], "u": []}, 1)
    assert consumer_protocol.read_assignment(assigned) == ({"t": [0, 2], "u": []}, None)


def test_a_huge_subscription_is_not_read(node: Node) -> None:
    many = (b"\0\0" + (400_000).to_bytes(4, "big") + b"\0\1t" * 400_000, b"\0\0\0\0\0\1" + bytes(2_000_000))
    for number, metadata in enumerate(many):
        group = f"g{number}"
        me, calls = calls_of(node.stable, group, protocols=(("range", metadata),))
        assert node.groups.find(group).subscribed_topics is None
        assert calls < 10_000
        assert me.error_code == 0


def test_a_stopping_broker_answers_what_waits(node: Node) -> None:
    node.stable("g")
    waits = node.member("g")
    node.groups.stop()
    node.advance(0)
    assert waits.response.error_code == E.NOT_COORDINATOR


def test_a_static_leader_that_does_not_join_again_is_replaced(node: Node) -> None:
    """It stays a member, since its session goes on, and the group goes on without it."""
    leads = node.join("g", group_instance_id="one")
    node.sync("g", leads, {leads.member_id: b"1"}, group_instance_id="one")
    waits = node.join("g", group_instance_id="two")
    leads = node.join("g", leads.member_id, group_instance_id="one")
    follows = waits.response
    assert leads.leader == follows.leader == leads.member_id
    node.sync("g", leads, {leads.member_id: b"1", follows.member_id: b"2"}, group_instance_id="one")
    node.sync("g", follows, group_instance_id="two")
    waits = node.join(
        "g",
        follows.member_id,
        group_instance_id="two",
        protocols=(("range", subscription("u")),),
        session_timeout_ms=60_000,
    )
    for _ in range(REBALANCE_MS // 5000):
        node.beat("g", leads, group_instance_id="one")
        node.advance(5000)
    assert waits.response.leader == follows.member_id
    assert {each.member_id for each in waits.response.members} == {leads.member_id, follows.member_id}


def test_a_static_member_is_removed_by_its_instance_id(node: Node) -> None:
    """As `removeMembersFromConsumerGroup` of an administrator asks."""
    me = node.stable("g", group_instance_id="one")
    stranger, nobody = node.leave("g", "", "", instance_id="two").members
    assert (stranger.error_code, nobody.error_code) == (E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID)
    assert node.leave("g", "").members[0].error_code == E.UNKNOWN_MEMBER_ID
    assert node.state("g") == "Stable"
    assert node.leave("g", "", instance_id="one").members[0].error_code == E.NONE
    assert (node.state("g"), code_of(node.beat, "g", me)) == ("Empty", E.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("by", ["leave", "session"])
def test_a_static_member_that_is_gone_comes_back_as_a_new_one(node: Node, by: str) -> None:
    old = node.stable("g", group_instance_id="one")
    if by == "leave":
        assert node.leave("g", old.member_id, instance_id="one").members[0].error_code == E.NONE
    else:
        node.advance(SESSION_MS)
    assert node.state("g") == "Empty"
    new = node.join("g", group_instance_id="one")
    assert (new.error_code, new.leader) == (E.NONE, new.member_id)
    assert new.member_id != old.member_id
    assert code_of(node.beat, "g", old, group_instance_id="one") is E.FENCED_INSTANCE_ID


def test_nobody_leaves_with_the_instance_id_of_another(node: Node) -> None:
    me = node.stable("g", group_instance_id="one")
    waits = node.join("g", group_instance_id="two")
    for instance_id, code in (("two", E.FENCED_INSTANCE_ID), ("three", E.UNKNOWN_MEMBER_ID)):
        assert node.leave("g", me.member_id, instance_id=instance_id).members[0].error_code == code
    assert len(node.groups.find("g").members) == 2
    assert node.join("g", me.member_id, group_instance_id="one").error_code == E.NONE
    assert waits.response.error_code == E.NONE


def test_a_request_of_a_member_that_leaves_meanwhile_is_answered(node: Node) -> None:
    """Over another connection: a client that closes does not wait for its JoinGroup or SyncGroup."""
    first = node.join("g", version=3)
    node.sync("g", first)
    joins = node.join("g", version=3)
    assert not joins.is_done
    member_id = next(name for name in node.groups.find("g").members if name != first.member_id)
    assert node.leave("g", member_id).members[0].error_code == E.NONE
    assert joins.response.error_code == E.UNKNOWN_MEMBER_ID
    joins = node.join("g", version=3)
    first = node.join("g", first.member_id, version=3)
    syncs = node.sync("g", joins.response)
    assert not syncs.is_done
    assert node.leave("g", joins.response.member_id).members[0].error_code == E.NONE
    assert syncs.response.error_code == E.UNKNOWN_MEMBER_ID


def test_a_member_of_a_full_group_that_has_joined_may_join_again(node: Node) -> None:
    node.config.group_max_size = 2
    first = node.join("g", version=3)
    node.sync("g", first)
    joins = [node.join("g", version=3) for _ in range(2)]
    assert not any(each.is_done for each in joins)
    second = next(name for name in node.groups.find("g").members if name != first.member_id)
    again = node.join("g", second, version=3)
    assert joins[0].response.error_code == E.UNKNOWN_MEMBER_ID, "its connection broke"
    # The first did not join in time for one of the two places, and is no member any more: as in Kafka.
    assert node.join("g", first.member_id, version=3).error_code == E.GROUP_MAX_SIZE_REACHED
    node.advance(REBALANCE_MS)
    assert {again.response.error_code, joins[1].response.error_code} == {E.NONE}
    assert set(node.groups.find("g").members) == {second, joins[1].response.member_id}


def test_a_member_of_a_full_group_that_is_stable_may_join_again(node: Node) -> None:
    node.config.group_max_size = 1
    me = node.stable("g")
    assert node.join("g").error_code == E.GROUP_MAX_SIZE_REACHED
    again = node.join("g", me.member_id, protocols=(("range", subscription("u")),))
    assert (again.error_code, again.generation_id) == (E.NONE, me.generation_id + 1)


def test_a_new_group_needs_a_protocol_and_its_type(node: Node) -> None:
    for fields in ({"protocol_type": ""}, {"protocols": ()}):
        refused = node.join("g", version=3, **fields)
        assert (refused.error_code, refused.member_id) == (E.INCONSISTENT_GROUP_PROTOCOL, ""), fields
    assert node.join("g", version=3).error_code == E.NONE


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_who_syncs_another_protocol_does_not_wait_for_the_leader(node: Node, field: str) -> None:
    first = node.join("g", version=3)
    node.sync("g", first)
    waits = node.join("g", version=3)
    first = node.join("g", first.member_id, version=3)
    follower = waits.response
    assert node.sync("g", follower, **{field: "other"}).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    parked = node.sync("g", follower)
    node.sync("g", first, {follower.member_id: b"mine"})
    assert parked.response.assignment == b"mine"


def test_a_protocol_that_a_member_names_twice_counts_once(node: Node) -> None:
    twice = (("range", subscription("t")), ("range", subscription("t")), ("sticky", b""))
    first = node.join("g", version=3, protocols=twice)
    assert (first.error_code, first.protocol_name) == (E.NONE, "range")
    assert node.join("g", version=3, protocols=(("other", b""),)).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    second = node.join("g", version=3, protocols=(("sticky", b""),))
    first = node.join("g", first.member_id, version=3, protocols=twice)
    assert (first.protocol_name, second.response.protocol_name) == ("sticky", "sticky")


def test_a_member_that_was_given_an_id_leaves_before_it_joins(node: Node) -> None:
    """The group rebalances all the same, as in Kafka."""
    me = node.stable("g")
    given = node.join("g").member_id
    timers = len(node.timers)
    assert node.leave("g", given).members[0].error_code == E.NONE
    assert list(node.groups.find("g").pending_joins) == []
    assert len(node.timers) == timers, "one of a session less, one of the rebalance more"
    assert (node.state("g"), code_of(node.beat, "g", me)) == ("PreparingRebalance", E.REBALANCE_IN_PROGRESS)


def test_nobody_leaves_a_dead_group(node: Node) -> None:
    scene = Scene(node, "Dead")
    assert code_of(node.leave, "g", scene.me.member_id) is E.COORDINATOR_NOT_AVAILABLE
