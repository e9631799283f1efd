"""Streams groups (KIP-1071): the member's way from joining to leaving, with the clock in the test's hand."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.errors import ErrorCode as E
from kafka_shim.group.streams.describe import described_streams
from kafka_shim.group.streams.group import StreamsGroup
from kafka_shim.group.streams.member import STABLE, UNKNOWN, UNRELEASED, UNREVOKED
from kafka_shim.group.streams.requests import MOST_ERRORS, TopicErrors
from kafka_shim.metadata.image import RESOURCE_GROUP
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.group.harness import REBALANCE_MS, TOPIC, Node, refused

STALE, MISSING_SOURCES, MISFIT, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)


def shape(*sources: str, log: str = "", epoch: int = 0) -> dict[str, Any]:
    """A topology of one subtopology, with state if it has a changelog topic."""
    row: dict[str, Any] = {"subtopology_id": "0", "source_topics": list(sources)}
    if log:
        row["state_changelog_topics"] = [{"name": log}]
    return {"epoch": epoch, "subtopologies": [row]}


@pytest.fixture
def at_once(node: Node) -> Node:
    """A node whose group "g" waits for nobody, with a topic "s" of 4 partitions."""
    node.topic("s", 4)
    option(node, "streams.initial.rebalance.delay.ms", "0")
    option(node, "streams.assignment.interval.ms", "0")
    return node


def option(node: Node, name: str, value: str) -> None:
    node.metadata.commit([ConfigRecord(resource_type=RESOURCE_GROUP, resource_name="g", name=name, value=value)])


def owned(answer: Any) -> dict[str, Any]:
    """What a member says that has what it was given."""
    return {
        name: [
            {"subtopology_id": each.subtopology_id, "partitions": each.partitions}
            for each in getattr(answer, name) or ()
        ]
        for name in ("active_tasks", "standby_tasks", "warmup_tasks")
    }


def numbers(tasks: Any) -> list[int]:
    return [number for each in tasks or () for number in each.partitions]


def codes(answer: Any) -> list[int]:
    return [status.status_code for status in answer.status]


def group_of(node: Node) -> StreamsGroup:
    found = node.groups.find("g")
    assert isinstance(found, StreamsGroup)
    return found


def facts(group: StreamsGroup) -> Any:
    """All that records hold of a group, and what follows from it."""
    left = ("configured", "endpoint_epoch", "endpoints", "refresh_deadline_ms", "shutdown_member_id", "topology")
    found = {name: getattr(group, name) for name in StreamsGroup.__slots__ if name not in left}
    return found, group.topology.value if group.topology else None, group.state_name


# --- joining


def test_a_member_joins_stays_and_leaves(at_once: Node) -> None:
    joined = at_once.streams("g", "a", topology=shape("s"))
    assert (joined.member_epoch, numbers(joined.active_tasks), codes(joined)) == (2, [0, 1, 2, 3], [])
    assert joined.heartbeat_interval_ms == 5000
    stayed = at_once.streams("g", "a", 2, **owned(joined))
    assert (stayed.member_epoch, stayed.active_tasks) == (2, None)
    assert at_once.state("g") == "Stable"
    left = at_once.streams("g", "a", -1)
    assert (left.member_epoch, left.status, at_once.state("g")) == (-1, [], "Empty")
    assert refused(at_once.streams, "g", "a", -1) is E.UNKNOWN_MEMBER_ID
    at_once.delete_group("g")
    assert at_once.state("g") == "none"
    assert refused(at_once.streams, "g", "a", -1) is E.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": " "}, E.INVALID_REQUEST),
        ({"instance_id": "i"}, E.INVALID_REQUEST),
        ({"rack_id": ""}, E.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, E.INVALID_REQUEST),
        ({"active_tasks": None}, E.INVALID_REQUEST),
        ({"standby_tasks": [{"subtopology_id": "0", "partitions": [0]}]}, E.INVALID_REQUEST),
        ({"warmup_tasks": [{"subtopology_id": "0", "partitions": [0]}]}, E.INVALID_REQUEST),
        ({"topology": None}, E.INVALID_REQUEST),
        ({"task_offsets": []}, E.INVALID_REQUEST),
        ({"task_end_offsets": []}, E.INVALID_REQUEST),
        ({"member_epoch": -2}, E.INVALID_REQUEST),
        ({"member_epoch": -3}, E.INVALID_REQUEST),
        ({"member_epoch": 1}, E.INVALID_REQUEST),
        ({"member_epoch": 1, "topology": None}, E.GROUP_ID_NOT_FOUND),
        ({"member_epoch": 1, "topology": None, "standby_tasks": None}, E.INVALID_REQUEST),
        ({"client_tags": [{"key": "k", "value": "1"}] * 2}, E.UNKNOWN_SERVER_ERROR),
        ({"topology": shape("s", epoch=-1)}, E.UNKNOWN_SERVER_ERROR),
        ({"topology": shape()}, E.STREAMS_INVALID_TOPOLOGY),
    ],
)
def test_what_no_group_accepts_is_refused(at_once: Node, fields: dict[str, Any], code: E) -> None:
    given = {"topology": shape("s"), **fields}
    member_id = given.pop("member_id", "a")
    assert refused(at_once.streams, "g", member_id, **given) is code
    assert at_once.state("g") == "none"


def test_expressions_and_counts_of_changelogs_are_refused(at_once: Node) -> None:
    by_regex = shape("s")
    by_regex["subtopologies"][0]["source_topic_regex"] = ["s.*"]
    assert refused(at_once.streams, "g", "a", topology=by_regex) is E.INVALID_REQUEST
    counted = shape("s", log="log")
    counted["subtopologies"][0]["state_changelog_topics"][0]["partitions"] = 4
    assert refused(at_once.streams, "g", "a", topology=counted) is E.STREAMS_INVALID_TOPOLOGY


def test_a_wrong_epoch_is_fenced_but_a_lost_answer_is_not(at_once: Node) -> None:
    joined = at_once.streams("g", "a", topology=shape("s"))
    assert refused(at_once.streams, "g", "a", 3) is E.FENCED_MEMBER_EPOCH
    at_once.streams("g", "b", topology=shape("s"))
    told = at_once.streams("g", "a", 2, **owned(joined))
    moved = at_once.streams("g", "a", 2, **owned(told))
    assert (moved.member_epoch, len(numbers(told.active_tasks))) == (3, 2)
    assert at_once.streams("g", "a", 2, **owned(told)).member_epoch == 3
    assert refused(at_once.streams, "g", "a", 2) is E.FENCED_MEMBER_EPOCH, "it does not say what it has"
    assert refused(at_once.streams, "g", "a", 2, **owned(joined)) is E.FENCED_MEMBER_EPOCH, "it claims too much"
    assert refused(at_once.streams, "g", "stranger", 2) is E.UNKNOWN_MEMBER_ID


def test_a_task_that_the_topology_does_not_have_is_refused(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    for name, number in (("1", 0), ("0", 4), ("0", -1)):
        tasks = [{"subtopology_id": name, "partitions": [number]}]
        rest: dict[str, Any] = {"standby_tasks": [], "warmup_tasks": []}
        assert refused(at_once.streams, "g", "a", 2, active_tasks=tasks, **rest) is E.INVALID_REQUEST


def test_a_topology_changes_never_and_an_older_one_is_stale(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s", epoch=1))
    assert refused(at_once.streams, "g", "b", topology=shape("s", epoch=2)) is E.INVALID_REQUEST
    assert refused(at_once.streams, "g", "b", topology=shape("s", "s", epoch=1)) is E.INVALID_REQUEST
    assert codes(at_once.streams("g", "b", topology=shape("s"))) == [STALE]


def test_what_a_member_says_anew_makes_a_new_epoch(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    for epoch, fields in enumerate(
        ({"rack_id": "r"}, {"client": "d"}, {"client_tags": [{"key": "k", "value": "v"}]}), 2
    ):
        at_once.streams("g", "a", epoch, **fields)
        assert group_of(at_once).group_epoch == epoch + 1
    at_once.streams("g", "a", 5, rack_id="r")
    assert group_of(at_once).group_epoch == 5


def test_another_number_of_standby_replicas_makes_a_new_epoch(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    before = group_of(at_once).group_epoch
    option(at_once, "streams.num.standby.replicas", "1")
    at_once.streams("g", "a", 2)
    assert group_of(at_once).group_epoch == before + 1


# --- tasks move


def test_tasks_move_when_they_are_given_up(at_once: Node) -> None:
    first = at_once.streams("g", "a", topology=shape("s"))
    second = at_once.streams("g", "b", topology=shape("s"))
    group = group_of(at_once)
    assert (numbers(second.active_tasks), second.member_epoch) == ([], 3)
    assert (group.members["b"].state, at_once.state("g")) == (UNRELEASED, "Reconciling")
    told = at_once.streams("g", "a", 2, **owned(first))
    kept = numbers(told.active_tasks)
    assert (told.member_epoch, len(kept), group.members["a"].state) == (2, 2, UNREVOKED)
    assert at_once.streams("g", "b", 3).active_tasks is None
    assert at_once.streams("g", "a", 2, **owned(first)).active_tasks is None, "it still has them"
    assert at_once.streams("g", "a", 2, **owned(told)).member_epoch == 3
    got = at_once.streams("g", "b", 3)
    assert sorted(kept + numbers(got.active_tasks)) == [0, 1, 2, 3]
    assert (group.members["b"].state, at_once.state("g")) == (STABLE, "Stable")


def test_a_member_that_gives_nothing_up_leaves_after_its_time(at_once: Node) -> None:
    first = at_once.streams("g", "a", topology=shape("s"))
    at_once.streams("g", "b", topology=shape("s"))
    at_once.streams("g", "a", 2, **owned(first))
    for _ in range(2):
        at_once.advance(REBALANCE_MS / 2 - 1)
        assert sorted(group_of(at_once).members) == ["a", "b"]
        for member_id, epoch in (("a", 2), ("b", 3)):
            at_once.streams("g", member_id, epoch)
    at_once.advance(2)
    assert sorted(group_of(at_once).members) == ["b"]
    assert numbers(at_once.streams("g", "b", 3).active_tasks) == [0, 1, 2, 3]


def test_standby_tasks_are_in_another_process(at_once: Node) -> None:
    option(at_once, "streams.num.standby.replicas", "1")
    at_once.topic("log", 4)
    topology = shape("s", log="log")
    first = at_once.streams("g", "a", topology=topology)
    at_once.streams("g", "b", topology=topology)
    told = at_once.streams("g", "a", 2, **owned(first))
    at_once.streams("g", "a", 2, **owned(told))
    said: dict[str, Any] = {}
    for _ in range(3):
        for member_id in ("a", "b"):
            answer = at_once.streams("g", member_id, group_of(at_once).members[member_id].member_epoch)
            said[member_id] = said.get(member_id) if answer.standby_tasks is None else answer.standby_tasks
    members = group_of(at_once).members
    assert at_once.state("g") == "Stable"
    for one, other in (("a", "b"), ("b", "a")):
        active = set(members[other].assigned.active["0"])
        assert members[one].assigned.standby == {"0": active}
        assert set(numbers(said[one])) == active
    group = group_of(at_once)
    assert set(group.standby_owners) == set(group.active_owners) == {("0", number) for number in range(4)}
    at_once.streams("g", "a", -1)
    at_once.streams("g", "b", -1)
    assert not group.standby_owners
    assert not group.active_owners


def test_a_member_in_an_unknown_state_rejoins(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    group = group_of(at_once)
    group.members["a"] = group.members["a"].copy(state=UNKNOWN)
    assert refused(at_once.streams, "g", "a", 2) is E.FENCED_MEMBER_EPOCH
    assert at_once.streams("g", "a", topology=shape("s")).member_epoch == 2
    assert group.members["a"].state == STABLE


# --- topics


def test_missing_topics_are_said_until_they_are_there(at_once: Node) -> None:
    joined = at_once.streams("g", "a", topology=shape("later", log="log"))
    assert (codes(joined), joined.status[0].status_detail) == ([MISSING_SOURCES], "Source topics later are missing.")
    assert (at_once.state("g"), joined.active_tasks, at_once.missing_topics) == ("NotReady", [], {})
    at_once.topic("later", 3)
    told = at_once.streams("g", "a", 2)
    assert codes(told) == [MISSING_INTERNAL]
    assert {name: topic.partitions for name, topic in at_once.missing_topics.items()} == {"log": 3}
    at_once.topic("log", 3)
    told = at_once.streams("g", "a", told.member_epoch)
    assert (codes(told), numbers(told.active_tasks), at_once.state("g")) == ([], [0, 1, 2], "Stable")


def test_a_filter_finds_groups_that_are_not_ready_as_kafkas_does(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("nowhere"))
    assert [each.group_state for each in at_once.listed(["not_ready"], ["streams"])] == ["NotReady"]
    assert at_once.listed(["NotReady"], []) == []


# --- the first target


def test_the_first_target_waits_for_more_members(node: Node) -> None:
    node.topic("s", 4)
    joined = node.streams("g", "a", topology=shape("s"))
    assert (codes(joined), joined.member_epoch, joined.active_tasks) == ([DELAYED], 1, [])
    again = node.streams("g", "b", topology=shape("s"))
    assert codes(again) == [DELAYED]
    node.advance(2999)
    assert group_of(node).assignment_epoch == 1
    node.advance(1)
    assert group_of(node).assignment_epoch == 3
    assert [len(numbers(node.streams("g", each, 1).active_tasks)) for each in ("a", "b")] == [2, 2]
    node.streams("g", "c", topology=shape("s"))
    assert codes(node.streams("g", "d", topology=shape("s"))) == [DELAYED], "the interval between two targets"
    node.advance(1000)
    assert codes(node.streams("g", "d", 3)) == []


def test_a_group_that_is_empty_or_gone_has_no_first_target(node: Node) -> None:
    node.topic("s", 4)
    node.streams("g", "a", topology=shape("s"))
    node.streams("g", "a", -1)
    node.advance(3000)
    assert group_of(node).assignment_epoch == 1
    node.streams("g", "a", topology=shape("s"))
    node.streams("g", "a", -1)
    node.delete_group("g")
    assert len(node.timers) == 0


# --- sessions, restart


def test_a_silent_member_leaves(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    at_once.advance(44_999)
    assert at_once.state("g") == "Stable"
    at_once.advance(1)
    assert (at_once.state("g"), group_of(at_once).group_epoch) == ("Empty", 3)


def test_a_group_is_back_after_a_crash_and_sessions_begin_anew(at_once: Node) -> None:
    option(at_once, "streams.num.standby.replicas", "1")
    at_once.topic("log", 4)
    endpoint = {"host": "h", "port": 65_535}
    tags = [{"key": "zone", "value": "z"}]
    topology = shape("s", log="log")
    first = at_once.streams("g", "a", topology=topology, user_endpoint=endpoint, client_tags=tags, rack_id="r")
    at_once.streams("g", "b", topology=topology)
    at_once.streams("g", "a", 2, **owned(first))
    before = facts(group_of(at_once))
    assert group_of(at_once).members["a"].state == UNREVOKED
    at_once.crash()
    assert facts(group_of(at_once)) == before
    at_once.advance(REBALANCE_MS - 1)
    assert sorted(group_of(at_once).members) == ["a", "b"]
    at_once.advance(1)
    assert sorted(group_of(at_once).members) == ["b"], "it did not give up its tasks in time"
    at_once.advance(45_000)
    assert at_once.state("g") == "Empty"
    at_once.restart()
    at_once.delete_group("g")
    at_once.restart()
    assert at_once.state("g") == "none"


def test_a_failed_append_changes_nothing(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    before = facts(group_of(at_once))
    at_once.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    assert refused(at_once.streams, "g", "b", topology=shape("s")) is E.NOT_COORDINATOR
    at_once.faults.disarm()
    assert facts(group_of(at_once)) == before


# --- offsets


def test_commits_and_fetches_have_the_members_epoch(at_once: Node) -> None:
    first = at_once.streams("g", "a", topology=shape("s"))
    assert at_once.commit("g", "s", 5, "a", 2) == 0
    assert refused(at_once.commit, "g", "s", 5, "a", 2, version=8) is E.UNSUPPORTED_VERSION
    assert refused(at_once.commit, "g", "s", 5, "a", 3) is E.STALE_MEMBER_EPOCH
    assert refused(at_once.commit, "g", "s", 5, "a", 1) is E.STALE_MEMBER_EPOCH
    assert refused(at_once.commit, "g", "s", 5, "x", 2) is E.UNKNOWN_MEMBER_ID
    assert refused(at_once.commit, "g", "s", 5) is E.UNKNOWN_MEMBER_ID
    at_once.streams("g", "b", topology=shape("s"))
    told = at_once.streams("g", "a", 2, **owned(first))
    assert at_once.streams("g", "a", 2, **owned(told)).member_epoch == 3
    kept = 0 in numbers(told.active_tasks)
    if kept:
        assert at_once.commit("g", "s", 6, "a", 2) == 0, "it has had the task since that epoch"
    else:
        assert refused(at_once.commit, "g", "s", 6, "a", 2) is E.STALE_MEMBER_EPOCH
    at_once.topic("other")
    assert refused(at_once.commit, "g", "other", 6, "a", 2) is E.STALE_MEMBER_EPOCH
    assert at_once.commit_in_transaction("g", "s", 6, (1, 0), 3, "a") == 0
    assert at_once.commit_in_transaction("g", "s", 6, (1, 0), 4, "a") == E.ILLEGAL_GENERATION
    assert at_once.commit_in_transaction("g", "s", 6, (1, 0)) == 0, "nothing is said of a member"
    group = group_of(at_once)
    group.check_fetch(None, -1)
    group.check_fetch("a", 3)
    assert refused(group.check_fetch, "a", 2) is E.STALE_MEMBER_EPOCH
    assert refused(group.check_fetch, "x", 2) is E.UNKNOWN_MEMBER_ID
    assert refused(group.check_fetch, None, 3) is E.UNKNOWN_SERVER_ERROR


def test_offsets_of_its_topics_are_in_use(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    group = group_of(at_once)
    assert (group.is_subscribed("s"), group.is_subscribed("log")) == (True, False)
    assert refused(at_once.delete_group, "g") is E.NON_EMPTY_GROUP
    at_once.streams("g", "a", -1)
    assert not group.is_subscribed("s")
    assert at_once.commit("g", "s", 5) == 0
    at_once.delete_group("g")
    assert at_once.committed("g", "s") == (-1, 0)


def test_a_request_that_fails_makes_a_newer_list_of_endpoints(at_once: Node) -> None:
    """As in Kafka: what it found of the endpoint stays, and the other members are told of a list."""
    at_once.streams("g", "a", topology=shape("no"))
    here = {"host": "here", "port": 1}
    assert refused(at_once.streams, "g", "b", topology=shape("no"), user_endpoint=here) is E.UNKNOWN_SERVER_ERROR
    told = at_once.streams("g", "a", 2, endpoint_information_epoch=0)
    assert (told.endpoint_information_epoch, told.partitions_by_user_endpoint) == (1, [])


# --- other kinds


def test_only_an_empty_group_changes_its_kind(at_once: Node) -> None:
    joined = at_once.stable("g")
    assert refused(at_once.streams, "g", "a", topology=shape("s")) is E.GROUP_ID_NOT_FOUND
    at_once.leave("g", joined.member_id)
    assert at_once.streams("g", "a", topology=shape("s")).member_epoch == 2
    assert at_once.join("g").error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert refused(at_once.modern, "g", "m", subscribed_topic_names=["t"]) is E.GROUP_ID_NOT_FOUND
    at_once.streams("g", "a", -1)
    assert refused(at_once.modern, "g", "m", subscribed_topic_names=["t"]) is E.GROUP_ID_NOT_FOUND
    assert at_once.stable("g").error_code == 0
    assert [group.TYPE for group in at_once.all_groups()] == ["classic"]
    at_once.crash()
    assert [group.TYPE for group in at_once.all_groups()] == ["classic"]


# --- endpoints, shutdown


def test_instances_are_listed_with_their_partitions(at_once: Node) -> None:
    here = {"host": "here", "port": 1}
    joined = at_once.streams("g", "a", topology=shape("s"), user_endpoint=here)
    assert joined.endpoint_information_epoch == 0, "the group is new: no record holds its list"
    (entry,) = joined.partitions_by_user_endpoint
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("here", 1)
    assert [(part.topic, part.partitions) for part in entry.active_partitions] == [("s", [0, 1, 2, 3])]
    again = at_once.streams("g", "a", topology=shape("s"), user_endpoint=here)
    assert again.endpoint_information_epoch == 1
    assert at_once.streams("g", "a", 2, endpoint_information_epoch=1).partitions_by_user_endpoint is None
    other = at_once.streams("g", "b", topology=shape("s"), endpoint_information_epoch=1)
    assert (other.endpoint_information_epoch, other.partitions_by_user_endpoint) == (1, None)


def test_an_endpoint_that_moves_is_listed_from_the_next_heartbeat_on(at_once: Node) -> None:
    """As in Kafka, which keeps what it found of a member until the member's records have changed."""
    here, there = {"host": "here", "port": 1}, {"host": "there", "port": 2}
    at_once.streams("g", "a", topology=shape("s"), user_endpoint=here)
    at_once.streams("g", "a", topology=shape("s"))
    listed = []
    for epoch, more in ((2, {}), (2, {"user_endpoint": there}), (3, {})):
        told = at_once.streams("g", "a", epoch, endpoint_information_epoch=0, **more)
        listed.append([entry.user_endpoint.host for entry in told.partitions_by_user_endpoint])
    assert listed == [["here"], ["here"], ["there"]]


