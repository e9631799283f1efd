"""Conversations about streams groups (KIP-1071), good and bad, in the form of those in `conversations`."""

from __future__ import annotations

from kafka_shim.compat.groups.conversations import (
    commit_fields,
    delete_fields,
    first_member,
    join_fields,
    set_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.compat.groups.script import Script

STREAMS_CONVERSATIONS: dict[str, Callable[[Script], None]] = {}


def streams_conversation(function: Callable[[Script], None]) -> Callable[[Script], None]:
    STREAMS_CONVERSATIONS[function.__name__] = function
    return function


COMPACTED = [{"key": "cleanup.policy", "value": "compact"}]


def topology(source: str, internal: str, epoch: int = 0) -> dict[str, Any]:
    """Counts by another key: the first subtopology writes the topic for repartitioning that the second reads and
    keeps state of.
    """
    return {
        "epoch": epoch,
        "subtopologies": [
            {"subtopology_id": "0", "source_topics": [source], "repartition_sink_topics": [f"{internal}-repartition"]},
            {
                "subtopology_id": "1",
                "repartition_source_topics": [{"name": f"{internal}-repartition"}],
                "state_changelog_topics": [{"name": f"{internal}-changelog", "topic_configs": COMPACTED}],
            },
        ],
    }


def stateless(*sources: str, regex: tuple[str, ...] = (), together: bool = False) -> dict[str, Any]:
    """One subtopology of these topics."""
    groups = [{"source_topics": list(range(len(sources)))}] if together else []
    row = {"subtopology_id": "0", "source_topics": list(sources), "source_topic_regex": list(regex)}
    return {"epoch": 0, "subtopologies": [{**row, "copartition_groups": groups}]}


def begin(script: Script, group: str, shape: dict[str, Any] | None, **more: Any) -> Any:
    """A member joins."""
    return script.ask("StreamsGroupHeartbeat", 0, **{**_joining(group, shape), **more})


def stay(script: Script, group: str, member_id: str, epoch: int, **more: Any) -> Any:
    return script.ask("StreamsGroupHeartbeat", 0, **{**_staying(group, epoch), "member_id": member_id, **more})


def _staying(group: str, epoch: int) -> dict[str, Any]:
    return {"group_id": group, "member_id": "member-a", "member_epoch": epoch}


def owning(answer: Any) -> dict[str, Any]:
    """What a member says that does as it was told."""
    return {
        name: [
            {"subtopology_id": each.subtopology_id, "partitions": each.partitions}
            for each in getattr(answer, name) or ()
        ]
        for name in ("active_tasks", "standby_tasks", "warmup_tasks")
    }


def at_once(script: Script, group: str, **more: str) -> str:
    """Sets options of a group: no waiting for other members, and no time between two targets."""
    options = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}
    options.update((name.replace("_", "."), value) for name, value in more.items())
    set_options(script, group, options)
    return group


def wait_for_topics(script: Script, *names: str) -> None:
    """Waits until the broker has these topics: it creates them behind its answer."""
    script.until(
        lambda: script.quietly("Metadata", 12, topics=[{"name": name} for name in names]),
        lambda told: all(not topic.error_code and topic.partitions for topic in told.topics),
        f"{names} do not appear",
    )


def ready(script: Script, group: str, shape: dict[str, Any], *internal: str, **more: Any) -> Any:
    """The first member of a group whose internal topics are there: joins until its target has tasks."""
    begin(script, group, shape, **more)
    wait_for_topics(script, *internal)
    return script.until(
        lambda: script.quietly("StreamsGroupHeartbeat", 0, **{**_joining(group, shape), **more}),
        lambda answer: not answer.status and bool(answer.active_tasks),
        f"{group} does not become ready",
    )


def _joining(group: str, shape: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "group_id": group,
        "member_id": "member-a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "topology": shape,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process-a",
        "client_tags": [],
    }


@streams_conversation
def refused_streams_heartbeats(script: Script) -> None:
    source, group = script.topic("streams-bad"), script.group("streams-bad")
    shape = stateless(source)
    task = [{"subtopology_id": "0", "partitions": [0]}]
    changelog = {"name": f"{group}-log", "partitions": 3}
    changes: dict[str, Any]
    for changes in (
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": "  "},
        {"instance_id": "i"},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"active_tasks": None},
        {"active_tasks": task},
        {"standby_tasks": task},
        {"warmup_tasks": task},
        {"shape": None},
        {"shape": stateless(source, regex=("a.*",))},
        {"shape": stateless("__consumer_offsets")},
        {"shape": stateless("no such name")},
        {"shape": {"epoch": 0, "subtopologies": [{"subtopology_id": "0"}]}},
        {"shape": {"epoch": -1, "subtopologies": []}},
        {"shape": {"subtopologies": [{"subtopology_id": "0", "state_changelog_topics": [changelog]}]}},
        {"shape": {"subtopologies": [shape["subtopologies"][0], shape["subtopologies"][0]]}},
        {"shape": {"subtopologies": [{"subtopology_id": "0", "repartition_source_topics": [{"name": "r"}]}]}},
        {"task_offsets": []},
        {"task_end_offsets": []},
        {"client_tags": [{"key": "k", "value": "1"}, {"key": "k", "value": "2"}]},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"member_epoch": -1},
        {"member_epoch": 5},
        {"member_epoch": 5, "shape": None, "warmup_tasks": None},
    ):
        fields: dict[str, Any] = {"group": group, "shape": shape, **changes}
        begin(script, **fields)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group, ""])


