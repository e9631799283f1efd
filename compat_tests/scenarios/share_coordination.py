"""Rows C17, C18: share groups, and the states of their partitions in the share coordinator."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import BUSY, NONE, ScenarioClient, name_of, warm_up
from kafka_shim.targets import Power
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Assignments follow at once, so that each heartbeat has one answer.
AT_ONCE = {"group.share.assignment.interval.ms": "0"}


def _ready(t: ScenarioClient, topic: str) -> None:
    """The coordinators answer; Kafka makes their topics when it is first asked for them."""
    warm_up(t.target)
    share = [f"g:{uuid_text(t.topic_id(topic))}:0"]

    def found() -> bool:
        (row,) = t.quietly("FindCoordinator", 6, key_type=2, coordinator_keys=share).coordinators
        return name_of(row.error_code) == NONE

    t.wait(found, "the share coordinator")


def _beat(t: ScenarioClient, group: str, member: str, epoch: int, *topics: str) -> Any:
    return t.ask(
        "ShareGroupHeartbeat",
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=list(topics) or None,
    )


def _offsets(t: ScenarioClient, group: str, partitions: int) -> Any:
    """The start offsets of all partitions, once so many have a state."""
    wanted = [{"group_id": group, "topics": None}]

    def settled(answer: Any) -> bool:
        return sum(len(topic.partitions) for topic in answer.groups[0].topics) == partitions

    return t.ask_until(settled, "DescribeShareGroupOffsets", 1, groups=wanted)


@scenario("C17", settings=AT_ONCE)
def a_share_group_through_its_life(t: ScenarioClient) -> None:
    """Members join, share partitions and leave; the group's offsets are altered and deleted, and it goes."""
    # One partition: which of several a member gets depends on the topic's id.
    topic = t.topic()
    group = t.name("share")
    _ready(t, topic)
    first = _beat(t, group, "a", 0, topic)
    t.error(first, NONE)
    _offsets(t, group, 1)
    first = _beat(t, group, "a", first.member_epoch)
    t.same([sorted(found.partitions) for found in first.assignment.topic_partitions], [[0]], "the assignment")
    second = _beat(t, group, "b", 0, topic)
    _beat(t, group, "a", first.member_epoch)
    _beat(t, group, "c", 0, topic)
    _beat(t, group, "b", second.member_epoch)
    t.error(_beat(t, group, "a", 99), "FENCED_MEMBER_EPOCH")
    t.error(_beat(t, group, "z", 1), "UNKNOWN_MEMBER_ID")
    t.error(_beat(t, t.name("none"), "z", 1), "GROUP_ID_NOT_FOUND")
    t.ask("ShareGroupDescribe", 1, group_ids=[group])
    t.error(t.ask("DeleteGroups", 2, groups_names=[group]).results[0], "NON_EMPTY_GROUP")
    start = [{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 7}]}]
    t.error(t.ask("AlterShareGroupOffsets", 0, group_id=group, topics=start), "NON_EMPTY_GROUP")
    for member in ("a", "b", "c"):
        t.error(_beat(t, group, member, -1), NONE)
    joined = t.ask(
        "JoinGroup",
        9,
        group_id=group,
        member_id="",
        protocol_type="consumer",
        session_timeout_ms=10_000,
        protocols=[{"name": "range", "metadata": b""}],
    )
    t.error(joined, "INCONSISTENT_GROUP_PROTOCOL", "the id is a share group's for ever")
    t.error(t.ask("AlterShareGroupOffsets", 0, group_id=group, topics=start), NONE)
    found = _offsets(t, group, 1).groups[0].topics[0].partitions
    t.same([part.start_offset for part in found], [7], "start offsets")
    t.error(t.ask("DeleteShareGroupOffsets", 0, group_id=group, topics=[{"topic_name": topic}]), NONE)
    t.same(_offsets(t, group, 0).groups[0].topics, [], "what is left")
    t.error(t.ask("DeleteGroups", 2, groups_names=[group]).results[0], NONE)
    t.ask("ShareGroupDescribe", 1, group_ids=[group])


@scenario("C18", "C17", needs=Power.KILL, is_smoke=False, settings=AT_ONCE)
def states_of_share_partitions_come_back(t: ScenarioClient) -> None:
    """What was written of a share partition is merged, fenced by epochs, and back after a kill; so is the member."""
    topic = t.topic()
    group = t.name("share")
    topic_id = t.topic_id(topic)
    _ready(t, topic)
    epoch = _beat(t, group, "a", 0, topic).member_epoch
    _offsets(t, group, 1)
    epoch = _beat(t, group, "a", epoch).member_epoch

    def ask(api: str, version: int, **fields: Any) -> Any:
        partitions = [{"partition": 0, **fields}]
        answer = t.ask_until(
            lambda answer: name_of(answer.results[0].partitions[0].error_code) not in BUSY,
            api,
            version,
            group_id=group,
            topics=[{"topic_id": topic_id, "partitions": partitions}],
        )
        return answer.results[0].partitions[0]

    def write(start: int, *batches: tuple[int, int, int, int], **fields: int) -> str:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        states = [dict(zip(names, batch, strict=True)) for batch in batches]
        epochs = {"state_epoch": 2, "leader_epoch": 5, **fields}
        answer = ask(
            "WriteShareGroupState", 1, start_offset=start, delivery_complete_count=3, state_batches=states, **epochs
        )
        return name_of(answer.error_code)

    t.error(ask("ReadShareGroupState", 0, leader_epoch=5), NONE)
    t.same(write(10, (10, 19, 0, 1), (30, 39, 2, 1)), NONE, "error")
    t.same(write(-1, (15, 24, 2, 2), (30, 30, 4, 1)), NONE, "error")
    t.same(write(-1, leader_epoch=4), "FENCED_LEADER_EPOCH", "error")
    t.same(write(-1, state_epoch=1), "FENCED_STATE_EPOCH", "error")
    wanted = [(10, 14, 0, 1), (15, 24, 2, 2), (30, 30, 4, 1), (31, 39, 2, 1)]
    for kill in (True, False):
        t.restart(kill=kill)
        _ready(t, topic)
        state = ask("ReadShareGroupState", 0, leader_epoch=5)
        found = [
            (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in state.state_batches
        ]
        t.same((state.start_offset, found), (10, wanted), "the state")
        t.same(write(-1, leader_epoch=4), "FENCED_LEADER_EPOCH", "error")
        ask("ReadShareGroupStateSummary", 1, leader_epoch=5)
        t.error(_beat(t, group, "a", epoch), NONE)