def test_a_heartbeat_that_fails_shows_what_it_found_of_the_topics(at_once: Node) -> None:
    """As in Kafka: it has a list of endpoints, and the topology has no tasks any more."""
    at_once.topic("g-log", 4)
    at_once.streams("g", "a", topology=shape("s", log="g-log"), user_endpoint={"host": "here", "port": 1})
    at_once.streams("g", "a", 2)

    def partitions_of_log() -> int:
        (subtopology,) = described_streams("g", group_of(at_once)).topology.subtopologies
        return subtopology.state_changelog_topics[0].partitions

    assert partitions_of_log() == 4
    at_once.metadata.create_partitions("s", 5)
    assert refused(at_once.streams, "g", "a", 2) is E.UNKNOWN_SERVER_ERROR
    assert partitions_of_log() == 0


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_description_has_what_the_member_sent_and_what_it_is_to_have(at_once: Node, is_ready: bool) -> None:
    at_once.topic("log", 4)
    sent = shape("s" if is_ready else "no")
    configs = [{"key": "cleanup.policy", "value": "compact"}]
    sent["subtopologies"][0]["state_changelog_topics"] = [
        {"name": "log", "replication_factor": 1, "topic_configs": configs}
    ]
    joined = at_once.streams("g", "a", topology=sent, rack_id="r", client_tags=[{"key": "k", "value": "v"}])
    at_once.streams("g", "a", joined.member_epoch)
    described = described_streams("g", group_of(at_once))
    (subtopology,), (member,) = described.topology.subtopologies, described.members
    assert (subtopology.subtopology_id, subtopology.source_topics) == ("0", ["s" if is_ready else "no"])
    (log,) = subtopology.state_changelog_topics
    assert (log.name, log.partitions, log.replication_factor) == ("log", 4 if is_ready else 0, 1)
    assert [(each.key, each.value) for each in log.topic_configs] == [("cleanup.policy", "compact")]
    assert (member.member_id, member.member_epoch, member.process_id) == ("a", joined.member_epoch, "process-a")
    assert (member.client_id, member.client_host, member.rack_id) == ("c", "/127.0.0.1", "r")
    assert [(each.key, each.value) for each in member.client_tags] == [("k", "v")]
    tasks = [0, 1, 2, 3] if is_ready else []
    for assignment in (member.assignment, member.target_assignment):
        assert numbers(assignment.active_tasks) == tasks
        assert {each.subtopology_id for each in assignment.active_tasks} == ({"0"} if is_ready else set())


