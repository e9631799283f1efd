"""Conversations about groups, good and bad: held with the shim and with Apache Kafka, they must read the same."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.targets.requests import protocols, subscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.compat.groups.script import Script

CONVERSATIONS: dict[str, Callable[[Script], None]] = {}

# No conversation waits for their end. Apache Kafka on a busy machine takes seconds for one step of it.
SESSION_MS, REBALANCE_MS = 300_000, 300_000


def conversation(function: Callable[[Script], None]) -> Callable[[Script], None]:
    CONVERSATIONS[function.__name__] = function
    return function


# --- the classic protocol


def join_fields(group: str, member_id: str = "", **more: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": protocols("range", metadata=subscription("t")),
        **more,
    }


def first_member(script: Script, group: str, version: int = 9, **more: Any) -> Any:
    """Joins a group with a single member and returns the JoinGroup response."""
    given = script.ask("JoinGroup", version, **join_fields(group, **more))
    if given.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        given = script.ask("JoinGroup", version, **join_fields(group, given.member_id, **more))
    return given


def sync_fields(group: str, joined: Any, assignments: dict[str, bytes] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol_name,
        "assignments": [
            {"member_id": member_id, "assignment": given} for member_id, given in (assignments or {}).items()
        ],
        **more,
    }


def beat(script: Script, group: str, joined: Any, **more: Any) -> Any:
    fields = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id, **more}
    return script.ask("Heartbeat", 4, **fields)


def stable(script: Script, name: str) -> tuple[str, Any]:
    group = script.group(name)
    joined = first_member(script, group)
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b"all"}))
    return group, joined


@conversation
def refused_joins(script: Script) -> None:
    group = script.group("refused")
    changes: dict[str, Any]
    for changes in (
        {"group_id": ""},
        {"session_timeout_ms": 100},
        {"session_timeout_ms": 2**31 - 1},
        {"protocols": []},
        {"protocol_type": ""},
        {"member_id": "nobody"},
        {"member_id": "nobody", "group_instance_id": "i"},
    ):
        for version in (5, 7, 9):
            script.ask("JoinGroup", version, **{**join_fields(group), **changes})
    script.ask("DescribeGroups", 6, groups=[group])


@conversation
def old_versions_join_at_once(script: Script) -> None:
    for version in (0, 1, 2, 3):
        group = script.group(f"old-{version}")
        fields = join_fields(group)
        if version == 0:
            del fields["rebalance_timeout_ms"]
        joined = script.ask("JoinGroup", version, **fields)
        script.ask("Heartbeat", version, group_id=group, generation_id=1, member_id=joined.member_id)
        script.ask("LeaveGroup", min(version, 2), group_id=group, member_id=joined.member_id)
        script.ask("LeaveGroup", min(version, 2), group_id=group, member_id=joined.member_id)


@conversation
def one_member_through_its_life(script: Script) -> None:
    group = script.group("life")
    required = script.ask("JoinGroup", 9, **join_fields(group))
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("ListGroups", 5, states_filter=["Empty"], types_filter=["classic"]).groups.clear()
    script.said.pop()  # other conversations' groups are in it
    joined = script.ask("JoinGroup", 9, **join_fields(group, required.member_id))
    script.ask("DescribeGroups", 6, groups=[group])
    beat(script, group, joined)
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, script.topic("life")))
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b"mine", "other": b"not"}))
    script.ask("SyncGroup", 5, **sync_fields(group, joined))
    beat(script, group, joined)
    script.ask("DescribeGroups", 6, groups=[group], include_authorized_operations=True)
    script.ask("DeleteGroups", 2, groups_names=[group, "no such group", ""])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": joined.member_id, "reason": "done"}])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": joined.member_id}])
    script.ask("DescribeGroups", 5, groups=[group])
    script.ask("DeleteGroups", 2, groups_names=[group])
    script.ask("DescribeGroups", 5, groups=[group])
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": joined.member_id}])


@conversation
def strangers_and_old_generations(script: Script) -> None:
    group, joined = stable(script, "strangers")
    changes: dict[str, Any]
    for changes in (
        {"member_id": "stranger"},
        {"generation_id": 7},
        {"generation_id": -1},
        {"group_instance_id": "unknown"},
        {"group_id": "no such group"},
        {"group_id": ""},
    ):
        beat(script, group, joined, **changes)
        script.ask("SyncGroup", 5, **{**sync_fields(group, joined), **changes})
    script.ask("SyncGroup", 5, **sync_fields(group, joined, protocol_name="sticky"))
    script.ask("SyncGroup", 5, **sync_fields(group, joined, protocol_type="connect"))
    script.ask("SyncGroup", 5, **sync_fields(group, joined, protocol_type=None))
    script.ask("SyncGroup", 4, **{k: v for k, v in sync_fields(group, joined).items() if not k.startswith("protocol")})
    script.ask("JoinGroup", 9, **join_fields(group, joined.member_id, protocols=protocols("other")))
    script.ask("JoinGroup", 9, **join_fields(group, protocol_type="connect"))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "stranger"}, {"member_id": ""}])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "", "group_instance_id": "i"}])
    script.ask("LeaveGroup", 5, group_id="", members=[{"member_id": "x"}])
    beat(script, group, joined)


@conversation
def two_members_rebalance(script: Script) -> None:
    group, leader = stable(script, "two")
    second = script.ask("JoinGroup", 9, **join_fields(group))
    parked = script.park("JoinGroup", 9, **join_fields(group, second.member_id))
    assert parked.is_waiting
    beat(script, group, leader)
    script.ask("SyncGroup", 5, **sync_fields(group, leader))
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("OffsetCommit", 9, **commit_fields(group, leader, script.topic("two")))
    led = script.ask("JoinGroup", 9, **join_fields(group, leader.member_id))
    followed = parked.answer()
    waits = script.park("SyncGroup", 5, **sync_fields(group, followed))
    assert waits.is_waiting
    beat(script, group, followed)
    script.ask("JoinGroup", 9, **join_fields(group, followed.member_id))  # the same metadata: the same generation
    script.ask("SyncGroup", 5, **sync_fields(group, led, {led.member_id: b"a", followed.member_id: b"b"}))
    waits.answer()
    script.ask("JoinGroup", 9, **join_fields(group, followed.member_id))  # a follower again: nothing moves
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": led.member_id}])
    beat(script, group, followed)
    alone = script.ask("JoinGroup", 9, **join_fields(group, followed.member_id))
    script.ask("SyncGroup", 5, **sync_fields(group, alone, {alone.member_id: b"c"}))


@conversation
def a_follower_waits_and_the_leader_rejoins(script: Script) -> None:
    group, leader = stable(script, "impatient")
    second = script.ask("JoinGroup", 9, **join_fields(group))
    parked = script.park("JoinGroup", 9, **join_fields(group, second.member_id))
    assert parked.is_waiting
    led = script.ask("JoinGroup", 9, **join_fields(group, leader.member_id))
    followed = parked.answer()
    waits = script.park("SyncGroup", 5, **sync_fields(group, followed))
    assert waits.is_waiting
    changed = protocols("range", metadata=subscription("other"))
    again = script.park("JoinGroup", 9, **join_fields(group, led.member_id, protocols=changed))
    waits.answer()
    assert again.is_waiting
    script.ask("JoinGroup", 9, **join_fields(group, followed.member_id))
    again.answer()


@conversation
def the_protocol_is_voted_for(script: Script) -> None:
    group = script.group("vote")
    both = protocols("range", "sticky", metadata=subscription("t"))
    first = first_member(script, group, protocols=both)
    script.ask("SyncGroup", 5, **sync_fields(group, first, {first.member_id: b""}))
    preferred = protocols("sticky", "range", metadata=subscription("t"))
    required = script.ask("JoinGroup", 9, **join_fields(group, protocols=preferred))
    second = script.park("JoinGroup", 9, **join_fields(group, required.member_id, protocols=preferred))
    assert second.is_waiting
    script.ask("JoinGroup", 9, **join_fields(group, first.member_id, protocols=both))
    second.answer()
    script.ask("JoinGroup", 9, **join_fields(group, protocols=protocols("roundrobin")))


@conversation
def static_members_come_back(script: Script) -> None:
    group = script.group("static")
    mine: dict[str, Any] = {"group_instance_id": "one"}
    first = script.ask("JoinGroup", 9, **join_fields(group, **mine))
    script.ask("SyncGroup", 5, **sync_fields(group, first, {first.member_id: b"kept"}, **mine))
    back = script.ask("JoinGroup", 9, **join_fields(group, **mine))
    script.ask("DescribeGroups", 6, groups=[group])
    beat(script, group, first, **mine)
    script.ask("SyncGroup", 5, **sync_fields(group, first, **mine))
    script.ask("JoinGroup", 9, **join_fields(group, first.member_id, **mine))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": first.member_id, **mine}])
    script.ask("SyncGroup", 5, **sync_fields(group, back, **mine))
    beat(script, group, back, **mine)
    beat(script, group, back, group_instance_id="two")
    script.ask("OffsetCommit", 9, **commit_fields(group, first, script.topic("static"), **mine))
    script.ask("OffsetCommit", 9, **commit_fields(group, back, script.topic("static"), **mine))
    old = script.ask("JoinGroup", 8, **join_fields(group, **mine))
    script.ask("SyncGroup", 5, **sync_fields(group, old, **mine))
    moved = protocols("roundrobin", "range", metadata=subscription("t"))
    script.ask("JoinGroup", 9, **join_fields(group, protocols=moved, **mine))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "", **mine}, {"member_id": "", **mine}])
    script.ask("DescribeGroups", 6, groups=[group])


@conversation
def requests_in_every_state_of_a_classic_group(script: Script) -> None:
    topic = script.topic("classic-states")
    for state in ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance"):
        group, me = stable(script, f"in-{state}")
        parked = None
        if state == "Empty":
            script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": me.member_id}])
        elif state != "Stable":
            second = script.ask("JoinGroup", 9, **join_fields(group))
            parked = script.park("JoinGroup", 9, **join_fields(group, second.member_id))
            assert parked.is_waiting
            if state == "CompletingRebalance":
                me = script.ask("JoinGroup", 9, **join_fields(group, me.member_id))
                parked.answer()
                parked = None
        script.ask("DescribeGroups", 6, groups=[group])
        for changes in ({}, {"generation_id": 7}, {"member_id": "stranger"}, {"group_instance_id": "i"}):
            beat(script, group, me, **changes)
            if state != "CompletingRebalance" or changes:  # there it would wait, or assign
                script.ask("SyncGroup", 5, **{**sync_fields(group, me), **changes})
        for changes in ({}, {"generation_id_or_member_epoch": 7}, {"member_id": "stranger"}):
            script.ask("OffsetCommit", 9, **commit_fields(group, me, topic, **changes))
        script.ask("OffsetCommit", 9, **commit_fields(group, None, topic))
        script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "stranger"}])
        script.ask("JoinGroup", 9, **join_fields(group, "stranger"))
        script.ask("JoinGroup", 9, **join_fields(group, protocols=protocols("other")))
        script.ask("ConsumerGroupHeartbeat", 1, group_id=group, member_id=me.member_id, member_epoch=1)
        script.ask("OffsetDelete", 0, **delete_fields(group, "no such topic", 0))
        if state != "Empty":
            script.ask("DeleteGroups", 2, groups_names=[group])
        if parked is not None:
            script.ask("JoinGroup", 9, **join_fields(group, me.member_id))
            parked.answer()
        script.ask("JoinGroup", 9, **join_fields(group))
        script.ask("DeleteGroups", 2, groups_names=[group])


# --- offsets


def commit_fields(group: str, member: Any, topic: str, offset: int = 5, **more: Any) -> dict[str, Any]:
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1 if member is None else member.generation_id,
        "member_id": "" if member is None else member.member_id,
        "topics": [
            {
                "name": topic,
                "partitions": [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}],
            }
        ],
    }
    return {**fields, **more}


def fetch_all(script: Script, group: str, version: int, **more: Any) -> Any:
    if version < 8:
        return script.ask("OffsetFetch", version, group_id=group, topics=None, **more)
    return script.ask("OffsetFetch", version, groups=[{"group_id": group, "topics": None}], **more)


@conversation
def offsets_without_a_group(script: Script) -> None:
    group, topic = script.group("simple"), script.topic("simple", 3)
    topic_id = script.topic_id(topic)
    for version in (2, 5, 6, 7, 8, 9):
        script.ask("OffsetCommit", version, **commit_fields(group, None, topic, version))
    entry = {"topic_id": topic_id, "partitions": [{"partition_index": 1, "committed_offset": 9}]}
    script.ask(
        "OffsetCommit", 10, **commit_fields(group, None, topic, topics=[entry, {**entry, "topic_id": b"x" * 16}])
    )
    many = [
        {
            "name": name,
            "partitions": [
                {"partition_index": 0, "committed_offset": 3, "committed_metadata": "x" * 4097},
                {"partition_index": 7, "committed_offset": 3},
                {"partition_index": 2, "committed_offset": 3, "committed_metadata": None},
            ],
        }
        for name in (topic, "no such topic")
    ]
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic, topics=many))
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic, member_id="somebody"))
    for version in (8, 9):
        script.ask("OffsetCommit", version, **commit_fields("none", None, topic, generation_id_or_member_epoch=3))
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic, generation_id_or_member_epoch=3))
    asked = [{"name": topic, "partition_indexes": [0, 1, 2, 9]}, {"name": "no such topic", "partition_indexes": [0]}]
    for version in range(1, 8):
        script.ask("OffsetFetch", version, group_id=group, topics=asked)
    for version in (8, 9):
        script.ask("OffsetFetch", version, groups=[{"group_id": group, "topics": asked}, {"group_id": "none"}])
    by_id = [{"topic_id": each, "partition_indexes": [0, 1]} for each in (topic_id, b"x" * 16, bytes(16))]
    script.ask("OffsetFetch", 10, groups=[{"group_id": group, "topics": by_id}])
    for version in range(2, 11):
        fetch_all(script, group, version)
        fetch_all(script, "none", version)
    script.ask("OffsetFetch", 9, groups=[{"group_id": group, "topics": None, "member_id": "x", "member_epoch": 3}])
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0, 5))
    script.ask("OffsetDelete", 0, **delete_fields(group, "no such topic", 0))
    script.ask("OffsetDelete", 0, **delete_fields("none", topic, 0))
    script.ask("OffsetDelete", 0, **delete_fields("", topic, 0))
    fetch_all(script, group, 9)
    script.ask("DeleteGroups", 2, groups_names=[group])
    fetch_all(script, group, 9)


def delete_fields(group: str, topic: str, *partitions: int) -> dict[str, Any]:
    listed = [{"partition_index": each} for each in partitions]
    return {"group_id": group, "topics": [{"name": topic, "partitions": listed}]}


@conversation
def offsets_of_a_group(script: Script) -> None:
    topic, other = script.topic("t-of-group", 2), script.topic("other-of-group")
    group = script.group("of-group")
    mine: dict[str, Any] = {"protocols": protocols("range", metadata=subscription(topic))}
    joined = first_member(script, group, **mine)
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b""}))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, other))
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic, generation_id_or_member_epoch=9))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic, member_id="stranger"))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic, group_instance_id="i"))
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    script.ask("OffsetDelete", 0, **delete_fields(group, other, 0))
    fetch_all(script, group, 9)
    fetch_all(script, group, 9, require_stable=True)


@conversation
def offsets_of_a_group_of_another_kind(script: Script) -> None:
    topic, group = script.topic("connect"), script.group("connect")
    joined = first_member(script, group, protocol_type="connect", protocols=protocols("default", metadata=b"\xff"))
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b""}))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic))
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    script.ask("DescribeGroups", 6, groups=[group])


@conversation
def hostile_metadata(script: Script) -> None:
    topic, group = script.topic("hostile"), script.group("hostile")
    # A huge count in well-formed bytes would leave Kafka's own join without an answer.
    garbage = protocols("range", metadata=b"\xff")
    joined = first_member(script, group, protocols=garbage)
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b"\xff" * 9}))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic))
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    script.ask("DescribeGroups", 6, groups=[group])
    modern(script, group, member_id="m" * 22)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])


# --- the consumer protocol


def modern(script: Script, group: str, **more: Any) -> Any:
    fields: dict[str, Any] = {
        "group_id": group,
        "member_id": "member-a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["nowhere"],
        "topic_partitions": [],
    }
    return script.ask("ConsumerGroupHeartbeat", 1, **{**fields, **more})


def stay(script: Script, group: str, member_id: str, epoch: int, **more: Any) -> Any:
    fields = {"group_id": group, "member_id": member_id, "member_epoch": epoch, **more}
    return script.ask("ConsumerGroupHeartbeat", 1, **fields)


@conversation
def refused_heartbeats(script: Script) -> None:
    group = script.group("bad-modern")
    for changes in (
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": "  "},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [{"topic_id": b"x" * 16, "partitions": [0]}]},
        {"subscribed_topic_names": None},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": -1},
        {"member_epoch": 5},
        {"server_assignor": "mine"},
        {"subscribed_topic_names": None, "subscribed_topic_regex": "["},
    ):
        modern(script, group, **changes)
    script.ask("ConsumerGroupHeartbeat", 0, group_id=group, member_id="", member_epoch=3)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group, ""])


@conversation
def a_modern_member_through_its_life(script: Script) -> None:
    topic, group = script.topic("modern", 3), script.group("modern")
    topic_id = script.topic_id(topic)
    epoch = modern(script, group, subscribed_topic_names=[topic]).member_epoch
    owned = [{"topic_id": topic_id, "partitions": [0, 1, 2]}]
    stay(script, group, "member-a", epoch)
    stay(script, group, "member-a", epoch, topic_partitions=owned)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group], include_authorized_operations=True)
    stay(script, group, "member-a", epoch + 1)
    stay(script, group, "member-a", epoch - 1)
    stay(script, group, "member-a", 0)
    stay(script, group, "stranger", epoch)
    stay(script, group, "member-a", epoch, instance_id="i")
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("DeleteGroups", 2, groups_names=[group])
    for version in (8, 9):
        fields = commit_fields(group, None, topic, member_id="member-a", generation_id_or_member_epoch=epoch)
        script.ask("OffsetCommit", version, **fields)
    for wrong in (0, epoch - 1, epoch + 1):
        fields = commit_fields(group, None, topic, member_id="member-a", generation_id_or_member_epoch=wrong)
        script.ask("OffsetCommit", 9, **fields)
    fields = commit_fields(group, None, topic, member_id="x", generation_id_or_member_epoch=epoch)
    script.ask("OffsetCommit", 9, **fields)
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic))
    for member_id, at in (("member-a", epoch), ("member-a", epoch + 1), ("x", epoch), (None, -1)):
        script.ask(
            "OffsetFetch",
            9,
            groups=[{"group_id": group, "topics": None, "member_id": member_id, "member_epoch": at}],
        )
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    stay(script, group, "member-a", -1)
    stay(script, group, "member-a", -1)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    script.ask("DeleteGroups", 2, groups_names=[group])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])


# Each target is computed as it is due, however long a broker stands still meanwhile.
AT_ONCE = {"consumer.assignment.interval.ms": "0"}


@conversation
def a_second_modern_member_gets_its_share(script: Script) -> None:
    topic, group = script.topic("share", 4), script.group("share")
    topic_id = script.topic_id(topic)
    for assignor, name in (("uniform", "u"), ("range", "r")):
        each = f"{group}-{name}"
        set_options(script, each, AT_ONCE)
        epoch = modern(script, each, subscribed_topic_names=[topic], server_assignor=assignor).member_epoch
        modern(script, each, subscribed_topic_names=[topic], server_assignor=assignor, member_id="member-b")
        wait_for_assignment(script, each, "member-b", epoch + 1)
        kept = [{"topic_id": topic_id, "partitions": partitions_of(stay(script, each, "member-a", epoch))}]
        stay(script, each, "member-b", epoch + 1)  # nothing is free yet
        script.ask("ConsumerGroupDescribe", 1, group_ids=[each])
        stay(script, each, "member-a", epoch, topic_partitions=kept)
        stay(script, each, "member-b", epoch + 1)
        stay(script, each, "member-a", epoch + 1)
        stay(script, each, "member-a", epoch, topic_partitions=kept)  # its answer was lost
        stay(script, each, "member-a", epoch)
        script.ask("ConsumerGroupDescribe", 1, group_ids=[each])
        stay(script, each, "member-a", -1)
        wait_for_assignment(script, each, "member-b", epoch + 2)
        script.ask("ConsumerGroupDescribe", 1, group_ids=[each])


def set_options(script: Script, group: str, options: dict[str, str]) -> None:
    """Sets options of a group, and waits until it has them."""
    _set_options(script, group, options)
    # Kafka's broker shows options before its groups have them. One change is published after the other: once the next
    # one shows, the groups have this.
    _set_options(script, f"{group}-next", options)


def _set_options(script: Script, group: str, options: dict[str, str]) -> None:
    """Waits until the broker shows them: Kafka's learns of them some time after its controller's answer."""
    rows = [{"name": name, "config_operation": 0, "value": value} for name, value in options.items()]
    answer: Any = script.quietly(
        "IncrementalAlterConfigs",
        1,
        resources=[{"resource_type": 32, "resource_name": group, "configs": rows}],
    )
    assert not answer.responses[0].error_code, answer
    wanted = [{"resource_type": 32, "resource_name": group, "configuration_keys": list(options)}]
    script.until(
        lambda: script.quietly("DescribeConfigs", 4, resources=wanted),
        lambda told: {row.name: row.value for row in told.results[0].configs} == options,
        f"the options of {group} do not appear",
    )


def partitions_of(response: Any) -> list[int]:
    if response.assignment is None:
        return []
    return [number for entry in response.assignment.topic_partitions for number in entry.partitions]


def wait_for_assignment(script: Script, group: str, member_id: str, epoch: int) -> None:
    """Sends heartbeats, without noting them, until the target assignment of this epoch exists. The broker computes it
    at most once a second.
    """

    def asked() -> int:
        found = script.quietly("ConsumerGroupDescribe", 1, group_ids=[group]).groups[0]
        current = next(each.member_epoch for each in found.members if each.member_id == member_id)
        if found.assignment_epoch < epoch:
            script.quietly("ConsumerGroupHeartbeat", 1, group_id=group, member_id=member_id, member_epoch=current)
        return int(found.assignment_epoch)

    script.until(asked, lambda found: found >= epoch, f"{group} has no assignment of epoch {epoch}")


@conversation
def requests_in_every_state_of_a_consumer_group(script: Script) -> None:
    topic = script.topic("modern-states", 4)
    topic_id = script.topic_id(topic)
    for state in ("Empty", "Reconciling", "Stable"):
        group = script.group(f"in-{state}")
        epoch = modern(script, group, subscribed_topic_names=[topic]).member_epoch
        if state == "Empty":
            stay(script, group, "member-a", -1)
        else:
            modern(script, group, subscribed_topic_names=[topic], member_id="member-b")
            wait_for_assignment(script, group, "member-b", epoch + 1)
        if state == "Stable":
            kept = partitions_of(stay(script, group, "member-a", epoch))
            owned = [{"topic_id": topic_id, "partitions": kept}]
            epoch = stay(script, group, "member-a", epoch, topic_partitions=owned).member_epoch
            stay(script, group, "member-b", epoch)
        script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
        _ask_a_consumer_group(script, group, topic, epoch, is_empty=state == "Empty")


def _ask_a_consumer_group(script: Script, group: str, topic: str, epoch: int, is_empty: bool) -> None:
    """Everything that moves nothing, then what does."""
    stay(script, group, "member-a", epoch + 1)
    stay(script, group, "member-a", epoch - 1)
    stay(script, group, "stranger", epoch)
    stay(script, group, "stranger", -1)
    stay(script, group, "member-a", -2)
    stay(script, group, "member-a", epoch, instance_id="i")
    stay(script, group, "member-a", epoch, server_assignor="mine")
    stay(script, group, "member-a", epoch, subscribed_topic_regex="(")
    for member_id, at, version in (
        ("member-a", epoch, 9),
        ("member-a", epoch + 1, 9),
        ("member-a", epoch, 8),
        ("stranger", epoch, 9),
        ("", -1, 9),
    ):
        fields = commit_fields(group, None, topic, member_id=member_id, generation_id_or_member_epoch=at)
        script.ask("OffsetCommit", version, **fields)
    for member, at in (("member-a", epoch), ("member-a", epoch + 1), ("stranger", epoch), (None, -1)):
        asked = {"group_id": group, "topics": None, "member_id": member, "member_epoch": at}
        script.ask("OffsetFetch", 9, groups=[asked])
    who = {"group_id": group, "generation_id": epoch, "member_id": "member-a"}
    script.ask("Heartbeat", 4, **who)
    script.ask("SyncGroup", 5, **who, protocol_type="consumer", protocol_name="range")
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "stranger"}])
    script.ask("DescribeGroups", 6, groups=[group])
    if not is_empty:  # there a classic group comes in place of this one
        mine: dict[str, Any] = {"protocols": protocols("range", metadata=subscription(topic))}
        script.ask("JoinGroup", 9, **join_fields(group, **mine))
        script.ask("JoinGroup", 9, **join_fields(group, protocol_type=""))
        script.ask("JoinGroup", 9, **join_fields(group, "stranger", group_instance_id="i", **mine))
    script.ask("OffsetDelete", 0, **delete_fields(group, topic, 0))
    script.ask("DeleteGroups", 2, groups_names=[group])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "member-a"}])


@conversation
def modern_static_members(script: Script) -> None:
    topic, group = script.topic("mstatic", 2), script.group("mstatic")
    mine = {"instance_id": "one", "subscribed_topic_names": [topic]}
    modern(script, group, **mine)
    modern(script, group, member_id="member-b", **mine)
    stay(script, group, "member-b", 1, instance_id="one")
    stay(script, group, "member-b", -2, instance_id="one")
    stay(script, group, "member-a", -2, instance_id="two")
    stay(script, group, "member-a", -2, instance_id="one")
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    modern(script, group, member_id="member-b", **mine)
    stay(script, group, "member-a", 1, instance_id="one")
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "", "group_instance_id": "one"}])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])


@conversation
def modern_subscriptions_by_expression(script: Script) -> None:
    topic, group = script.topic("regex-a", 2), script.group("regex")
    mine = {"subscribed_topic_names": [], "subscribed_topic_regex": f"regex-.*{script.suffix}"}
    set_options(script, group, AT_ONCE)
    modern(script, group, **mine)
    wait_for_assignment(script, group, "member-a", 2)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    stay(script, group, "member-a", 2, subscribed_topic_regex="", subscribed_topic_names=[topic])
    stay(script, group, "member-a", 2, subscribed_topic_regex="(")


@conversation
def a_classic_group_is_upgraded_and_goes_back(script: Script) -> None:
    topic, group = script.topic("up", 2), script.group("up")
    script.topic_id(topic)
    name = topic.encode()
    both = b"\x00\x01" + b"\x00\x00\x00\x01" + len(name).to_bytes(2, "big") + name
    both += b"\x00\x00\x00\x02" + bytes(4) + b"\x00\x00\x00\x01" + b"\xff\xff\xff\xff"
    mine: dict[str, Any] = {"protocols": protocols("range", metadata=subscription(topic))}
    joined = first_member(script, group, **mine)
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: both}))
    modern(script, group, subscribed_topic_names=[topic])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("DescribeGroups", 6, groups=[group])
    wait_for_assignment(script, group, "member-a", 2)
    beat(script, group, joined)
    script.ask("SyncGroup", 5, **sync_fields(group, joined))
    owned = protocols("range", metadata=subscription(topic, owned={topic: [0, 1]}))
    again = script.ask("JoinGroup", 9, **join_fields(group, joined.member_id, protocols=owned))
    script.ask("SyncGroup", 5, **sync_fields(group, again))
    kept = protocols("range", metadata=subscription(topic, owned={topic: [0]}))
    third = script.ask("JoinGroup", 9, **join_fields(group, joined.member_id, protocols=kept))
    script.ask("SyncGroup", 5, **sync_fields(group, third, protocol_name="range"))
    script.ask("OffsetCommit", 9, **commit_fields(group, third, topic))
    script.ask("OffsetCommit", 9, **commit_fields(group, joined, topic))
    beat(script, group, third)
    beat(script, group, third, generation_id=1)
    beat(script, group, third, member_id="member-a")
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("JoinGroup", 9, **join_fields(group, protocols=protocols("roundrobin", metadata=subscription(topic))))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": "member-a"}])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("DescribeGroups", 6, groups=[group])
    beat(script, group, third)
    alone = script.ask("JoinGroup", 9, **join_fields(group, joined.member_id, protocols=kept))
    script.ask("SyncGroup", 5, **sync_fields(group, alone, {alone.member_id: both}))
    beat(script, group, alone)


@conversation
def classic_joins_what_is_left_of_a_modern_group(script: Script) -> None:
    group = script.group("left")
    modern(script, group)
    stay(script, group, "member-a", -1)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("JoinGroup", 9, **join_fields(group, "stranger"))
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    modern(script, group)  # from the first epoch on
    stay(script, group, "member-a", -1)
    joined = first_member(script, group)
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b""}))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": joined.member_id}])
    modern(script, group)
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])


# --- transactions


@conversation
def offsets_in_a_transaction(script: Script) -> None:
    topic, group = script.topic("txn", 2), script.group("txn")
    topic_id = script.topic_id(topic)
    name = script.group("app")
    script.quietly("FindCoordinator", 4, key_type=1, coordinator_keys=[name])
    made = script.until(
        lambda: script.quietly("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=60_000),
        lambda answer: not answer.error_code,
        "the transaction coordinator does not load",
    )
    who = {"transactional_id": name, "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}

    def commit(version: int, offset: int, **more: Any) -> None:
        entry = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}
        script.ask("TxnOffsetCommit", version, **{**who, "group_id": group, "topics": [entry], **more})

    def read() -> None:
        for version in (7, 8, 9):
            asked = [{"name": topic, "partition_indexes": [0, 1]}]
            for stable in (False, True):
                if version < 8:
                    script.ask("OffsetFetch", version, group_id=group, topics=asked, require_stable=stable)
                else:
                    groups = [{"group_id": group, "topics": asked}]
                    script.ask("OffsetFetch", version, groups=groups, require_stable=stable)
                fetch_all(script, group, version, require_stable=stable)
        by_id = [{"topic_id": topic_id, "partition_indexes": [0, 1]}]
        script.ask("OffsetFetch", 10, groups=[{"group_id": group, "topics": by_id}], require_stable=True)
        fetch_all(script, group, 10, require_stable=True)

    def end(committed: bool) -> None:
        script.ask("EndTxn", 3, **who, committed=committed)
        script.settle(name)

    commit(3, 5)
    commit(4, 5)
    script.ask("AddOffsetsToTxn", 3, **who, group_id=group)
    commit(3, 5, generation_id=4)
    commit(3, 5, generation_id=4, member_id="x")
    commit(3, 5, member_id="x")
    commit(3, 6, topics=[{"name": "no such topic", "partitions": [{"partition_index": 0, "committed_offset": 1}]}])
    commit(3, 7, producer_epoch=made.producer_epoch + 1)
    commit(3, 7, group_id="")
    read()
    script.ask("OffsetCommit", 9, **commit_fields(group, None, topic, 2))
    commit(3, 8)
    read()
    end(True)
    read()
    script.ask("AddOffsetsToTxn", 3, **who, group_id=group)
    commit(3, 20)
    script.ask("DeleteGroups", 2, groups_names=[group])
    end(True)
    read()
    script.ask("AddOffsetsToTxn", 3, **who, group_id=group)
    commit(3, 30)
    end(False)
    read()