@streams_conversation
def a_streams_member_through_its_life(script: Script) -> None:
    source, group = script.topic("streams", 2), at_once(script, script.group("streams"))
    internal = (f"{group}-repartition", f"{group}-changelog")
    answer = ready(script, group, topology(source, group), *internal)
    epoch = answer.member_epoch
    stay(script, group, "member-a", epoch)
    stay(script, group, "member-a", epoch, **owning(answer))
    script.ask("StreamsGroupDescribe", 0, group_ids=[group], include_authorized_operations=True)
    script.listed(group, types_filter=["streams"], states_filter=["Stable"])
    configs = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": ["cleanup.policy"]} for name in internal
    ]
    script.ask("DescribeConfigs", 4, resources=configs)
    stay(script, group, "member-a", epoch + 1)
    stay(script, group, "member-a", epoch - 1)
    stay(script, group, "member-a", 0)
    stay(script, group, "stranger", epoch)
    stay(script, group, "stranger", -1)
    stay(script, group, "member-a", epoch, active_tasks=[])
    nowhere = [{"subtopology_id": "7", "partitions": [0]}]
    beyond = [{"subtopology_id": "1", "partitions": [2]}]
    for tasks in (nowhere, beyond):
        stay(script, group, "member-a", epoch, active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
    begin(script, group, topology(source, f"{group}-other"))
    begin(script, group, topology(source, group, epoch=1))
    script.ask("DescribeGroups", 6, groups=[group])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[group])
    script.ask("DeleteGroups", 2, groups_names=[group])
    script.ask("JoinGroup", 9, **join_fields(group))
    script.ask("Heartbeat", 4, group_id=group, generation_id=epoch, member_id="member-a")
    for version in (8, 9):
        fields = commit_fields(group, None, source, member_id="member-a", generation_id_or_member_epoch=epoch)
        script.ask("OffsetCommit", version, **fields)
    for wrong in (0, epoch - 1, epoch + 1):
        fields = commit_fields(group, None, source, member_id="member-a", generation_id_or_member_epoch=wrong)
        script.ask("OffsetCommit", 9, **fields)
    fields = commit_fields(group, None, source, member_id="x", generation_id_or_member_epoch=epoch)
    script.ask("OffsetCommit", 9, **fields)
    script.ask("OffsetCommit", 9, **commit_fields(group, None, source))
    for member_id, at in (("member-a", epoch), ("member-a", epoch + 1), ("x", epoch), (None, -1)):
        script.ask(
            "OffsetFetch",
            9,
            groups=[{"group_id": group, "topics": None, "member_id": member_id, "member_epoch": at}],
        )
    script.ask("OffsetDelete", 0, **delete_fields(group, source, 0))
    stay(script, group, "member-a", -1)
    stay(script, group, "member-a", -1)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    script.ask("OffsetDelete", 0, **delete_fields(group, source, 0))
    script.ask("DeleteGroups", 2, groups_names=[group])
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])


@streams_conversation
def a_second_streams_member_gets_its_share(script: Script) -> None:
    """With a standby task for each task with state, and where the instances answer queries."""
    source, group = script.topic("streams-share", 4), script.group("streams-share")
    at_once(script, group, streams_num_standby_replicas="1")
    shape = topology(source, group)
    internal = (f"{group}-repartition", f"{group}-changelog")
    here, there = {"host": "here", "port": 1}, {"host": "there", "port": 2}
    first = ready(script, group, shape, *internal)
    epoch = first.member_epoch
    stay(script, group, "member-a", epoch, user_endpoint=here)
    epoch = stay(script, group, "member-a", epoch).member_epoch
    second = {"member_id": "member-b", "process_id": "process-b", "rack_id": "r"}
    begin(script, group, shape, **second, client_tags=[{"key": "zone", "value": "z"}])
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    told = stay(script, group, "member-a", epoch, **owning(first))
    stay(script, group, "member-b", epoch + 1)  # nothing is free yet
    stay(script, group, "member-a", epoch)
    fields = commit_fields(group, None, source, member_id="member-a", generation_id_or_member_epoch=epoch)
    script.ask("OffsetCommit", 9, **fields)
    told = stay(script, group, "member-a", epoch, **owning(told))
    stay(script, group, "member-a", epoch, **owning(told))  # its answer was lost
    fields = commit_fields(group, None, source, member_id="member-a", generation_id_or_member_epoch=epoch)
    script.ask("OffsetCommit", 9, **fields)
    got = stay(script, group, "member-b", epoch + 1, user_endpoint=there)
    for _ in range(3):
        got = stay(script, group, "member-b", got.member_epoch, **owning(got))
        told = stay(script, group, "member-a", told.member_epoch, endpoint_information_epoch=0)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    stay(script, group, "member-b", got.member_epoch, shutdown_application=True)
    stay(script, group, "member-a", told.member_epoch)
    stay(script, group, "member-a", -1)
    stay(script, group, "member-b", got.member_epoch)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    _an_endpoint_moves(script)