def test_without_topics_there_is_no_list(at_once: Node) -> None:
    """As in Kafka 4.3.1, which fails there."""
    here = {"host": "here", "port": 1}
    assert refused(at_once.streams, "g", "a", topology=shape("no"), user_endpoint=here) is E.UNKNOWN_SERVER_ERROR


def test_one_member_stops_the_application(at_once: Node) -> None:
    at_once.streams("g", "a", topology=shape("s"))
    at_once.streams("g", "b", topology=shape("s"))
    assert codes(at_once.streams("g", "a", 2, shutdown_application=True)) == [SHUTDOWN]
    told = at_once.streams("g", "b", 3)
    assert "member a encountered" in told.status[0].status_detail
    at_once.streams("g", "a", -1)
    at_once.streams("g", "b", -1, shutdown_application=True)
    assert codes(at_once.streams("g", "c", topology=shape("s"))) == []


def test_records_that_name_a_task_twice_are_skipped(at_once: Node, caplog: pytest.LogCaptureFixture) -> None:
    from kafka_shim.cext import records as cext_records
    from kafka_shim.group.records import Record
    from kafka_shim.protocol.records import streams_group_topology_key, streams_group_topology_value

    at_once.streams("g", "a", topology=shape("s"))
    twice = [streams_group_topology_value.Subtopology(subtopology_id="0", source_topics=["s"])] * 2
    record = Record(
        streams_group_topology_key.StreamsGroupTopologyKey(group_id="h"),
        streams_group_topology_value.StreamsGroupTopologyValue(subtopologies=twice),
    )
    log = at_once.logs.get(TOPIC, at_once.groups.partition_for("h"))
    log.append_batch(cext_records.build([(*record.encode(), 1, ())]), now_ms=1)
    at_once.crash()
    assert at_once.state("g") == "Stable"
    at_once.groups.find("h")
    assert "names something twice" in caplog.text


