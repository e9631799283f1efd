"""The consumer protocol (KIP-848) under a virtual clock: epochs, fencing, reconciling, time, expressions, migration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_regex
from kafka_shim.group.client import Client
from kafka_shim.group.consumer import Resolved
from kafka_shim.group.consumer_member import UNRELEASED, UNREVOKED, ConsumerMember
from kafka_shim.group.decision import REGEX
from kafka_shim.group.runtime import RETRY_MS
from kafka_shim.metadata.image import RESOURCE_GROUP
from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.group.harness import REBALANCE_MS, Node, refused, subscription
from kafka_shim.tests.work import calls_of

E = ErrorCode
SESSION_848_MS = 45_000


def given(response: Any) -> dict[bytes, set[int]] | None:
    """The assignment of an answer."""
    if response.assignment is None:
        return None
    return {bytes(each.topic_id): set(each.partitions) for each in response.assignment.topic_partitions}


@pytest.fixture
def topic_id(node: Node) -> bytes:
    return node.topic("four", 4)


def join(node: Node, member_id: str, **fields: Any) -> Any:
    return node.modern("g", member_id, subscribed_topic_names=["four"], **fields)


def two_members(node: Node, topic_id: bytes) -> None:
    """a and b with two partitions each, all settled in epoch 3."""
    join(node, "a")
    node.advance(1000)
    join(node, "b")
    mine = given(node.modern("g", "a", 2))
    assert mine is not None
    node.modern("g", "a", 2, topic_partitions=mine)
    node.modern("g", "b", 3)
    assert node.state("g") == "Stable"


# --- joining


def test_the_first_member_gets_everything_at_once(node: Node, topic_id: bytes) -> None:
    joined = join(node, "a")
    assert given(joined) == {topic_id: {0, 1, 2, 3}}
    assert (joined.member_epoch, joined.heartbeat_interval_ms) == (2, 5000)
    assert given(node.modern("g", "a", 2)) is None, "nothing changed"
    assert node.state("g") == "Stable"


def test_a_second_member_waits_until_the_first_has_revoked(node: Node, topic_id: bytes) -> None:
    join(node, "a")
    node.advance(1000)
    joined = join(node, "b")
    assert given(joined) == {}
    group = node.groups.find("g")
    assert group.members["b"].state == UNRELEASED
    keeps = given(node.modern("g", "a", 2))
    assert keeps is not None
    assert len(keeps[topic_id]) == 2
    assert group.members["a"].state == UNREVOKED
    assert given(node.modern("g", "b", 3)) is None, "still with a"
    assert node.modern("g", "a", 2).member_epoch == 2, "it did not say what it owns"
    assert node.modern("g", "a", 2, topic_partitions=keeps).member_epoch == 3
    taken = given(node.modern("g", "b", 3))
    assert taken == {topic_id: {0, 1, 2, 3} - keeps[topic_id]}
    assert node.state("g") == "Stable"


def test_no_partition_ever_has_two_owners(node: Node, topic_id: bytes) -> None:
    members: dict[str, tuple[int, dict[bytes, set[int]]]] = {}
    for step in range(60):
        name = "abcde"[step % 5]
        if step % 17 == 16 and name in members:
            node.modern("g", name, -1)
            del members[name]
        else:
            epoch, owned = members.get(name, (0, {}))
            answer = join(node, name) if epoch == 0 else node.modern("g", name, epoch, topic_partitions=owned)
            now = given(answer)
            members[name] = (answer.member_epoch, owned if now is None else now)
        node.advance(400)
        held = [(topic, each) for _, owned in members.values() for topic, found in owned.items() for each in found]
        assert len(held) == len(set(held)), f"step {step}"


def test_target_assignments_are_made_once_an_interval(node: Node, topic_id: bytes) -> None:
    join(node, "a")
    join(node, "b")
    join(node, "c")
    group = node.groups.find("g")
    assert (group.group_epoch, group.assignment_epoch) == (4, 2)
    assert node.state("g") == "Assigning"
    node.advance(1000)
    node.modern("g", "c", group.members["c"].member_epoch)
    assert group.assignment_epoch == 4


def test_what_is_counted_is_what_the_members_say(node: Node, topic_id: bytes) -> None:
    node.topic("five", 5)
    group = None
    for step in range(60):
        name = "abcde"[step % 5]
        fields: list[dict[str, Any]] = [
            {"subscribed_topic_names": ["four"]},
            {"subscribed_topic_names": ["four", "five"]},
            {"subscribed_topic_names": [], "subscribed_topic_regex": "f.*"},
            {"subscribed_topic_names": ["five"], "subscribed_topic_regex": "four"},
        ]
        if step % 7 == 6 and group is not None and name in group.members:
            node.modern("g", name, -1)
        else:
            node.modern("g", name, **{"subscribed_topic_regex": "", **fields[(step * step + step // 5) % 4]})
        if step % 20 == 19:
            node.crash()
        node.advance(300)
        group = node.groups.find("g")
        members = group.members.values()
        names = [topic for member in members for topic in member.subscribed_topics]
        assert group.topic_counts == {topic: names.count(topic) for topic in names}
        regexes = [member.regex for member in members if member.regex]
        assert group.regexes == {regex: regexes.count(regex) for regex in regexes}
        assert group.resolved.keys() <= group.regexes.keys()


def test_a_thousand_members_disturb_nobody(node: Node) -> None:
    """A join costs the same in a group of any size; the assignment, once a second at most, some calls a member."""
    node.topic("many", 1000)
    count = 1000
    client = Client("c", "/127.0.0.1")

    def join_many(member_id: str) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_MS,
            topic_partitions=[],
            subscribed_topic_names=["many"],
        )
        return node.groups.consumer.heartbeat(request, 1, client)

    made = [calls_of(join_many, f"m{number}")[1] for number in range(count)]
    assert min(made[-100:]) < 1.1 * min(made[1:100])
    node.advance(1000)
    _, assigning = calls_of(join_many, "last")
    assert assigning < 60 * count
    group = node.groups.find("g")
    assert sum(len(found) for target in group.target.values() for found in target.values()) == 1000
    _, ending = calls_of(node.advance, SESSION_848_MS)
    assert ending < 600 * count
    assert node.state("g") == "Empty"
    assert (group.topic_counts, group.owners, len(node.timers)) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("asked", "takes"),
    [
        (("uniform", "range"), "range"),
        (("range", "uniform"), "uniform"),
        (("uniform", "range", None), "uniform"),
        (("range", "uniform", None), "uniform"),
        (("uniform", None, "range"), "range"),
        (("range", "range", "uniform"), "range"),
    ],
)
def test_a_tie_of_assignors_goes_by_the_order_of_the_copied_votes(
    node: Node, asked: tuple[str | None, ...], takes: str
) -> None:
    """As observed on 4.3.1. What ConsumerGroupDescribe shows goes by the votes themselves: uniform is first there."""
    one, both = node.topic("ta", 3), node.topic("tb", 2)
    for number, assignor in enumerate(asked):
        names = ["ta"] if number == 0 else ["ta", "tb"]
        node.modern("g", "abc"[number], subscribed_topic_names=names, server_assignor=assignor)
        node.advance(1000)
    group = node.groups.find("g")
    expected = {
        ("range", 2): [{one: {0, 1}}, {one: {2}, both: {0, 1}}],
        ("uniform", 2): [{one: {0, 1, 2}}, {both: {0, 1}}],
        ("range", 3): [{one: {0}}, {one: {1}, both: {0}}, {one: {2}, both: {1}}],
        ("uniform", 3): [{one: {0, 1}}, {one: {2}, both: {0}}, {both: {1}}],
    }
    told = [{topic: set(found) for topic, found in group.target[name].items()} for name in "abc"[: len(asked)]]
    assert told == expected[takes, len(asked)]
    assert group.preferred_assignor("none") == ("range" if asked.count("range") > 1 else "uniform")


# --- fencing


@pytest.mark.parametrize(
    ("epoch", "missing"), [(-1, "Group none not found."), (3, "Consumer group none not found.")], ids=["leave", "stay"]
)
def test_a_heartbeat_to_no_consumer_group_is_told_what_there_is(node: Node, epoch: int, missing: str) -> None:
    """In Kafka's words, which clients show."""
    node.member("classic")
    for group_id, told in (("none", missing), ("classic", "Group classic is not a consumer group.")):
        with pytest.raises(KafkaError) as caught:
            node.modern(group_id, "a", epoch)
        assert (caught.value.code, caught.value.message) == (E.GROUP_ID_NOT_FOUND, told)