def _an_endpoint_moves(script: Script) -> None:
    """The heartbeat that moves it is answered with the old one. One that fails shows what it found of the topics."""
    source, group = script.topic("streams-moves", 2), at_once(script, script.group("streams-moves"))
    internal = (f"{group}-repartition", f"{group}-changelog")
    here, there = {"host": "here", "port": 1}, {"host": "there", "port": 2}
    answer = ready(script, group, topology(source, group), *internal)
    for more in ({"user_endpoint": here}, {}, {"user_endpoint": there}, {}):
        answer = stay(script, group, "member-a", answer.member_epoch, **more)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    script.ask("CreatePartitions", 3, topics=[{"name": source, "count": 3, "assignments": None}], timeout_ms=10_000)
    script.until(
        lambda: script.quietly("StreamsGroupHeartbeat", 0, **_staying(group, answer.member_epoch)),
        lambda told: bool(told.error_code),
        f"{group} does not see the third partition",
    )
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])


@streams_conversation
def topics_that_do_not_fit_a_topology(script: Script) -> None:
    two, three = script.topic("fits-two", 2), script.topic("fits-three", 3)
    group = at_once(script, script.group("unfit"))
    begin(script, f"{group}-equal", stateless(two, three, together=True))
    begin(script, f"{group}-free", stateless(two, three))
    begin(script, f"{group}-none", stateless(f"{group}-a", f"{group}-b", f"{group}-c", f"{group}-d"))
    begin(script, f"{group}-there", stateless(f"{group}-a"), user_endpoint={"host": "h", "port": 1})
    script.ask("StreamsGroupDescribe", 0, group_ids=[f"{group}-none"])
    for state in ("NotReady", "not_ready"):
        script.listed(group, types_filter=["streams"], states_filter=[state])
    # A topic for repartitioning with a count of its own, and one that is there with another.
    fixed = topology(two, f"{group}-fixed")
    fixed["subtopologies"][1]["repartition_source_topics"][0]["partitions"] = 5
    fixed["subtopologies"][1]["source_topics"] = [three]
    fixed["subtopologies"][1]["copartition_groups"] = [{"source_topics": [0], "repartition_source_topics": [0]}]
    begin(script, f"{group}-fixed", fixed)
    other = topology(three, f"{group}-other")
    other["subtopologies"][1]["repartition_source_topics"][0]["name"] = two
    other["subtopologies"][0]["repartition_sink_topics"] = [two]
    begin(script, f"{group}-other", other)
    wild = {"subtopology_id": "0", "source_topics": [two], "copartition_groups": [{"source_topics": [3]}]}
    begin(script, f"{group}-wild", {"epoch": 0, "subtopologies": [wild]})
    # One that the broker refuses to make.
    refused = stateless(two)
    log = {"name": f"{group}-refused-changelog", "topic_configs": [{"key": "no.such", "value": "1"}]}
    refused["subtopologies"][0]["state_changelog_topics"] = [log]
    script.until(
        lambda: script.quietly("StreamsGroupHeartbeat", 0, **_joining(f"{group}-refused", refused)),
        lambda again: any("failed" in each.status_detail for each in again.status),
        "the topic is not refused",
    )
    begin(script, f"{group}-refused", refused)


@streams_conversation
def an_empty_group_changes_between_classic_and_streams(script: Script) -> None:
    source, group = script.topic("streams-turns"), at_once(script, script.group("streams-turns"))
    joined = first_member(script, group)
    begin(script, group, stateless(source))
    script.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": joined.member_id}])
    begin(script, group, stateless(source))
    stay(script, group, "member-a", 2)
    consumer = {"group_id": group, "member_id": "c", "rebalance_timeout_ms": 9000, "topic_partitions": []}
    script.ask("ConsumerGroupHeartbeat", 1, **consumer, subscribed_topic_names=[source])
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    stay(script, group, "member-a", -1)
    script.ask("ConsumerGroupHeartbeat", 1, **consumer, subscribed_topic_names=[source])
    first_member(script, group)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    script.ask("DescribeGroups", 6, groups=[group])


@streams_conversation
def the_first_target_waits_for_members(script: Script) -> None:
    source, group = script.topic("streams-waits", 2), script.group("streams-waits")
    at_once(script, group, streams_initial_rebalance_delay_ms="1500")
    begin(script, group, stateless(source))
    begin(script, group, stateless(source))
    begin(script, group, stateless(source), member_id="member-b", process_id="process-b")
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
    found = script.until(
        lambda: script.quietly("StreamsGroupDescribe", 0, group_ids=[group]),
        lambda found: found.groups[0].assignment_epoch > 1,
        f"{group} has no target",
    )
    for member in found.groups[0].members:
        stay(script, group, member.member_id, member.member_epoch)
    script.ask("StreamsGroupDescribe", 0, group_ids=[group])