@pytest.mark.parametrize(("subtopologies", "is_refused"), [(100, False), (200, True), (1000, True)])
def test_a_topology_or_target_that_no_batch_may_hold_is_refused(
    at_once: Node, monkeypatch: pytest.MonkeyPatch, subtopologies: int, is_refused: bool
) -> None:
    """200: their 4000 tasks are too many for a target; 1000: the topology itself is too large."""
    monkeypatch.setattr(at_once.config, "message_max_bytes", 12_000)
    at_once.topic("wide", 20)
    rows = [{"subtopology_id": str(at), "source_topics": ["wide"]} for at in range(subtopologies)]
    topology = {"epoch": 0, "subtopologies": rows}
    if is_refused:
        assert refused(at_once.streams, "g", "m", topology=topology) is E.UNKNOWN_SERVER_ERROR
        assert at_once.groups.find("g") is None
    else:
        assert len(numbers(at_once.streams("g", "m", topology=topology).active_tasks)) == 2000


def test_errors_of_topics_cost_bounded_memory():
    errors = TopicErrors()
    for number in range(MOST_ERRORS + 1):
        errors.put_all({f"t{number}": "full"}, number, 10_000)
    assert [errors.get(f"t{number}", 5000) for number in (0, 1, MOST_ERRORS)] == [None, "full", "full"]


def test_the_errors_of_one_heartbeat_are_remembered_in_one_pass() -> None:
    """Each of 10,000 was looked for those that are over and for the first to forget: more than a second."""
    looks = 0

    class Time(int):
        def __lt__(self, other: object) -> bool:  # what an end after this time asks
            nonlocal looks
            looks += 1
            return int(self) < other  # type: ignore[operator]

        def __ge__(self, other: object) -> bool:
            nonlocal looks
            looks += 1
            return int(self) >= other  # type: ignore[operator]

    errors = TopicErrors()
    for heartbeat in range(3):
        errors.put_all({f"{heartbeat} t{number}": "full" for number in range(10_000)}, Time(heartbeat), 10_000)
    assert looks == 2 * MOST_ERRORS
    assert [errors.get(name, 5000) for name in ("0 t9999", "2 t0", "2 t9999")] == [None, None, "full"]