def test_epochs_that_fence(node: Node, topic_id: bytes) -> None:
    two_members(node, topic_id)
    group = node.groups.find("g")
    assert refused(node.modern, "g", "a", 9) is E.FENCED_MEMBER_EPOCH
    assert refused(node.modern, "g", "a", 1) is E.FENCED_MEMBER_EPOCH
    assert refused(node.modern, "g", "x", 3) is E.UNKNOWN_MEMBER_ID
    assert refused(node.modern, "none", "a", 3) is E.GROUP_ID_NOT_FOUND
    mine = {topic: set(found) for topic, found in group.members["a"].assigned.items()}
    assert node.modern("g", "a", 2, topic_partitions=mine).member_epoch == 3, "a lost answer"
    assert refused(node.modern, "g", "a", 2) is E.FENCED_MEMBER_EPOCH, "silent about what it owns"
    assert refused(node.modern, "g", "a", 2, topic_partitions={topic_id: {0, 1, 2, 3}}) is E.FENCED_MEMBER_EPOCH


def test_a_member_that_was_fenced_comes_back_with_epoch_zero(node: Node, topic_id: bytes) -> None:
    two_members(node, topic_id)
    again = join(node, "a")
    assert again.member_epoch == 3
    assert len((given(again) or {})[topic_id]) == 2


