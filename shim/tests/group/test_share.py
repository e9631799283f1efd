"""Share groups (KIP-932) in the group coordinator: membership, assignment, states of share partitions, offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode as E
from kafka_shim.errors import KafkaError
from kafka_shim.group.assignors import GroupSpec, MemberSpec
from kafka_shim.group.client import Client
from kafka_shim.group.share import ShareGroup
from kafka_shim.group.share_assignor import assign_simple
from kafka_shim.group.share_describe import described_share
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.metadata.image import RESOURCE_GROUP, RESOURCE_TOPIC
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.share.persister import ShareStatePersister
from kafka_shim.tests.group.harness import Node

G = "g"


class ShareNode(Node):
    """A node with a share coordinator behind its group coordinator."""

    def start_coordinator(self) -> None:
        super().start_coordinator()
        self.state = ShareStatePersister(
            clock=self.clock, config=self.config, logs=self.logs, metadata=self.metadata, faults=self.faults
        )
        self.state.start()
        self.groups.share.persister = self.state

    def stop_coordinator(self) -> None:
        super().stop_coordinator()
        self.state.stop()

    def beat(self, member_id: str, epoch: int = 0, *topics: str, group: str = G, **fields: Any) -> Any:
        """ShareGroupHeartbeat, and what follows its response. Raises the error of the response."""
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=list(topics) or None,
            **fields,
        )
        outcome = self.groups.share.heartbeat(request, Client("c", "/127.0.0.1"))
        assert isinstance(outcome, Outcome)
        if outcome.follow_up is not None:
            outcome.follow_up()
        self.advance(0)
        return outcome.response

    def refusal(self, *arguments: Any, **fields: Any) -> E:
        with pytest.raises(KafkaError) as caught:
            self.beat(*arguments, **fields)
        return caught.value.code

    def stable(self, member_id: str, *topics: str, group: str = G) -> Any:
        """A member with its assignment: it joins, and a heartbeat later the new partitions have a state."""
        joined = self.beat(member_id, 0, *topics, group=group)
        self.advance(1000)
        return self.beat(member_id, joined.member_epoch, group=group)

    def group(self, group: str = G) -> ShareGroup:
        found = self.groups.find(group)
        assert isinstance(found, ShareGroup)
        return found

    def set_option(self, name: str, value: str) -> None:
        record = ConfigRecord(resource_type=RESOURCE_GROUP, resource_name=G, name=name, value=value)
        self.metadata.commit([record])


def held(response: Any) -> dict[bytes, list[int]]:
    return {bytes(entry.topic_id): list(entry.partitions) for entry in response.assignment.topic_partitions}


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[..., ShareNode]]:
    made: list[ShareNode] = []

    def make(**options: object) -> ShareNode:
        made.append(ShareNode(tmp_path / str(len(made)), **options))
        made[-1].topic("t")
        return made[-1]

    yield make
    for node in made:
        node.close()


@pytest.fixture
def node(make_node: Callable[..., ShareNode]) -> ShareNode:
    return make_node()


# --- membership


def test_partitions_are_assigned_once_they_have_a_state(node: ShareNode) -> None:
    topic_id = node.metadata.image.topics["t"].topic_id
    joined = node.beat("a", 0, "t")
    assert (joined.member_epoch, joined.heartbeat_interval_ms, held(joined)) == (2, 5000, {})
    assert node.state.read_summary(G, topic_id, 1) == (2, 0, -1, -1)
    # A new target waits for the interval between assignments; the epoch is bumped at once.
    assert node.beat("a", 2).assignment is None
    node.advance(1000)
    response = node.beat("a", 2)
    assert (response.member_epoch, held(response)) == (3, {topic_id: [0, 1]})
    assert node.beat("a", 3).assignment is None


def test_members_share_and_leave(node: ShareNode) -> None:
    topic_id = node.metadata.image.topics["t"].topic_id
    first = node.stable("a", "t")
    second = node.beat("b", 0, "t")
    node.advance(1000)
    first, second = node.beat("a", first.member_epoch), node.beat("b", second.member_epoch)
    assert sorted(held(first)[topic_id] + held(second)[topic_id]) == [0, 1]
    third = node.beat("c", 0, "t")
    node.advance(1000)
    third = node.beat("c", third.member_epoch)
    # Three members share two partitions: each has one at least.
    assert len(held(third)[topic_id]) >= 1
    left = node.beat("c", -1)
    assert (left.member_id, left.member_epoch) == ("c", -1)
    assert node.refusal("c", third.member_epoch) is E.UNKNOWN_MEMBER_ID
    assert sorted(node.group().members) == sorted(node.group().target) == ["a", "b"]


def test_epochs_are_checked(node: ShareNode) -> None:
    stable = node.stable("a", "t")
    assert stable.member_epoch == 3
    assert node.refusal("a", 4) is E.FENCED_MEMBER_EPOCH
    assert node.refusal("a", 1) is E.FENCED_MEMBER_EPOCH
    assert node.beat("a", 2).member_epoch == 3, "the response with the new epoch was lost"
    assert node.beat("a", 0, "t").member_epoch == 3
    assert node.refusal("x", 1) is E.UNKNOWN_MEMBER_ID
    assert node.refusal("a", 1, group="other") is E.GROUP_ID_NOT_FOUND


def test_malformed_requests_are_refused(node: ShareNode) -> None:
    assert node.refusal("a", 0) is E.INVALID_REQUEST
    assert node.refusal(" ", 0, "t") is E.INVALID_REQUEST
    assert node.refusal("a", 0, "t", group="") is E.INVALID_REQUEST
    assert node.refusal("a", 0, "t", rack_id="") is E.INVALID_REQUEST
    assert node.refusal("a", -2) is E.INVALID_REQUEST


def test_a_group_of_another_kind_is_refused_and_refuses(node: ShareNode) -> None:
    node.modern("consumers", "m", subscribed_topic_names=["t"])
    assert node.refusal("a", 0, "t", group="consumers") is E.GROUP_ID_NOT_FOUND
    node.stable("a", "t")
    with pytest.raises(KafkaError) as caught:
        node.modern(G, "m", subscribed_topic_names=["t"])
    assert caught.value.code is E.GROUP_ID_NOT_FOUND
    node.beat("a", -1)
    assert node.join(G).error_code == E.INCONSISTENT_GROUP_PROTOCOL, "an empty share group stays one"
    with pytest.raises(KafkaError) as caught:
        node.commit(G, "t", 1)
    assert caught.value.code is E.GROUP_ID_NOT_FOUND


def test_an_empty_share_group_does_not_expire(make_node: Callable[..., ShareNode]) -> None:
    node = make_node(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    node.stable("a", "t")
    node.beat("a", -1)
    node.advance(120_000)
    assert node.group().state_name == "Empty"


def test_a_changed_subscription_moves_the_assignment(node: ShareNode) -> None:
    other = node.topic("u", 1)
    epoch = node.stable("a", "t").member_epoch
    assert held(node.beat("a", epoch, "u")) == {}
    node.advance(1000)
    response = node.beat("a", node.group().members["a"].member_epoch)
    assert held(response) == {other: [0]}


def test_new_partitions_are_initialized_and_assigned(node: ShareNode) -> None:
    topic_id = node.metadata.image.topics["t"].topic_id
    epoch = node.stable("a", "t").member_epoch
    node.metadata.create_partitions("t", 3)
    node.advance(1000)
    epoch = node.beat("a", epoch).member_epoch
    assert node.state.read_summary(G, topic_id, 2)[0] == epoch
    node.advance(1000)
    assert held(node.beat("a", epoch)) == {topic_id: [0, 1, 2]}


def test_everything_is_back_after_a_crash(node: ShareNode) -> None:
    stable = node.stable("a", "t")
    before = {name: getattr(node.group(), name) for name in ("group_epoch", "assignment_epoch", "target", "members")}
    states = {topic_id: found.partitions for topic_id, found in node.group().initialized.items()}
    node.crash()
    assert {name: getattr(node.group(), name) for name in before} == before
    assert {topic_id: found.partitions for topic_id, found in node.group().initialized.items()} == states
    assert node.beat("a", stable.member_epoch).member_epoch == stable.member_epoch
    node.advance(45_001)
    assert node.group().is_empty, "the session started again"


# --- options


@pytest.mark.option("group.share.session.timeout.ms", "group.share.heartbeat.interval.ms")
def test_times_of_members(make_node: Callable[..., ShareNode]) -> None:
    node = make_node(group_share_session_timeout_ms=50_000, group_share_heartbeat_interval_ms=7000)
    assert node.beat("a", 0, "t").heartbeat_interval_ms == 7000
    node.advance(49_999)
    assert not node.group().is_empty
    node.advance(2)
    assert node.group().is_empty


@pytest.mark.option("group:share.session.timeout.ms", "group:share.heartbeat.interval.ms")
def test_times_of_members_of_one_group(node: ShareNode) -> None:
    node.set_option("share.session.timeout.ms", "50000")
    node.set_option("share.heartbeat.interval.ms", "6000")
    assert node.beat("a", 0, "t").heartbeat_interval_ms == 6000
    node.advance(49_999)
    assert not node.group().is_empty
    node.advance(2)
    assert node.group().is_empty


@pytest.mark.parametrize("level", ["broker", "group"])
@pytest.mark.option("group.share.assignment.interval.ms", "group:share.assignment.interval.ms")
def test_the_pause_between_assignments(level: str, make_node: Callable[..., ShareNode]) -> None:
    node = make_node(**({"group_share_assignment_interval_ms": 5000} if level == "broker" else {}))
    if level == "group":
        node.set_option("share.assignment.interval.ms", "5000")
    epoch = node.beat("a", 0, "t").member_epoch
    node.advance(4999)
    assert node.beat("a", epoch).assignment is None
    node.advance(1)
    assert node.beat("a", epoch).assignment is not None


@pytest.mark.option("group.share.max.size")
def test_the_largest_group(make_node: Callable[..., ShareNode]) -> None:
    node = make_node(group_share_max_size=1)
    node.beat("a", 0, "t")
    assert node.refusal("b", 0, "t") is E.GROUP_MAX_SIZE_REACHED
    assert node.beat("a", 0, "t").member_id == "a"


@pytest.mark.option("group.share.initialize.retry.interval.ms")
def test_a_crash_before_the_states_were_there_is_made_up_for(make_node: Callable[..., ShareNode]) -> None:
    node = make_node(group_share_initialize_retry_interval_ms=7000)
    topic_id = node.metadata.image.topics["t"].topic_id
    request = ShareGroupHeartbeatRequest(group_id=G, member_id="a", subscribed_topic_names=["t"])
    epoch = node.groups.share.heartbeat(request, Client("c", "/127.0.0.1")).response.member_epoch
    assert node.group().initializing.keys() == {topic_id}
    node.advance(6999)
    node.beat("a", epoch)
    assert node.group().initializing.keys() == {topic_id}, "another request is at it"
    node.advance(1)
    node.beat("a", epoch)
    assert node.group().initialized.keys() == {topic_id}


def test_a_state_that_cannot_be_written_is_tried_again(node: ShareNode) -> None:
    node.faults.arm("share.before_append", "error", "NOT_ENOUGH_REPLICAS")
    epoch = node.beat("a", 0, "t").member_epoch
    assert (node.group().initializing, node.group().initialized) == ({}, {})
    node.faults.disarm()
    node.beat("a", epoch)
    assert len(node.group().initialized) == 1


def initialized(node: ShareNode, topic_id: bytes, count: int) -> list[int]:
    """The partitions that have a state in the share coordinator."""

    def has_state(partition: int) -> bool:
        try:
            node.state.read_state(G, topic_id, partition, 0)
        except KafkaError:
            return False
        return True

    return [partition for partition in range(count) if has_state(partition)]


def subscribe(node: ShareNode, *topics: str) -> Callable[[], None]:
    """A heartbeat; what it returns initialises the first slice of the share partitions."""
    request = ShareGroupHeartbeatRequest(group_id=G, member_id="a", subscribed_topic_names=list(topics))
    outcome = node.groups.share.heartbeat(request, Client("c", "/127.0.0.1"))
    assert isinstance(outcome, Outcome)
    assert outcome.follow_up is not None
    return outcome.follow_up


def test_names_that_no_batch_may_hold_are_refused_before_time_is_spent_on_them(
    node: ShareNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.config, "message_max_bytes", 1000)
    looked_up: list[Any] = []
    monkeypatch.setattr(type(node.groups.image), "metadata_hash", lambda image, names: looked_up.append(names) or 0)
    many = [f"t{number:03}" for number in range(300)]
    assert node.refusal("m", 0, *many) is E.UNKNOWN_SERVER_ERROR
    assert (node.groups.find(G), looked_up) == (None, [])
    member_epoch = node.beat("m", 0, *many[:100] * 3).member_epoch
    assert member_epoch > 0, "a name counts once"
    assert len(looked_up) == 1
    # What the topic itself allows counts.
    own = {"resource_type": RESOURCE_TOPIC, "resource_name": GROUP_METADATA_TOPIC}
    node.metadata.alter_configs([ConfigRecord(**own, name="max.message.bytes", value="2000")])
    assert node.beat("m", member_epoch, *many).error_code == 0


def test_many_partitions_get_their_states_in_slices(node: ShareNode) -> None:
    node.topic("many", 100)
    topic_id = node.metadata.image.topics["many"].topic_id

    def first_turn() -> None:
        subscribe(node, "many")()
        assert 0 < len(initialized(node, topic_id, 100)) < 50
        assert node.group().initializing.keys() == {topic_id}

    node.call(first_turn)
    node.advance(1)
    assert initialized(node, topic_id, 100) == list(range(100))
    assert (node.group().initializing, len(node.group().initialized[topic_id].partitions)) == ({}, 100)


def test_what_happens_between_two_slices_counts(node: ShareNode) -> None:
    """One topic is deleted, and the start offset of a partition of the other is altered."""
    for name in ("gone", "many"):
        node.topic(name, 60)
    topics = node.metadata.image.topics
    gone, many = topics["gone"].topic_id, topics["many"].topic_id

    def first_turn() -> None:
        subscribe(node, "gone", "many")()
        node.metadata.delete_topic("gone")
        leave = ShareGroupHeartbeatRequest(group_id=G, member_id="a", member_epoch=-1)
        node.groups.share.heartbeat(leave, Client("c", "/127.0.0.1"))

    async def alter() -> None:
        first_turn()
        errors, _ = await node.groups.share.alter_offsets(G, {many: {59: 7}})
        assert not errors

    node.finish(alter())
    node.advance(1)
    assert not {gone} & (node.group().initialized.keys() | node.group().initializing.keys())
    assert node.state.read_summary(G, many, 59)[2] == 7
    assert node.group().initialized[many].partitions == frozenset(range(60))


# --- administration


def test_description_and_list(node: ShareNode) -> None:
    node.stable("a", "t")
    group = described_share(G, node.group(), node.groups.image)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        3,
        3,
        "simple",
    )
    (member,) = group.members
    (assigned,) = member.assignment.topic_partitions
    assert (member.member_id, member.member_epoch, assigned.topic_name, assigned.partitions) == ("a", 3, "t", [0, 1])
    assert described_share("x", None, node.groups.image).error_code == E.GROUP_ID_NOT_FOUND
    (entry,) = node.listed([], ["share"])
    assert (entry.group_id, entry.protocol_type, entry.group_state, entry.group_type) == (G, "share", "Stable", "share")


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_a_member_said_of_itself_is_described(node: ShareNode, is_restarted: bool) -> None:
    node.beat("a", 0, "t", rack_id="r")
    if is_restarted:
        node.restart()
    (member,) = described_share(G, node.group(), node.groups.image).members
    assert (member.rack_id, member.client_id, member.client_host) == ("r", "c", "/127.0.0.1")
    assert member.subscribed_topic_names == ["t"]


def test_a_group_is_removed_with_its_states(node: ShareNode) -> None:
    topic_id = node.metadata.image.topics["t"].topic_id
    node.stable("a", "t")
    with pytest.raises(KafkaError) as caught:
        node.delete_group(G)
    assert caught.value.code is E.NON_EMPTY_GROUP
    node.beat("a", -1)
    node.faults.arm("share.before_append", "error", "NOT_ENOUGH_REPLICAS")
    with pytest.raises(KafkaError) as caught:
        node.delete_group(G)
    assert caught.value.code is E.COORDINATOR_NOT_AVAILABLE
    assert node.group().deleting == {topic_id}
    node.faults.disarm()
    node.delete_group(G)
    assert node.groups.find(G) is None
    assert node.state.read_summary(G, topic_id, 0) == (0, 0, -1, -1)
    node.crash()
    assert node.groups.find(G) is None


def test_a_deleted_topic_leaves_the_group(node: ShareNode) -> None:
    epoch = node.stable("a", "t").member_epoch
    node.metadata.delete_topic("t")
    node.advance(1000)
    assert (node.group().initialized, node.group().initializing) == ({}, {})
    assert held(node.beat("a", epoch)) == {}


def test_a_topic_deleted_before_the_group_was_read_leaves_it_too(node: ShareNode) -> None:
    node.stable("a", "t")
    node.restart()
    node.metadata.delete_topic("t")
    assert node.group().initialized == {}


@pytest.mark.parametrize("ending", ["later", "crash"])
def test_a_deleted_topic_that_could_not_be_forgotten_is_forgotten(node: ShareNode, ending: str) -> None:
    node.topic("u", 1)
    epoch = node.stable("a", "t", "u").member_epoch
    node.faults.arm("group.before_append", "error", "KAFKA_STORAGE_ERROR")
    node.metadata.delete_topic("t")
    node.faults.disarm()
    node.topic("t")
    assert len(node.group().initialized) == 2
    if ending == "later":
        for _ in range(2):
            node.advance(30_000)
            epoch = node.beat("a", epoch).member_epoch
    else:
        node.crash()
    for _ in range(3):  # the new topic has a state, and is assigned
        node.advance(5000)
        epoch = node.beat("a", epoch).member_epoch
    topics = node.metadata.image.topics
    assert node.group().initialized.keys() == {topics[name].topic_id for name in "tu"}
    node.advance(5000)
    assert node.beat("a", epoch).member_epoch == epoch, "nothing is left to assign"
    node.beat("a", -1)
    node.finish(node.groups.delete_group(G))
    assert node.groups.find(G) is None


def test_start_offsets_are_altered_and_deleted(node: ShareNode) -> None:
    share, finish = node.groups.share, node.finish
    topic_id = node.metadata.image.topics["t"].topic_id
    assert finish(share.alter_offsets(G, {topic_id: {0: 7, 1: 9}})) == ({}, [])
    assert share.initialized_partitions(G) == {topic_id: [0, 1]}
    assert node.state.read_summary(G, topic_id, 1) == (1, 0, 9, 0)
    assert node.group().is_empty
    epoch = node.beat("a", 0, "t").member_epoch
    assert len(node.group().target["a"][topic_id]) == 2, "what has a state is assigned at once"
    for refused in (lambda: share.alter_offsets(G, {topic_id: {0: 1}}), lambda: share.delete_offsets(G, ["t"])):
        with pytest.raises(KafkaError) as caught:
            finish(refused())
        assert caught.value.code is E.NON_EMPTY_GROUP
    node.beat("a", -1)
    assert epoch == 2
    refused_topics, done, _ = finish(share.delete_offsets(G, ["t", "x"]))
    assert [(name, error.code) for name, error in refused_topics] == [("x", E.UNKNOWN_TOPIC_OR_PARTITION)]
    assert done == [(topic_id, "t", None)]
    assert share.initialized_partitions(G) == {}
    assert (node.group().deleting, node.state.read_summary(G, topic_id, 0)[2]) == (frozenset(), -1)
    with pytest.raises(KafkaError) as caught:
        finish(share.delete_offsets("none", ["t"]))
    assert caught.value.code is E.GROUP_ID_NOT_FOUND


def test_errors_of_states_are_those_of_partitions(node: ShareNode) -> None:
    share = node.groups.share
    topic_id = node.metadata.image.topics["t"].topic_id
    node.faults.arm("share.before_append", "error", "NOT_ENOUGH_REPLICAS", nth=2)
    errors, _ = node.finish(share.alter_offsets(G, {topic_id: {0: 7, 1: 9}}))
    assert {key: error.code for key, error in errors.items()} == {(topic_id, 1): E.COORDINATOR_NOT_AVAILABLE}
    assert share.initialized_partitions(G) == {}


# --- administration of many partitions


MANY = 100


def begun(node: ShareNode, work: Any, *, turns: int) -> asyncio.Future[Any]:
    """Begin work in slices, and let so many turns of the loop pass."""

    async def run() -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        for _ in range(turns):
            await asyncio.sleep(0)
        return task

    return node.loop.run_until_complete(run())


def altered(node: ShareNode, topic_id: bytes, offset: int) -> list[int]:
    """The partitions that begin there."""
    return [number for number in range(MANY) if node.state.read_summary(G, topic_id, number)[2] == offset]


def many(node: ShareNode) -> bytes:
    node.topic("many", MANY)
    return node.metadata.image.topics["many"].topic_id


def test_start_offsets_of_many_partitions_are_altered_and_deleted_in_slices(node: ShareNode) -> None:
    topic_id = many(node)
    share = node.groups.share
    task = begun(node, share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    assert 0 < len(altered(node, topic_id, 7)) < MANY
    assert node.finish(asyncio.wait_for(task, None)) == ({}, [])
    assert altered(node, topic_id, 7) == sorted(node.group().initialized[topic_id].partitions) == list(range(MANY))
    task = begun(node, share.delete_offsets(G, ["many"]), turns=2)
    assert 0 < len(altered(node, topic_id, 7)) < MANY
    assert node.finish(asyncio.wait_for(task, None)) == ([], [(topic_id, "many", None)], [])
    assert (altered(node, topic_id, 7), node.group().initialized, node.group().deleting) == ([], {}, frozenset())


def test_a_group_of_many_partitions_is_removed_in_slices(node: ShareNode) -> None:
    topic_id = many(node)
    node.finish(node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}))
    task = begun(node, node.groups.delete_group(G), turns=2)
    assert 0 < len(altered(node, topic_id, 7)) < MANY
    node.finish(asyncio.wait_for(task, None))
    assert (node.groups.find(G), altered(node, topic_id, 7)) == (None, [])


def test_a_member_that_comes_during_the_removal_keeps_the_group(node: ShareNode) -> None:
    topic_id = many(node)
    node.finish(node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}))
    task = begun(node, node.groups.delete_group(G), turns=2)
    node.call(subscribe(node, "many"))
    with pytest.raises(KafkaError) as caught:
        node.finish(asyncio.wait_for(task, None))
    assert caught.value.code is E.NON_EMPTY_GROUP
    node.advance(1)
    assert node.group().initialized[topic_id].partitions == frozenset(range(MANY))
    assert altered(node, topic_id, -1) == initialized(node, topic_id, MANY) == list(range(MANY))


def test_a_group_removed_while_its_offsets_are_altered_leaves_no_state(node: ShareNode) -> None:
    topic_id = many(node)
    task = begun(node, node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    node.delete_group(G)
    errors, _ = node.finish(asyncio.wait_for(task, None))
    assert errors
    assert {error.code for error in errors.values()} <= {E.UNKNOWN_TOPIC_OR_PARTITION, E.GROUP_ID_NOT_FOUND}
    assert (node.groups.find(G), altered(node, topic_id, 7)) == (None, [])


def test_a_group_made_anew_while_offsets_were_altered_has_none_of_them(
    node: ShareNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of its partitions began at the offsets that were for the group that was removed."""
    topic_id = many(node)
    persister = node.groups.share.persister
    once_loaded, is_held = persister.once_loaded, [True]

    def held(key: Any, call: Any) -> Any:
        """As if the state of a partition took long to load."""
        while key[2] == MANY // 2 and call.func.__qualname__.startswith("ShareRequests.alter_offsets") and is_held:
            yield
        return (yield from once_loaded(key, call))

    monkeypatch.setattr(persister, "once_loaded", held)
    task = begun(node, node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    removal = begun(node, node.groups.delete_group(G), turns=MANY)
    assert (removal.result(), node.groups.find(G)) == ([], None)
    initialize = subscribe(node, "many")
    is_held.clear()
    node.call(initialize)
    errors, _ = node.finish(asyncio.wait_for(task, None))
    codes = {number: error.code for (_, number), error in errors.items() if number >= MANY // 2}
    assert codes == dict.fromkeys(range(MANY // 2, MANY), E.GROUP_ID_NOT_FOUND)
    node.advance(1)
    assert altered(node, topic_id, 7) == []
    assert altered(node, topic_id, -1) == initialized(node, topic_id, MANY) == list(range(MANY))


def test_a_group_removed_while_its_offsets_are_deleted_stays_away(node: ShareNode) -> None:
    topic_id = many(node)
    few_id = node.metadata.image.topics["t"].topic_id
    offsets = {few_id: {0: 7}, topic_id: dict.fromkeys(range(MANY), 7)}
    node.finish(node.groups.share.alter_offsets(G, offsets))
    removal = begun(node, node.groups.delete_group(G), turns=2)
    deletion = begun(node, node.groups.share.delete_offsets(G, ["t", "many"]), turns=2)
    node.finish(asyncio.wait_for(removal, None))
    assert node.groups.find(G) is None
    _, answers, _ = node.finish(asyncio.wait_for(deletion, None))
    codes = {name: error and error.code for _, name, error in answers}
    assert codes == {"t": None, "many": E.GROUP_ID_NOT_FOUND}
    assert node.groups.find(G) is None
    node.restart()
    assert node.groups.find(G) is None


def test_offsets_are_deleted_from_the_group_that_was_read_anew_meanwhile(node: ShareNode) -> None:
    """What was known before took the place of what was stored since."""
    topic_id = many(node)
    node.topic("u", 1)
    topics = node.metadata.image.topics
    few_id, new_id = topics["t"].topic_id, topics["u"].topic_id
    offsets = {few_id: {0: 7}, topic_id: dict.fromkeys(range(MANY), 7)}
    node.finish(node.groups.share.alter_offsets(G, offsets))
    deletion = begun(node, node.groups.share.delete_offsets(G, ["t", "many"]), turns=2)
    node.groups._runtime.groups_of(G).is_current = False
    assert node.finish(node.groups.share.alter_offsets(G, {new_id: {0: 9}})) == ({}, [])
    _, answers, _ = node.finish(asyncio.wait_for(deletion, None))
    assert [(name, error) for _, name, error in answers] == [("t", None), ("many", None)]
    for _ in range(2):
        assert (node.group().initialized.keys(), node.group().deleting) == ({new_id}, frozenset())
        assert altered(node, topic_id, 7) == []
        node.restart()


def test_offsets_are_altered_in_the_group_that_was_read_anew_meanwhile(node: ShareNode) -> None:
    topic_id = many(node)
    alteration = begun(node, node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    node.groups._runtime.groups_of(G).is_current = False
    assert node.finish(asyncio.wait_for(alteration, None)) == ({}, [])
    for _ in range(2):
        assert altered(node, topic_id, 7) == sorted(node.group().initialized[topic_id].partitions) == list(range(MANY))
        assert node.group().initializing == {}
        node.restart()


def test_a_group_is_removed_with_its_states_though_it_was_read_anew_meanwhile(node: ShareNode) -> None:
    topic_id = many(node)
    node.finish(node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}))
    removal = begun(node, node.groups.delete_group(G), turns=2)
    node.groups._runtime.groups_of(G).is_current = False
    node.finish(asyncio.wait_for(removal, None))
    assert (node.groups.find(G), altered(node, topic_id, 7)) == (None, [])


def test_the_end_of_an_alteration_keeps_what_was_stored_since_the_group_was_read_anew(node: ShareNode) -> None:
    """The last record was made from the group of the request's start, where the topics that were left had been
    deleted."""
    topic_id = many(node)
    node.topic("u", 1)
    topics = node.metadata.image.topics
    few_id, new_id = topics["t"].topic_id, topics["u"].topic_id
    offsets = {few_id: {0: 7}, topic_id: dict.fromkeys(range(MANY), 7)}
    alteration = begun(node, node.groups.share.alter_offsets(G, offsets), turns=2)
    node.groups._runtime.groups_of(G).is_current = False
    node.metadata.delete_topic("many")
    assert node.finish(node.groups.share.alter_offsets(G, {new_id: {0: 9}})) == ({}, [])
    errors, _ = node.finish(asyncio.wait_for(alteration, None))
    assert {key[0] for key in errors} == {topic_id}
    for _ in range(2):
        assert node.group().initialized.keys() == {few_id, new_id}
        node.restart()


def test_work_in_slices_goes_on_when_its_client_goes(node: ShareNode) -> None:
    topic_id = many(node)
    task = begun(node, node.groups.share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    task.cancel()
    node.advance(1)
    assert altered(node, topic_id, 7) == sorted(node.group().initialized[topic_id].partitions) == list(range(MANY))


def test_what_a_crash_leaves_of_work_in_slices_is_done_by_the_next_request(node: ShareNode) -> None:
    """Between its two records a topic is initialising, or deleting, as in Kafka."""
    topic_id = many(node)
    share = node.groups.share
    begun(node, share.alter_offsets(G, {topic_id: dict.fromkeys(range(MANY), 7)}), turns=2)
    node.crash()
    assert (node.group().initializing.keys(), node.group().initialized) == ({topic_id}, {})
    node.call(subscribe(node, "many"))
    node.advance(1)
    assert initialized(node, topic_id, MANY) == list(range(MANY))
    node.beat("a", -1)
    begun(node, node.groups.share.delete_offsets(G, ["many"]), turns=2)
    node.crash()
    assert (node.group().initialized, node.group().deleting) == ({}, {topic_id})
    assert node.finish(node.groups.share.delete_offsets(G, ["many"]))[1] == [(topic_id, "many", None)]
    assert initialized(node, topic_id, MANY) == []
    node.delete_group(G)
    assert node.groups.find(G) is None


# --- the assignor


def spec(members: dict[str, tuple[str, dict[str, set[int]]]], counts: dict[str, int]) -> GroupSpec:
    """Members by id with the letters of their topics and their assignment."""
    ids = {name: name.encode().rjust(16, b"\0") for name in counts}
    made = {
        member_id: MemberSpec(
            dict.fromkeys(ids[name] for name in topics),
            None,
            {ids[name]: found for name, found in assignment.items()},
        )
        for member_id, (topics, assignment) in members.items()
    }
    homogeneous = len({topics for topics, _ in members.values()}) == 1
    return GroupSpec(made, homogeneous, {}, {ids[name]: count for name, count in counts.items()})


def assigned(
    members: dict[str, tuple[str, dict[str, set[int]]]], counts: dict[str, int]
) -> dict[str, dict[str, set[int]]]:
    given = spec(members, counts)
    everything = {topic_id: set(range(count)) for topic_id, count in given.partition_counts.items()}
    return {
        member_id: {topic_id.lstrip(b"\0").decode(): found for topic_id, found in target.items() if found}
        for member_id, target in assign_simple(given, everything).items()
    }


def test_more_members_than_partitions_share_them() -> None:
    result = assigned({name: ("t", {}) for name in "abcde"}, {"t": 2})
    sizes = [len(target.get("t", ())) for target in result.values()]
    assert (min(sizes), sum(sizes)) == (1, 6)
    for partition in (0, 1):
        assert sum(partition in target["t"] for target in result.values()) == 3


def test_more_partitions_than_members_are_spread() -> None:
    result = assigned({name: ("tu", {}) for name in "abc"}, {"t": 4, "u": 3})
    assert sorted(sum(map(len, target.values())) for target in result.values()) == [2, 2, 3]
    owners = [(topic, number) for target in result.values() for topic, found in target.items() for number in found]
    assert len(owners) == len(set(owners)) == 7


def test_a_new_member_takes_from_the_others_and_nothing_else_moves() -> None:
    result = assigned({"a": ("t", {"t": {0, 1, 2, 3}}), "b": ("t", {})}, {"t": 4})
    assert len(result["a"]["t"]) == len(result["b"]["t"]) == 2
    assert assigned({name: ("t", target) for name, target in result.items()}, {"t": 4}) == result


def test_members_with_other_subscriptions() -> None:
    result = assigned({"a": ("t", {"u": {0}}), "b": ("tu", {}), "c": ("u", {"u": {0, 1}})}, {"t": 2, "u": 2})
    assert "u" not in result["a"]
    assert set(result["c"]) == {"u"}
    for topic in "tu":
        found = [number for target in result.values() for number in target.get(topic, ())]
        assert sorted(found) == [0, 1]


def test_nothing_is_assigned_without_a_state() -> None:
    given = spec({"a": ("t", {})}, {"t": 2})
    (topic_id,) = given.partition_counts
    assert assign_simple(given, {topic_id: {1}})["a"] == {topic_id: {1}}
    assert assign_simple(given, {})["a"] == {}
    assert assign_simple(GroupSpec({}, True, {}, {}), {}) == {}
