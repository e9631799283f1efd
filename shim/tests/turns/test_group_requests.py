"""Requests about groups with very many entries."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.api import k13_leave_group
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode as E
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequestProtocol
from kafka_shim.targets.requests import make
from kafka_shim.tests.group.harness import subscription
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.turns.harness import answer_when, begun, steps_of, topics
from kafka_shim.wire_client import Connection

MANY = 3 * k13_leave_group.MEMBERS_PER_STEP
SHARE_PARTITIONS = [{"topic_id": bytes(15) + bytes([number]), "partitions": [{"partition": 0}]} for number in range(9)]


def begin(broker: Broker, request: Any, version: int, steps: int) -> list[Any]:
    return broker.call(lambda: [begun(broker.state, request, version, steps)])  # type: ignore[no-any-return]


def end(broker: Broker, steps: Any) -> Any:
    answer, _ = broker.call(lambda: steps_of(steps))
    return getattr(answer, "response", answer)


def test_members_leave_in_steps(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        protocols = [{"name": "range", "metadata": b""}]
        join = make("JoinGroup", group_id="g", protocol_type="consumer", protocols=protocols)
        join.session_timeout_ms = join.rebalance_timeout_ms = 60_000
        joined = answer_when(client, join, 3, lambda answer: not answer.error_code)
        members = [{"member_id": "none"}] * (MANY - 1) + [{"member_id": joined.member_id}]

        (steps,) = begin(broker, make("LeaveGroup", group_id="g", members=members), 5, 2)
        describe = make("DescribeGroups", groups=["g"])
        assert len(client.request(describe, 5).groups[0].members) == 1
        left = end(broker, steps).members
        assert [each.error_code for each in left] == [E.UNKNOWN_MEMBER_ID] * (MANY - 1) + [E.NONE]
        assert client.request(describe, 5).groups[0].members == []


def mixed(client: Connection, broker: Broker) -> list[str]:
    """A consumer group of a member of its protocol and two classic ones; their ids."""
    topics(broker, t=4)
    client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
    beat = make("ConsumerGroupHeartbeat", group_id="g", member_id="modern", subscribed_topic_names=["t"])
    beat.rebalance_timeout_ms, beat.topic_partitions = 60_000, []
    ids = [answer_when(client, beat, 1, lambda answer: not answer.error_code).member_id]
    join = make("JoinGroup", group_id="g", protocol_type="consumer")
    join.protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription("t"))]
    join.session_timeout_ms = join.rebalance_timeout_ms = 60_000
    for _ in range(2):
        join.member_id = ""
        join.member_id = client.request(join, 5).member_id
        assert client.request(join, 5).error_code == 0
        ids.append(join.member_id)
    return ids


def type_of(client: Connection) -> tuple[str, str]:
    """The type and the state of the group."""
    (group,) = client.request(make("ListGroups"), 5).groups
    return group.group_type, group.group_state


def test_who_has_left_before_a_full_disk_is_gone_and_the_others_have_its_error(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(k13_leave_group, "MEMBERS_PER_STEP", 1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        modern, *classic = mixed(client, broker)
        leave = make("LeaveGroup", group_id="g", members=[{"member_id": each} for each in (*classic, modern)])
        (steps,) = begin(broker, leave, 5, 4)  # of which three find out who is to leave last
        broker.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
        answer = end(broker, steps)
        broker.faults.disarm()
        assert answer.error_code == 0
        assert [(each.member_id, each.error_code) for each in answer.members] == [
            (classic[0], E.NONE),
            (classic[1], E.NOT_COORDINATOR),
            (modern, E.NOT_COORDINATOR),
        ]
        (group,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 1).groups
        assert {each.member_id for each in group.members} == {classic[1], modern}
        broker.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
        refused = client.request(leave, 5)
        leave.members.pop(0)
        assert client.request(leave, 5).error_code == E.NOT_COORDINATOR, "the first to leave fails: nobody has left"
        broker.faults.disarm()
        assert [each.error_code for each in refused.members] == [E.UNKNOWN_MEMBER_ID] + 2 * [E.NOT_COORDINATOR]


def test_members_who_have_left_before_memory_ended_are_told_so(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k13_leave_group, "MEMBERS_PER_STEP", 1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        modern, *classic = mixed(client, broker)
        leave = make("LeaveGroup", group_id="g", members=[{"member_id": each} for each in (*classic, modern)])
        (steps,) = begin(broker, leave, 5, 4)

        with monkeypatch.context() as patch:
            patch.setattr(type(broker.state.groups.classic), "leave_group", no_memory_left)
            answer = end(broker, steps)
        assert [each.error_code for each in answer.members] == [E.NONE] + 2 * [E.UNKNOWN_SERVER_ERROR]
        (group,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 1).groups
        assert {each.member_id for each in group.members} == {classic[1], modern}


@pytest.mark.parametrize("all_leave", [True, False])
def test_a_group_is_not_converted_for_classic_members_that_are_about_to_leave(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, all_leave: bool
) -> None:
    monkeypatch.setattr(k13_leave_group, "MEMBERS_PER_STEP", 1)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        ids = mixed(client, broker)
        if not all_leave:
            ids.pop()
        answer = client.request(make("LeaveGroup", group_id="g", members=[{"member_id": each} for each in ids]), 5)
        assert [(each.member_id, each.error_code) for each in answer.members] == [(each, E.NONE) for each in ids]
        assert type_of(client) == (("consumer", "Empty") if all_leave else ("classic", "PreparingRebalance"))


def test_who_is_named_again_is_told_what_it_was_told_first(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where all leave a consumer group at once: its members are looked up before any has left."""
    monkeypatch.setattr(k13_leave_group, "MEMBERS_PER_STEP", 2)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        ids = ["nobody", *mixed(client, broker)] * 2
        answer = client.request(make("LeaveGroup", group_id="g", members=[{"member_id": each} for each in ids]), 5)
        codes = [E.UNKNOWN_MEMBER_ID, E.NONE, E.NONE, E.NONE] * 2
        assert [(each.member_id, each.error_code) for each in answer.members] == list(zip(ids, codes, strict=True))
        assert type_of(client) == ("consumer", "Empty")


