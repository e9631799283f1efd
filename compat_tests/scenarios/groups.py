"""Rows C: groups of both protocols and their offsets: each conversation of ``kafka_shim.compat.groups`` is a
scenario, and what their state says after a kill.
"""

from __future__ import annotations

from kafka_shim.compat.groups.conversations import CONVERSATIONS
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.groups.streams_conversations import STREAMS_CONVERSATIONS
from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, ScenarioClient, name_of, warm_up
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import Power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ROWS = {
    "refused_joins": ("C1",),
    "old_versions_join_at_once": ("C1",),
    "one_member_through_its_life": ("C2",),
    "strangers_and_old_generations": ("C2",),
    "requests_in_every_state_of_a_classic_group": ("C2",),
    "two_members_rebalance": ("C3",),
    "a_follower_waits_and_the_leader_rejoins": ("C3",),
    "the_protocol_is_voted_for": ("C4",),
    "static_members_come_back": ("C5", "D16"),
    "offsets_without_a_group": ("C6", "C7"),
    "offsets_of_a_group": ("C7", "C6"),
    "offsets_of_a_group_of_another_kind": ("C7",),
    "hostile_metadata": ("C8", "D13"),
    "refused_heartbeats": ("C9",),
    "a_modern_member_through_its_life": ("C10",),
    "requests_in_every_state_of_a_consumer_group": ("C10",),
    "a_second_modern_member_gets_its_share": ("C11",),
    "modern_static_members": ("C12", "D16"),
    "modern_subscriptions_by_expression": ("C13",),
    "a_classic_group_is_upgraded_and_goes_back": ("C14",),
    "classic_joins_what_is_left_of_a_modern_group": ("C14",),
    "offsets_in_a_transaction": ("C15", "B8", "B16"),
    "refused_streams_heartbeats": ("C20",),
    "a_streams_member_through_its_life": ("C20", "C7"),
    "a_second_streams_member_gets_its_share": ("C21",),
    "topics_that_do_not_fit_a_topology": ("C22",),
    "an_empty_group_changes_between_classic_and_streams": ("C20",),
    "the_first_target_waits_for_members": ("C21",),
}


def _register(name: str, conversation: Callable[[Script], None]) -> None:
    def run(t: ScenarioClient) -> None:
        warm_up(t.target)
        script = Script(t.target.bootstrap, t.nonce)
        try:
            conversation(script)
        finally:
            script.close()
            t.steps += [(what, "", answer) for what, answer in script.said]

    run.__name__ = name
    run.__doc__ = conversation.__doc__ or f"{name.replace('_', ' ').capitalize()}."
    scenario(*ROWS[name])(run)


for _name, _conversation in {**CONVERSATIONS, **STREAMS_CONVERSATIONS}.items():
    _register(_name, _conversation)


@scenario("C16", needs=Power.KILL, is_smoke=False)
def offsets_come_back_after_a_kill(t: ScenarioClient) -> None:
    """Committed offsets, with their metadata, are back after a kill; so is the group, Empty."""
    topic, group = t.topic(partitions=2), t.name("g")
    warm_up(t.target)
    rows = [{"partition_index": at, "committed_offset": at + 5, "committed_metadata": f"m{at}"} for at in range(2)]
    fields = {"generation_id_or_member_epoch": -1, "topics": [{"name": topic, "partitions": rows}]}
    answer = t.ask("OffsetCommit", 9, group_id=group, **fields)
    t.same([name_of(part.error_code) for part in answer.topics[0].partitions], [NONE, NONE], "errors")
    asked: dict[str, Any] = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 1]}]}
    for kill in (True, False):
        t.restart(kill=kill)
        answer = t.ask("OffsetFetch", 9, groups=[asked])
        found = [(part.committed_offset, part.metadata) for part in answer.groups[0].topics[0].partitions]
        t.same(found, [(5, "m0"), (6, "m1")], "offsets")
        t.ask("DescribeGroups", 5, groups=[group])


@scenario("C23", spoils=True)
def without_its_topic_no_group_has_a_coordinator(t: ScenarioClient) -> None:
    """Once `__consumer_offsets` is deleted, requests about groups are NOT_COORDINATOR until the next look-up makes the
    topic; then the old groups are gone."""
    warm_up(t.target)
    topic, group = t.topic(), t.name("g")
    _answers_of_groups(t, topic, group, serving=True)
    t.error(t.quietly("DeleteTopics", 6, topics=[{"name": "__consumer_offsets"}], timeout_ms=10_000).responses[0], NONE)
    t.ask_until(lambda told: told.error_code == ErrorCode.NOT_COORDINATOR, "Heartbeat", 4, **_beat(group))
    _answers_of_groups(t, topic, group, serving=False)
    warm_up(t.target)
    t.error(t.ask("DeleteGroups", 2, groups_names=[group]).results[0], "GROUP_ID_NOT_FOUND")
    _answers_of_groups(t, topic, group, serving=True)


def _beat(group: str) -> dict[str, Any]:
    return {"group_id": group, "generation_id": 1, "member_id": "nobody"}


def _answers_of_groups(t: ScenarioClient, topic: str, group: str, *, serving: bool) -> None:
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    commit = {"generation_id_or_member_epoch": -1, "topics": [{"name": topic, "partitions": [partition]}]}
    join = {
        "member_id": "",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    modern = {
        "member_id": "m",
        "member_epoch": 3,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
    }
    for found, wanted in (
        (t.quietly("JoinGroup", 9, group_id=group, **join), "MEMBER_ID_REQUIRED"),
        (t.ask("Heartbeat", 4, **_beat("no-" + group)), "UNKNOWN_MEMBER_ID"),
        (t.ask("ConsumerGroupHeartbeat", 1, group_id="no-" + group, **modern), "GROUP_ID_NOT_FOUND"),
        (t.ask("OffsetCommit", 9, group_id=group, **commit).topics[0].partitions[0], NONE),
        (t.ask("OffsetFetch", 9, groups=[{"group_id": group, "topics": None}]).groups[0], NONE),
        (t.ask("ConsumerGroupDescribe", 1, group_ids=["no-" + group]).groups[0], "GROUP_ID_NOT_FOUND"),
        (t.ask("DeleteGroups", 2, groups_names=["no-" + group]).results[0], "GROUP_ID_NOT_FOUND"),
    ):
        t.error(found, wanted if serving else "NOT_COORDINATOR")
    listed = t.quietly("ListGroups", 5)  # also of groups that scenarios before this one left
    t.error(listed, NONE)
    t.same(group in {one.group_id for one in listed.groups}, serving, "the group is listed")
