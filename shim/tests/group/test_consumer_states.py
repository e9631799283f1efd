"""The consumer protocol (KIP-848): every request in every state, and what time does to each, under a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from kafka_shim.tests.group.harness import REBALANCE_MS, Later, Node, documented, subscription

E = ErrorCode
STATES = ["Empty", "Assigning", "Reconciling", "Stable"]
SESSION_MS = 45_000
TOPIC = "four"


class Scene:
    """A group "g" brought into a state; "a" with its epoch is, or was, a member of it."""

    def __init__(self, node: Node, state: str) -> None:
        self.node = node
        self.topic_id = node.topic(TOPIC, 4)
        self.join("a")
        self.epoch = 2
        if state == "Empty":
            node.modern("g", "a", -1)
        else:
            node.advance(1000)
            self.join("b")  # a has to give up two partitions
            if state != "Reconciling":
                self.settle()
            if state == "Assigning":
                self.join("c")  # too soon after b for a new assignment
        assert node.state("g") == state

    def join(self, member_id: str) -> Any:
        return self.node.modern("g", member_id, subscribed_topic_names=[TOPIC])

    def settle(self) -> None:
        node = self.node
        keeps = node.modern("g", "a", 2).assignment.topic_partitions
        self.epoch = node.modern("g", "a", 2, topic_partitions=keeps).member_epoch
        node.modern("g", "b", 3)

    def classic(self, member_id: str) -> Any:
        """What a classic member would have been told when it joined."""

        class Joined:
            generation_id = self.epoch
            protocol_type = "consumer"
            protocol_name = "range"

        Joined.member_id = member_id  # type: ignore[attr-defined]
        return Joined


def _fetch(scene: Scene, member_id: str | None, epoch: int) -> Any:
    request = OffsetFetchRequestGroup(group_id="g", topics=None, member_id=member_id, member_epoch=epoch)
    return scene.node.call(scene.node.groups.offsets.fetch, request, False)


def _delete_offset(scene: Scene) -> int:
    part = OffsetDeleteRequestPartition(partition_index=0)
    request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name=TOPIC, partitions=[part])])
    answer = scene.node.call(scene.node.groups.offsets.delete, request)
    return int(answer.topics[0].partitions[0].error_code)


def _delete(scene: Scene) -> int:
    scene.node.delete_group("g")
    return 0


REQUESTS: dict[str, Callable[[Scene], Any]] = {
    "join": lambda scene: scene.join("new"),
    "join again": lambda scene: scene.join("a"),
    "stay": lambda scene: scene.node.modern("g", "a", scene.epoch),
    "stay ahead": lambda scene: scene.node.modern("g", "a", scene.epoch + 1),
    "stay behind": lambda scene: scene.node.modern("g", "a", scene.epoch - 1),
    "stay as a stranger": lambda scene: scene.node.modern("g", "stranger", scene.epoch),
    "stay by an unknown instance": lambda scene: scene.node.modern("g", "a", scene.epoch, instance_id="i"),
    "leave": lambda scene: scene.node.modern("g", "a", -1),
    "leave as a stranger": lambda scene: scene.node.modern("g", "stranger", -1),
    "leave for now without an instance": lambda scene: scene.node.modern("g", "a", -2),
    "an unknown assignor": lambda scene: scene.node.modern("g", "a", scene.epoch, server_assignor="mine"),
    "a bad expression": lambda scene: scene.node.modern("g", "a", scene.epoch, subscribed_topic_regex="("),
    "commit": lambda scene: scene.node.commit("g", TOPIC, 1, "a", scene.epoch),
    "commit ahead": lambda scene: scene.node.commit("g", TOPIC, 1, "a", scene.epoch + 1),
    "commit without a group": lambda scene: scene.node.commit("g", TOPIC, 1),
    "commit as a stranger": lambda scene: scene.node.commit("g", TOPIC, 1, "stranger", scene.epoch),
    "commit by an old version": lambda scene: scene.node.commit("g", TOPIC, 1, "a", scene.epoch, version=8),
    "fetch": lambda scene: _fetch(scene, "a", scene.epoch),
    "fetch ahead": lambda scene: _fetch(scene, "a", scene.epoch + 1),
    "fetch as a stranger": lambda scene: _fetch(scene, "stranger", scene.epoch),
    "fetch without a member": lambda scene: _fetch(scene, None, -1),
    "classic join": lambda scene: scene.node.join("g", protocols=(("range", subscription(TOPIC)),)),
    "classic join of another type": lambda scene: scene.node.join("g", protocol_type=""),
    "classic join as a stranger": lambda scene: scene.node.join("g", "stranger", group_instance_id="i"),
    "classic sync": lambda scene: scene.node.sync("g", scene.classic("a")),
    "classic heartbeat": lambda scene: scene.node.beat("g", scene.classic("a")),
    "classic leave": lambda scene: scene.node.leave("g", "a").members[0].error_code,
    "delete offsets": _delete_offset,
    "delete": _delete,
}

UNKNOWN = [E.UNKNOWN_MEMBER_ID]
TABLE = {
    # request: the code in each of STATES
    "join": [E.NONE] * 4,
    "join again": [E.NONE] * 4,
    "stay": UNKNOWN + [E.NONE] * 3,
    "stay ahead": UNKNOWN + [E.FENCED_MEMBER_EPOCH] * 3,
    "stay behind": UNKNOWN + [E.FENCED_MEMBER_EPOCH] * 3,
    "stay as a stranger": UNKNOWN * 4,
    "stay by an unknown instance": UNKNOWN * 4,
    "leave": UNKNOWN + [E.NONE] * 3,
    "leave as a stranger": UNKNOWN * 4,
    "leave for now without an instance": [E.INVALID_REQUEST] * 4,
    "an unknown assignor": [E.UNSUPPORTED_ASSIGNOR] * 4,
    "a bad expression": UNKNOWN + [E.INVALID_REGULAR_EXPRESSION] * 3,
    "commit": UNKNOWN + [E.NONE] * 3,
    "commit ahead": UNKNOWN + [E.STALE_MEMBER_EPOCH] * 3,
    "commit without a group": [E.NONE] + UNKNOWN * 3,
    "commit as a stranger": UNKNOWN * 4,
    "commit by an old version": UNKNOWN + [E.UNSUPPORTED_VERSION] * 3,
    "fetch": UNKNOWN + [E.NONE] * 3,
    "fetch ahead": UNKNOWN + [E.STALE_MEMBER_EPOCH] * 3,
    "fetch as a stranger": UNKNOWN * 4,
    "fetch without a member": [E.NONE] * 4,
    "classic join": [E.MEMBER_ID_REQUIRED] * 4,
    "classic join of another type": [E.INCONSISTENT_GROUP_PROTOCOL] * 4,
    "classic join as a stranger": UNKNOWN * 4,
    "classic sync": UNKNOWN * 4,
    "classic heartbeat": UNKNOWN * 4,
    "classic leave": UNKNOWN + [E.NONE] * 3,
    "delete offsets": [E.NONE] + [E.GROUP_SUBSCRIBED_TO_TOPIC] * 3,
    "delete": [E.NONE] + [E.NON_EMPTY_GROUP] * 3,
}


def code_of(answer: Any) -> ErrorCode:
    assert not isinstance(answer, Later), "nothing waits in a consumer group"
    return ErrorCode(answer if isinstance(answer, int) else answer.error_code)


def test_the_table_names_every_request() -> None:
    assert TABLE.keys() == REQUESTS.keys()


@pytest.mark.parametrize(
    ("request_name", "state", "expected"),
    [(name, state, code) for name, row in TABLE.items() for state, code in zip(STATES, row, strict=True)],
)
def test_every_request_in_every_state(node: Node, request_name: str, state: str, expected: ErrorCode) -> None:
    scene = Scene(node, state)
    try:
        code = code_of(REQUESTS[request_name](scene))
    except KafkaError as error:
        code = error.code
    assert code is expected


def test_the_documented_table_is_this_one() -> None:
    told = {name: [code.name for code in row] for name, row in TABLE.items()}
    assert documented("consumer") == {"request": STATES, **told}


# --- time


@pytest.mark.parametrize("state", STATES)
def test_in_every_state_silence_ends_the_members(node: Node, state: str) -> None:
    scene = Scene(node, state)
    node.advance(SESSION_MS)
    assert node.state("g") == "Empty"
    group = node.groups.find("g")
    assert (group.members, group.target, group.owners, group.topic_counts) == ({}, {}, {}, {})
    assert len(node.timers) == 0
    assert scene.join("again").error_code == 0


@pytest.mark.parametrize("state", STATES)
def test_in_every_state_the_survivor_gets_all_and_is_stable_one_heartbeat_later(node: Node, state: str) -> None:
    scene = Scene(node, state)
    members = node.groups.find("g").members
    survivor = "b" if "b" in members else "a"
    epoch = members[survivor].member_epoch if survivor in members else 0
    owned = {scene.topic_id: set(members[survivor].assigned.get(scene.topic_id, ()))} if epoch else {}
    if epoch == 0:
        epoch = scene.join(survivor).member_epoch
    for _ in range(SESSION_MS // 5000):
        answer = node.modern("g", survivor, epoch, topic_partitions=owned)
        epoch = answer.member_epoch
        if answer.assignment is not None:
            owned = {bytes(each.topic_id): each.partitions for each in answer.assignment.topic_partitions}
        node.advance(5000)
    assert set(node.groups.find("g").members) == {survivor}
    node.modern("g", survivor, epoch)
    assert node.state("g") == "Stable"
    assert node.groups.find("g").members[survivor].assigned.keys() == {scene.topic_id}
    assert len(node.groups.find("g").members[survivor].assigned[scene.topic_id]) == 4


def test_who_has_to_revoke_has_its_rebalance_timeout_for_it(node: Node) -> None:
    scene = Scene(node, "Reconciling")
    node.modern("g", "a", scene.epoch)  # it is told
    node.advance(REBALANCE_MS - 1)
    assert set(node.groups.find("g").members) == {"a", "b"}
    node.advance(1)
    assert set(node.groups.find("g").members) == {"b"}


@pytest.mark.parametrize("state", ["Assigning", "Reconciling", "Stable"])
def test_a_crash_loses_no_member_and_no_time_begins_before_it(node: Node, state: str) -> None:
    Scene(node, state)
    before = {name: member.assigned for name, member in node.groups.find("g").members.items()}
    node.crash()
    assert {name: member.assigned for name, member in node.groups.find("g").members.items()} == before
    node.advance(SESSION_MS - 1)
    assert node.groups.find("g").members.keys() == before.keys()
    node.advance(1)
    assert node.state("g") == "Empty"