def test_the_error_of_the_group_is_that_of_the_request(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        answer = client.request(make("LeaveGroup", group_id="", members=[{"member_id": "m"}] * MANY), 5)
        assert (answer.error_code, answer.members) == (E.INVALID_GROUP_ID, [])


@pytest.mark.parametrize(
    "name",
    [
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "WriteShareGroupState",
        "DeleteShareGroupState",
        "ReadShareGroupStateSummary",
    ],
)
def test_states_of_share_partitions_are_answered_in_steps(broker: Broker, name: str) -> None:
    request = make(name, group_id="g", topics=SHARE_PARTITIONS)
    (steps,) = begin(broker, request, 0, len(SHARE_PARTITIONS))
    assert len(end(broker, steps).results) == len(SHARE_PARTITIONS)


def test_share_partitions_are_acknowledged_in_steps(broker: Broker) -> None:
    topics(broker, t=1)
    batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
    rows = [
        {"topic_id": each["topic_id"], "partitions": [{"partition_index": 0, "acknowledgement_batches": [batch]}]}
        for each in SHARE_PARTITIONS
    ]
    request = make("ShareAcknowledge", group_id="g", member_id="m", share_session_epoch=1, topics=rows)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        first = make("ShareFetch", group_id="g", member_id="m", share_session_epoch=0)
        assert not client.request(first, 1).error_code
        (steps,) = begin(broker, request, 1, len(rows))
        codes = {each.partitions[0].error_code for each in end(broker, steps).responses}
    assert codes == {E.UNKNOWN_TOPIC_ID}