def test_requests_that_no_group_accepts_are_refused_and_make_none(node: Node) -> None:
    assert (
        refused(node.modern, "g", "a", subscribed_topic_names=["t"], server_assignor="mine") is E.UNSUPPORTED_ASSIGNOR
    )
    assert refused(node.modern, "g", "", subscribed_topic_names=["t"]) is E.INVALID_REQUEST
    assert refused(node.modern, "g", "a", -3) is E.INVALID_REQUEST
    assert refused(node.modern, "g", "a", -2) is E.INVALID_REQUEST
    with pytest.raises(KafkaError, match="Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"):
        node.modern("g", "a")
    regex = {"subscribed_topic_names": [], "subscribed_topic_regex": "(?<x"}
    assert refused(node.modern, "g", "a", **regex) is E.INVALID_REGULAR_EXPRESSION
    assert node.state("g") == "none"


def test_names_that_no_batch_may_hold_are_refused_before_time_is_spent_on_them(
    node: Node, topic_id: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = join(node, "m")
    monkeypatch.setattr(node.config, "message_max_bytes", 1000)
    monkeypatch.setattr(ConsumerMember, "metadata_record", lambda *_: pytest.fail("the names were encoded"))
    many = [f"t{number:03}" for number in range(300)]
    for name, epoch in (("m", member.member_epoch), ("n", 0)):
        assert refused(node.modern, "g", name, epoch, subscribed_topic_names=many) is E.UNKNOWN_SERVER_ERROR
    assert node.groups.find("g").members["m"].subscribed_topics == {"four"}


def test_the_group_is_full(tmp_path: Path) -> None:
    node = Node(tmp_path, group_consumer_max_size=1)
    try:
        node.topic("four")
        join(node, "a")
        with pytest.raises(KafkaError, match=r"maximum capacity of 1 members\.$") as caught:
            join(node, "b")
        assert caught.value.code is E.GROUP_MAX_SIZE_REACHED
        assert join(node, "a").member_epoch == 2
    finally:
        node.close()


# --- time


def test_a_silent_member_is_removed_at_its_session_timeout(node: Node, topic_id: bytes) -> None:
    two_members(node, topic_id)
    node.advance(SESSION_848_MS - 1)
    node.modern("g", "b", 3)
    assert set(node.groups.find("g").members) == {"a", "b"}
    node.advance(1)
    assert set(node.groups.find("g").members) == {"b"}
    assert given(node.modern("g", "b", 3)) == {topic_id: {0, 1, 2, 3}}, "stable one heartbeat later"
    assert node.state("g") == "Stable"


def test_a_member_that_does_not_revoke_in_time_is_removed(node: Node, topic_id: bytes) -> None:
    join(node, "a")
    node.advance(1000)
    join(node, "b")
    node.modern("g", "a", 2)
    for _ in range(REBALANCE_MS // 5000):
        assert "a" in node.groups.find("g").members
        node.advance(5000)
        if "a" in node.groups.find("g").members:
            node.modern("g", "a", 2)
    assert set(node.groups.find("g").members) == {"b"}


def test_options_of_the_group_go_before_those_of_the_broker(node: Node, topic_id: bytes) -> None:
    for name, value in (("consumer.session.timeout.ms", "50000"), ("consumer.heartbeat.interval.ms", "7000")):
        record = ConfigRecord(resource_type=RESOURCE_GROUP, resource_name="g", name=name, value=value)
        node.metadata.commit([record])
    assert join(node, "a").heartbeat_interval_ms == 7000
    node.advance(49_999)
    assert node.state("g") == "Stable"
    node.advance(1)
    assert node.state("g") == "Empty"


def test_options_of_a_group_are_held_within_the_bounds_that_the_broker_has_now(tmp_path: Path) -> None:
    """They may have been stored before an operator changed the bounds and started the broker again."""
    node = Node(
        tmp_path,
        group_consumer_max_session_timeout_ms=50_000,
        group_consumer_min_heartbeat_interval_ms=4000,
        group_consumer_heartbeat_interval_ms=4000,
        group_consumer_max_assignment_interval_ms=2000,
    )
    try:
        stored = {"session.timeout": "60000", "heartbeat.interval": "3000", "assignment.interval": "9000"}
        for name, value in stored.items():
            named = {"resource_name": "g", "name": f"consumer.{name}.ms", "value": value}
            node.metadata.commit([ConfigRecord(resource_type=RESOURCE_GROUP, **named)])
        image = node.groups.image
        assert image.consumer_times_ms("g") == (50_000, 4000)
        assert image.assignment_interval_ms("g") == 2000
        node.topic("four", 4)
        assert join(node, "a").heartbeat_interval_ms == 4000
        node.advance(49_999)
        assert node.state("g") == "Stable"
        node.advance(1)
        assert node.state("g") == "Empty"
    finally:
        node.close()


# --- static members


def test_a_static_member_leaves_for_now_and_comes_back_to_its_partitions(node: Node, topic_id: bytes) -> None:
    first = join(node, "a", instance_id="one")
    assert refused(join, node, "b", instance_id="one") is E.UNRELEASED_INSTANCE_ID
    node.modern("g", "a", -2, instance_id="one")
    back = join(node, "b", instance_id="one")
    assert (back.member_epoch, given(back)) == (first.member_epoch, {topic_id: {0, 1, 2, 3}})
    assert refused(node.modern, "g", "a", 2, instance_id="one") is E.FENCED_INSTANCE_ID
    node.crash()
    assert node.modern("g", "b", 2, instance_id="one").error_code == 0


def test_a_static_member_that_stays_away_is_removed(node: Node, topic_id: bytes) -> None:
    join(node, "a", instance_id="one")
    node.modern("g", "a", -2, instance_id="one")
    node.advance(SESSION_848_MS)
    assert node.state("g") == "Empty"


def test_a_static_member_that_had_to_revoke_may_be_away_as_long_as_any(node: Node, topic_id: bytes) -> None:
    join(node, "a", instance_id="one")
    node.advance(1000)
    join(node, "b")
    node.modern("g", "a", 2, instance_id="one")
    assert node.groups.find("g").members["a"].state == UNREVOKED
    node.modern("g", "a", -2, instance_id="one")
    node.advance(REBALANCE_MS)
    assert set(node.groups.find("g").members) == {"a", "b"}
    assert len((given(node.modern("g", "b", 3)) or {})[topic_id]) == 2, "what it had to revoke is free"
    node.advance(SESSION_848_MS - REBALANCE_MS)
    assert set(node.groups.find("g").members) == {"b"}


def test_a_restart_begins_the_time_to_revoke_anew_also_for_a_static_member_that_is_away(
    node: Node, topic_id: bytes
) -> None:
    """As in Kafka (GroupMetadataManager.onLoaded)."""
    join(node, "a", instance_id="one")
    node.advance(1000)
    join(node, "b")
    node.modern("g", "a", 2, instance_id="one")
    node.modern("g", "a", -2, instance_id="one")
    node.restart()
    assert node.modern("g", "b", 3).error_code == 0
    node.advance(REBALANCE_MS - 1)
    assert set(node.groups.find("g").members) == {"a", "b"}
    node.advance(1)
    assert set(node.groups.find("g").members) == {"b"}


# --- topics


def test_a_topic_that_appears_or_grows_is_given_out(node: Node) -> None:
    joined = node.modern("g", "a", subscribed_topic_names=["later"])
    assert given(joined) == {}
    topic_id = node.topic("later", 1)
    node.advance(1000)
    answer = node.modern("g", "a", joined.member_epoch)
    assert given(answer) == {topic_id: {0}}
    node.metadata.create_partitions("later", 3)
    node.advance(1000)
    answer = node.modern("g", "a", answer.member_epoch)
    assert given(answer) == {topic_id: {0, 1, 2}}
    node.metadata.delete_topic("later")
    node.advance(1000)
    assert given(node.modern("g", "a", answer.member_epoch)) == {}


def test_an_expression_follows_the_topics(node: Node) -> None:
    first = node.topic("log-1")
    joined = node.modern("g", "a", subscribed_topic_names=[], subscribed_topic_regex="log-.*")
    assert given(joined) == {}
    node.advance(1000)
    answer = node.modern("g", "a", joined.member_epoch)
    assert given(answer) == {first: {0, 1}}
    node.topic("catalog-1")
    second = node.topic("log-2")
    node.advance(10_001)
    answer = node.modern("g", "a", answer.member_epoch)  # notices new topics, asks for a resolution
    node.advance(0)
    answer = node.modern("g", "a", answer.member_epoch)
    assert given(answer) == {first: {0, 1}, second: {0, 1}}
    node.crash()
    assert set(node.groups.find("g").resolved["log-.*"].topics) == {"log-1", "log-2"}
    node.modern("g", "a", answer.member_epoch, subscribed_topic_regex="")
    assert not node.groups.find("g").resolved


def test_a_heartbeat_costs_the_same_however_many_topics_an_expression_matches(node: Node) -> None:
    said = {"subscribed_topic_names": [], "subscribed_topic_regex": "log-.*"}
    epoch = node.modern("g", "a", **said).member_epoch
    node.advance(10_001)  # late enough to look whether the topics are known
    group = node.groups.find("g")
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="a", member_epoch=node.modern("g", "a", epoch).member_epoch
    )
    costs = []
    for count in (0, 1000):
        found = frozenset(f"log-{number}" for number in range(count))
        group.resolved["log-.*"] = Resolved(
            found, node.groups.image.metadata.last_offset, group.resolved["log-.*"].timestamp_ms
        )
        costs.append(calls_of(node.groups.consumer.heartbeat, request, 1, Client("c", "/127.0.0.1"))[1])
    assert costs[0] == costs[1]


@pytest.mark.parametrize(
    ("said_first", "said_then", "is_due"),
    [("log-1", "log-1", False), ("log-1", "log-2", True), ("log-2", "log-1", True), ("", "log-1", False)],
)
def test_expressions_are_matched_again_when_one_comes_or_goes(
    node: Node, said_first: str, said_then: str, is_due: bool
) -> None:
    """`other` has log-1 all the time, so that only log-2 comes and goes."""
    node.modern("g", "other", subscribed_topic_names=[], subscribed_topic_regex="log-1")
    node.advance(10_001)
    epoch = node.modern("g", "a", subscribed_topic_names=[], subscribed_topic_regex=said_first or None).member_epoch
    node.advance(10_001)
    group = node.groups.find("g")
    before = {each.timestamp_ms for each in group.resolved.values()}
    node.modern("g", "a", epoch, subscribed_topic_regex=said_then)
    node.advance(0)
    assert ({each.timestamp_ms for each in group.resolved.values()} != before) is is_due
    assert group.resolved.keys() == group.regexes.keys()


def test_many_expressions_are_matched_a_step_at_a_time(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        node.topic(f"log-{number}")
    for number in range(3):
        node.modern("g", f"m{number}", subscribed_topic_names=[], subscribed_topic_regex=f"log-{number}")
    group = node.groups.find("g")
    monkeypatch.setattr(consumer_regex, "WORK_PER_STEP", 1200)
    steps = 0
    while not (decision := consumer_regex.resolve(group, node.groups.image, 0)).records:
        steps += 1
        assert decision.timers == [("g", REGEX, "", 0, False)]
    assert steps > 1
    assert group.matching is None
    found = {each.key.regular_expression: each.value.topics for each in decision.records if each.key.API_KEY == 16}
    assert found == {f"log-{number}": [f"log-{number}"] for number in range(3)}


def test_an_expression_whose_topics_cannot_be_written_is_tried_again_in_time(node: Node) -> None:
    first = node.topic("log-1")
    joined = node.modern("g", "a", subscribed_topic_names=["log-0"])
    node.faults.arm("group.before_append", "error", "MESSAGE_TOO_LARGE", nth=2)
    said = {"subscribed_topic_names": [], "subscribed_topic_regex": "log-.*"}
    epoch = node.modern("g", "a", joined.member_epoch, **said).member_epoch
    group = node.groups.find("g")
    for _ in range(9):
        node.advance(1000)
        epoch = node.modern("g", "a", epoch).member_epoch
        assert not group.resolved, "heartbeats do not have it matched over and over"
    node.faults.disarm()
    node.advance(1000)
    assert group.resolved["log-.*"].topics == {"log-1"}
    assert given(node.modern("g", "a", epoch)) == {first: {0, 1}}


def test_a_costly_expression_stops_at_every_name(node: Node) -> None:
    for number in range(20):
        node.topic("t" * 200 + str(number))
    costly = "|".join(f"(.*{number}.*)" for number in range(1500))
    node.modern("g", "a", subscribed_topic_names=[], subscribed_topic_regex=costly)
    group = node.groups.find("g")
    group.matching = None
    image = node.groups.image
    steps = 1
    while not consumer_regex.resolve(group, image, 0).records:
        steps += 1
    assert steps > 20, "a step is one compilation or one match, not all"


# --- offsets


def test_commits_are_taken_at_the_epoch_or_where_the_partition_was_already_there(node: Node, topic_id: bytes) -> None:
    two_members(node, topic_id)
    group = node.groups.find("g")
    mine = next(name for name, member in group.members.items() if 0 in member.assigned[topic_id])
    other = "b" if mine == "a" else "a"
    since = group.members[mine].assigned[topic_id][0]
    assert node.commit("g", "four", 1, mine, 3) == 0
    assert refused(node.commit, "g", "four", 1, mine, 4) is E.STALE_MEMBER_EPOCH
    if since < 3:
        assert node.commit("g", "four", 1, mine, since) == 0
    assert refused(node.commit, "g", "four", 1, mine, since - 1) is E.STALE_MEMBER_EPOCH
    assert refused(node.commit, "g", "four", 1, other, 2) is E.STALE_MEMBER_EPOCH
    assert refused(node.commit, "g", "four", 1, "x", 3) is E.UNKNOWN_MEMBER_ID
    assert refused(node.commit, "g", "four", 1) is E.UNKNOWN_MEMBER_ID
    assert refused(node.commit, "g", "four", 1, mine, 3, version=8) is E.UNSUPPORTED_VERSION


# --- restart


def test_everything_is_back_after_a_crash_at_any_step(node: Node, topic_id: bytes) -> None:
    join(node, "a")
    node.advance(1000)
    node.crash()
    join(node, "b")
    node.crash()
    keeps = given(node.modern("g", "a", 2))
    assert keeps is not None
    node.crash()
    node.modern("g", "a", 2, topic_partitions=keeps)
    node.crash()
    taken = given(node.modern("g", "b", 3))
    assert taken == {topic_id: {0, 1, 2, 3} - keeps[topic_id]}
    node.crash()
    assert node.state("g") == "Stable"
    node.modern("g", "a", -1)
    node.crash()
    assert set(node.groups.find("g").members) == {"b"}
    assert set(node.groups.find("g").target) == {"b"}
    node.modern("g", "b", -1)
    node.delete_group("g")
    node.crash()
    assert node.state("g") == "none"


# --- migration


def classic_assignment(topic: str, *partitions: int) -> bytes:
    numbers = b"".join(each.to_bytes(4, "big") for each in partitions)
    parts = (b"\0\0", b"\0\0\0\1", len(topic).to_bytes(2, "big"), topic.encode(), len(partitions).to_bytes(4, "big"))
    return b"".join((*parts, numbers, b"\xff\xff\xff\xff"))


def classic_group(node: Node) -> Any:
    mine = {"protocols": (("range", subscription("four")),)}
    joined = node.member("g", **mine)
    node.sync("g", joined, {joined.member_id: classic_assignment("four", 0, 1, 2, 3)})
    return joined


def test_a_classic_group_is_upgraded_by_a_modern_member_and_goes_back_when_it_leaves(
    node: Node, topic_id: bytes
) -> None:
    old = classic_group(node)
    node.commit("g", "four", 5, old.member_id, old.generation_id)
    joined = join(node, "a")
    assert given(joined) == {}, "the classic member holds all"
    assert node.groups.find("g").TYPE == "consumer"
    assert node.committed("g", "four") == (5, 0)
    assert node.beat("g", old).error_code == E.REBALANCE_IN_PROGRESS
    again = node.join("g", old.member_id, protocols=(("range", subscription("four")),))
    assert again.error_code == 0
    node.crash()
    assert node.groups.find("g").TYPE == "consumer"
    node.modern("g", "a", -1)
    assert node.groups.find("g").TYPE == "classic"
    assert node.state("g") == "PreparingRebalance"
    node.crash()
    assert node.groups.find("g").TYPE == "classic"
    assert node.state("g") == "Stable"


def test_a_group_that_changes_its_protocol_is_not_upgraded(node: Node, topic_id: bytes) -> None:
    """As in Apache Kafka, which looks for the subscription that belongs to the protocol of the generation."""
    both = (("range", subscription("four")), ("roundrobin", subscription("four")))
    first = node.member("g", protocols=both)
    waiting = node.join("g", version=3, protocols=both[1:])
    assert not waiting.is_done
    with pytest.raises(KafkaError) as caught:
        join(node, "a")
    assert caught.value.code is E.UNKNOWN_SERVER_ERROR
    assert node.groups.find("g").TYPE == "classic"
    assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS, "it was answered before the members were looked at"
    # It joins again, as a client does, and the rebalance goes on.
    again = node.join("g", waiting.response.member_id, version=3, protocols=both[1:])
    assert not again.is_done
    assert node.join("g", first.member_id, version=3, protocols=both).protocol_name == "roundrobin"
    assert (again.response.error_code, again.response.generation_id) == (E.NONE, 2)


def test_a_sync_that_waits_is_answered_where_its_group_cannot_be_upgraded(node: Node, topic_id: bytes) -> None:
    bad = (("range", b"\0"),)
    leader = node.join("g", version=3, protocols=bad)
    waiting = node.join("g", version=3, protocols=bad)
    leader = node.join("g", leader.member_id, version=3, protocols=bad)
    parked = node.sync("g", waiting.response)
    assert not parked.is_done
    assert refused(join, node, "a") is E.GROUP_ID_NOT_FOUND
    assert parked.response.error_code == E.REBALANCE_IN_PROGRESS
    assert node.state("g") == "CompletingRebalance"
    assert node.sync("g", leader, {}).error_code == E.NONE


def test_classic_members_of_an_upgraded_group_need_a_protocol_in_common(node: Node, topic_id: bytes) -> None:
    classic_group(node)
    node.modern("g", "modern", subscribed_topic_names=["four"])
    assert node.groups.find("g").TYPE == "consumer"
    for name, code in (("roundrobin", E.INCONSISTENT_GROUP_PROTOCOL), ("range", E.NONE)):
        assert node.member("g", protocols=((name, subscription("four")),)).error_code == code


def test_a_classic_member_is_looked_for_before_its_subscription_is_read(node: Node, topic_id: bytes) -> None:
    join(node, "modern")
    bad = (("range", b""),)
    assert node.join("g", "no", group_instance_id="i", protocols=bad).error_code == E.UNKNOWN_MEMBER_ID
    assert node.join("g", "", group_instance_id="i", protocols=bad).error_code == E.UNKNOWN_SERVER_ERROR
    assert node.join("g", "no", protocols=bad).error_code == E.UNKNOWN_SERVER_ERROR
    assert set(node.groups.find("g").members) == {"modern"}


def test_the_epochs_of_an_upgraded_group_go_on_from_its_generation(node: Node, topic_id: bytes) -> None:
    old = classic_group(node)
    for generation in (2, 3, 4):
        again = node.join("g", old.member_id, protocols=(("range", subscription("four")),))
        assert again.generation_id == generation
        node.sync("g", again, {old.member_id: classic_assignment("four", 0, 1, 2, 3)})
    assert join(node, "a").member_epoch == 5


def test_a_classic_member_that_does_not_follow_is_removed(node: Node, topic_id: bytes) -> None:
    old = classic_group(node)
    join(node, "a")
    for _ in range(REBALANCE_MS // 5000):
        assert old.member_id in node.groups.find("g").members
        assert node.beat("g", old).error_code == E.REBALANCE_IN_PROGRESS
        node.advance(5000)
        node.modern("g", "a", node.groups.find("g").members["a"].member_epoch)
    assert set(node.groups.find("g").members) == {"a"}


@pytest.mark.option("group.consumer.migration.policy")
@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_migration_can_be_forbidden(tmp_path: Path, policy: str) -> None:
    node = Node(tmp_path, group_consumer_migration_policy=policy)
    try:
        node.topic("four", 4)
        classic_group(node)
        assert refused(join, node, "a") is E.GROUP_ID_NOT_FOUND
        assert node.groups.find("g").TYPE == "classic"
    finally:
        node.close()


def test_a_custom_assignors_data_is_not_lost_by_an_upgrade(node: Node, topic_id: bytes) -> None:
    joined = node.member("g", protocols=(("mine", subscription("four")),))
    assigned = classic_assignment("four", 0)[:-4] + b"\0\0\0\2hi"
    node.sync("g", joined, {joined.member_id: assigned})
    assert refused(join, node, "a") is E.GROUP_ID_NOT_FOUND
    assert node.beat("g", joined).error_code == 0


def test_a_classic_stranger_ends_an_empty_group(node: Node, topic_id: bytes) -> None:
    """As in Apache Kafka, which has removed the group when it finds that there is no classic one with such a member."""
    epoch = node.modern("g", "a", subscribed_topic_names=["four"]).member_epoch
    node.modern("g", "a", -1)
    assert node.state("g") == "Empty"
    assert node.join("g", "stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert node.state("g") == "none"
    node.crash()
    assert node.state("g") == "none"
    assert node.modern("g", "a", subscribed_topic_names=["four"]).member_epoch == epoch


@pytest.mark.parametrize("is_pending", [False, True])
def test_offsets_of_a_group_that_a_classic_stranger_ends_are_still_there(node: Node, is_pending: bool) -> None:
    node.modern("g", "a", subscribed_topic_names=["t"])
    node.modern("g", "a", -1)
    if is_pending:
        node.commit_in_transaction("g", "t", 5, (1000, 0))
    else:
        node.commit("g", "t", 5)
    assert node.join("g", "stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    if is_pending:
        node.end_transaction("g", (1000, 0), True)
    for _ in range(2):
        assert node.committed("g", "t") == (5, 0)
        assert [(one.group_id, one.group_type, one.group_state) for one in node.listed([], [])] == [
            ("g", "classic", "Empty")
        ]
        node.crash()
    node.advance(8 * 24 * 3_600_000)
    assert node.committed("g", "t") == (-1, 0)


def test_a_group_goes_back_when_a_classic_and_the_last_modern_member_leave_together(
    node: Node, topic_id: bytes
) -> None:
    mine = {"protocols": (("range", subscription("four")),)}
    first = classic_group(node)
    join(node, "a")
    second = node.join("g", node.join("g", **mine).member_id, **mine)
    assert len(node.groups.find("g").members) == 3
    node.leave("g", first.member_id, "a")
    assert node.groups.find("g").TYPE == "classic"
    assert set(node.groups.find("g").members) == {second.member_id}


def test_a_group_does_not_go_back_to_a_protocol_of_which_a_members_bytes_do_not_parse(
    node: Node, topic_id: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    join(node, "a")
    mine, patient = subscription("four"), {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 100_000}
    bad = node.member("g", protocols=(("range", mine), ("roundrobin", b"\0")), **patient)
    others = [node.member("g", protocols=(("roundrobin", mine), ("range", mine)), **patient) for _ in range(2)]
    assert refused(node.modern, "g", "a", -1) is E.GROUP_ID_NOT_FOUND
    node.advance(SESSION_848_MS)
    assert "Traceback" not in caplog.text
    assert "a" in node.groups.find("g").members
    node.leave("g", bad.member_id)
    node.advance(RETRY_MS)
    assert set(node.groups.find("g").members) == {each.member_id for each in others}
    assert node.groups.find("g").TYPE == "classic"
