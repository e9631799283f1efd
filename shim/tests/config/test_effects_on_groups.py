"""What the options of groups and committed offsets do, in a coordinator whose clock the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.config_checks import check_group
from kafka_shim.metadata.image import RESOURCE_GROUP
from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.group.harness import TOPIC, Node
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.wire_client import Connection

E = ErrorCode


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def make(**options: object) -> Node:
        node = Node(tmp_path / f"{len(made)}", **options)
        made.append(node)
        node.topic("t", 4)
        return node

    yield make
    for node in made:
        node.close()


def code_of(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    try:
        call(*arguments, **fields)
    except KafkaError as err:
        return err.code
    return E.NONE


def join(node: Node, member_id: str, **fields: Any) -> Any:
    return node.modern("g", member_id, **{"subscribed_topic_names": ["t"], **fields})


def set_option(node: Node, name: str, value: str) -> None:
    record = ConfigRecord(resource_type=RESOURCE_GROUP, resource_name="g", name=name, value=value)
    node.metadata.commit([record])


# --- classic groups


@pytest.mark.option("group.min.session.timeout.ms", "group.max.session.timeout.ms")
def test_session_timeout_of_a_member_has_its_bounds(make_node: Callable[..., Node]) -> None:
    node = make_node(group_min_session_timeout_ms=7000, group_max_session_timeout_ms=9000)
    codes = [node.join("g", session_timeout_ms=timeout_ms).error_code for timeout_ms in (6999, 7000, 9000, 9001)]
    taken = E.MEMBER_ID_REQUIRED
    assert codes == [E.INVALID_SESSION_TIMEOUT, taken, taken, E.INVALID_SESSION_TIMEOUT]


@pytest.mark.option("group.initial.rebalance.delay.ms")
def test_empty_group_waits_for_more_members(make_node: Callable[..., Node]) -> None:
    node = make_node(group_initial_rebalance_delay_ms=1000)
    first = node.member("g")
    node.advance(999)
    assert not first.is_done
    node.advance(1)
    assert first.is_done


# --- consumer groups


@pytest.mark.option("group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms")
def test_members_are_told_the_brokers_interval_and_leave_after_its_timeout(make_node: Callable[..., Node]) -> None:
    node = make_node(group_consumer_session_timeout_ms=50_000, group_consumer_heartbeat_interval_ms=7000)
    assert join(node, "a").heartbeat_interval_ms == 7000
    node.advance(49_999)
    assert node.state("g") == "Stable"
    node.advance(1)
    assert node.state("g") == "Empty"


@pytest.mark.option("group:consumer.session.timeout.ms", "group:consumer.heartbeat.interval.ms")
def test_members_are_told_the_groups_interval_and_leave_after_its_timeout(make_node: Callable[..., Node]) -> None:
    node = make_node()
    set_option(node, "consumer.session.timeout.ms", "50000")
    set_option(node, "consumer.heartbeat.interval.ms", "7000")
    assert join(node, "a").heartbeat_interval_ms == 7000
    node.advance(49_999)
    assert node.state("g") == "Stable"
    node.advance(1)
    assert node.state("g") == "Empty"


@pytest.mark.option("group.consumer.assignment.interval.ms", "group:consumer.assignment.interval.ms")
@pytest.mark.parametrize("level", ["broker", "group"])
def test_target_is_made_again_after_the_interval(make_node: Callable[..., Node], level: str) -> None:
    node = make_node(**({"group_consumer_assignment_interval_ms": 5000} if level == "broker" else {}))
    if level == "group":
        set_option(node, "consumer.assignment.interval.ms", "5000")
    join(node, "a")
    join(node, "b")
    join(node, "c")
    group = node.groups.find("g")

    def assigned_after(delay_ms: int) -> int:
        node.advance(delay_ms)
        node.modern("g", "c", group.members["c"].member_epoch)
        return group.assignment_epoch

    assert [assigned_after(delay_ms) for delay_ms in (0, 4999, 1)] == [2, 2, 4]


@pytest.mark.option("group.consumer.assignors")
def test_assignor_that_is_not_listed_is_refused(make_node: Callable[..., Node]) -> None:
    node = make_node(group_consumer_assignors=("range",))
    assert code_of(join, node, "a", server_assignor="uniform") is E.UNSUPPORTED_ASSIGNOR
    assert code_of(join, node, "a", server_assignor="range") is E.NONE


@pytest.mark.option("group.consumer.max.size")
def test_consumer_group_takes_as_many_members_as_it_may(make_node: Callable[..., Node]) -> None:
    node = make_node(group_consumer_max_size=1)
    join(node, "a")
    assert code_of(join, node, "b") is E.GROUP_MAX_SIZE_REACHED


@pytest.mark.option("group.consumer.regex.refresh.interval.ms")
def test_expressions_are_resolved_again_after_the_interval(make_node: Callable[..., Node]) -> None:
    node = make_node(group_consumer_regex_refresh_interval_ms=20_000)
    joined = join(node, "a", subscribed_topic_names=[], subscribed_topic_regex="t.*")
    node.advance(1000)
    group = node.groups.find("g")
    resolved_ms = group.resolved["t.*"].timestamp_ms

    def is_again_after(delay_ms: int) -> bool:
        node.advance(delay_ms)
        node.modern("g", "a", group.members["a"].member_epoch)
        node.advance(0)
        return group.resolved["t.*"].timestamp_ms != resolved_ms

    assert joined.error_code == 0
    assert [is_again_after(delay_ms) for delay_ms in (18_900, 200)] == [False, True]


# --- streams groups


def stream(node: Node, member_id: str, epoch: int = 0, **fields: Any) -> Any:
    if epoch == 0:
        row = {"subtopology_id": "0", "source_topics": ["t"], "state_changelog_topics": [{"name": "log"}]}
        fields = {"topology": {"subtopologies": [row]}, **fields}
    return node.streams("g", member_id, epoch, **fields)


def make_streams_node(make_node: Callable[..., Node], level: str, name: str, value: int) -> Node:
    """A node with an option of streams groups, on the broker or the group."""
    option = "group_" + name.replace(".", "_")
    node = make_node(**({option: value} if level == "broker" else {}))
    node.topic("log", 4)
    if level == "group":
        set_option(node, name, str(value))
    return node


BOTH = pytest.mark.parametrize("level", ["broker", "group"])


@pytest.mark.option("group:streams.session.timeout.ms")
@BOTH
def test_silent_member_of_a_streams_group_leaves_after_the_timeout(make_node: Callable[..., Node], level: str) -> None:
    node = make_streams_node(make_node, level, "streams.session.timeout.ms", 50_000)
    stream(node, "a")
    node.advance(49_999)
    assert node.state("g") != "Empty"
    node.advance(1)
    assert node.state("g") == "Empty"


@pytest.mark.option("group:streams.heartbeat.interval.ms")
@BOTH
def test_members_of_a_streams_group_are_told_the_interval(make_node: Callable[..., Node], level: str) -> None:
    node = make_streams_node(make_node, level, "streams.heartbeat.interval.ms", 7000)
    assert stream(node, "a").heartbeat_interval_ms == 7000


@pytest.mark.option("group.streams.initial.rebalance.delay.ms", "group:streams.initial.rebalance.delay.ms")
@BOTH
def test_first_target_of_a_streams_group_waits(make_node: Callable[..., Node], level: str) -> None:
    node = make_streams_node(make_node, level, "streams.initial.rebalance.delay.ms", 1500)
    stream(node, "a")
    stream(node, "a")
    node.advance(1499)
    assert node.groups.find("g").assignment_epoch == 1
    node.advance(1)
    assert node.groups.find("g").assignment_epoch == 2


@pytest.mark.option("group.streams.assignment.interval.ms", "group:streams.assignment.interval.ms")
@BOTH
def test_target_of_a_streams_group_is_made_again_after_the_interval(make_node: Callable[..., Node], level: str) -> None:
    node = make_streams_node(make_node, level, "streams.assignment.interval.ms", 5000)
    set_option(node, "streams.initial.rebalance.delay.ms", "0")
    stream(node, "a")
    stream(node, "b")
    group = node.groups.find("g")

    def assigned_after(delay_ms: int) -> int:
        node.advance(delay_ms)
        stream(node, "b", group.members["b"].member_epoch)
        return group.assignment_epoch

    assert [assigned_after(delay_ms) for delay_ms in (0, 4999, 1)] == [2, 2, 3]


@pytest.mark.option("group.streams.num.standby.replicas", "group:streams.num.standby.replicas")
@BOTH
def test_tasks_with_state_have_standby_tasks(make_node: Callable[..., Node], level: str) -> None:
    node = make_streams_node(make_node, level, "streams.num.standby.replicas", 1)
    for name in ("streams.initial.rebalance.delay.ms", "streams.assignment.interval.ms"):
        set_option(node, name, "0")
    stream(node, "a")
    stream(node, "b")
    target = node.groups.find("g").target
    assert [len(each.standby["0"]) for each in target.values()] == [2, 2]


@pytest.mark.option("group.streams.max.size")
def test_streams_group_takes_as_many_members_as_it_may(make_node: Callable[..., Node]) -> None:
    node = make_node(group_streams_max_size=1)
    stream(node, "a")
    assert code_of(stream, node, "b") is E.GROUP_MAX_SIZE_REACHED


@pytest.mark.option("group.coordinator.rebalance.protocols")
def test_protocol_that_is_not_listed_is_not_served() -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="a", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    for protocols, code in (("classic", E.UNSUPPORTED_VERSION), ("classic,consumer", E.NONE)):
        with (
            Broker(group_coordinator_rebalance_protocols=protocols) as broker,
            Connection(broker.bootstrap_servers) as client,
        ):
            client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            assert client.request(request, 0).error_code == code


# --- what a group's own options may be

# Broker option -> its value, and an option of a group with a value that only this limit refuses.
LIMITS = {
    "group.consumer.min.assignment.interval.ms": ("900", "consumer.assignment.interval.ms", "899"),
    "group.consumer.max.assignment.interval.ms": ("1100", "consumer.assignment.interval.ms", "1101"),
    "group.consumer.min.heartbeat.interval.ms": ("5100", "consumer.heartbeat.interval.ms", "5099"),
    "group.consumer.max.heartbeat.interval.ms": ("6000", "consumer.heartbeat.interval.ms", "6001"),
    "group.consumer.min.session.timeout.ms": ("46000", "consumer.session.timeout.ms", "45999"),
    "group.consumer.max.session.timeout.ms": ("50000", "consumer.session.timeout.ms", "50001"),
    "group.share.min.assignment.interval.ms": ("900", "share.assignment.interval.ms", "899"),
    "group.share.max.assignment.interval.ms": ("1100", "share.assignment.interval.ms", "1101"),
    "group.share.min.heartbeat.interval.ms": ("5100", "share.heartbeat.interval.ms", "5099"),
    "group.share.max.heartbeat.interval.ms": ("6000", "share.heartbeat.interval.ms", "6001"),
    "group.share.min.session.timeout.ms": ("46000", "share.session.timeout.ms", "45999"),
    "group.share.max.session.timeout.ms": ("50000", "share.session.timeout.ms", "50001"),
    "group.share.min.record.lock.duration.ms": ("16000", "share.record.lock.duration.ms", "15999"),
    "group.share.max.record.lock.duration.ms": ("40000", "share.record.lock.duration.ms", "40001"),
    "group.share.min.delivery.count.limit": ("4", "share.delivery.count.limit", "3"),
    "group.share.max.delivery.count.limit": ("6", "share.delivery.count.limit", "7"),
    "group.share.min.partition.max.record.locks": ("300", "share.partition.max.record.locks", "299"),
    "group.share.max.partition.max.record.locks": ("3000", "share.partition.max.record.locks", "3001"),
    "group.share.heartbeat.interval.ms": ("46000", "share.session.timeout.ms", "46000"),
    "group.share.session.timeout.ms": ("8000", "share.heartbeat.interval.ms", "8000"),
    "group.streams.min.assignment.interval.ms": ("900", "streams.assignment.interval.ms", "899"),
    "group.streams.max.assignment.interval.ms": ("1100", "streams.assignment.interval.ms", "1101"),
    "group.streams.min.heartbeat.interval.ms": ("5100", "streams.heartbeat.interval.ms", "5099"),
    "group.streams.max.heartbeat.interval.ms": ("6000", "streams.heartbeat.interval.ms", "6001"),
    "group.streams.min.session.timeout.ms": ("46000", "streams.session.timeout.ms", "45999"),
    "group.streams.max.session.timeout.ms": ("50000", "streams.session.timeout.ms", "50001"),
    "group.streams.max.standby.replicas": ("1", "streams.num.standby.replicas", "2"),
    "group.streams.heartbeat.interval.ms": ("46000", "streams.session.timeout.ms", "46000"),
    "group.streams.session.timeout.ms": ("8000", "streams.heartbeat.interval.ms", "8000"),
}


@pytest.mark.option(
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "group.share.heartbeat.interval.ms",
    "group.share.max.assignment.interval.ms",
    "group.share.max.delivery.count.limit",
    "group.share.max.heartbeat.interval.ms",
    "group.share.max.partition.max.record.locks",
    "group.share.max.record.lock.duration.ms",
    "group.share.max.session.timeout.ms",
    "group.share.min.assignment.interval.ms",
    "group.share.min.delivery.count.limit",
    "group.share.min.heartbeat.interval.ms",
    "group.share.min.partition.max.record.locks",
    "group.share.min.record.lock.duration.ms",
    "group.share.min.session.timeout.ms",
    "group.share.session.timeout.ms",
    "group.streams.heartbeat.interval.ms",
    "group.streams.max.assignment.interval.ms",
    "group.streams.max.heartbeat.interval.ms",
    "group.streams.max.session.timeout.ms",
    "group.streams.max.standby.replicas",
    "group.streams.min.assignment.interval.ms",
    "group.streams.min.heartbeat.interval.ms",
    "group.streams.min.session.timeout.ms",
    "group.streams.session.timeout.ms",
)
def test_option_of_a_group_is_refused_over_the_brokers_limit_and_not_without_it(tmp_path: Path) -> None:
    store = Opened(tmp_path).store
    try:
        for name, (limit, option, value) in LIMITS.items():
            store.config.given = {name: limit}
            assert code_of(check_group, store, "g", {option: value}) is E.INVALID_CONFIG, name
            store.config.given = {}
            assert code_of(check_group, store, "g", {option: value}) is E.NONE, name
    finally:
        store._logs.stop()


# --- committed offsets


@pytest.mark.option("offset.metadata.max.bytes")
def test_text_beside_an_offset_has_its_length(make_node: Callable[..., Node]) -> None:
    node = make_node(offset_metadata_max_bytes=10)
    assert node.commit("g", "t", 1, metadata="x" * 10) == 0
    assert node.commit("g", "t", 1, metadata="x" * 11) == E.OFFSET_METADATA_TOO_LARGE


@pytest.mark.option("offsets.retention.minutes", "offsets.retention.check.interval.ms")
def test_offsets_go_at_the_check_after_their_time(make_node: Callable[..., Node]) -> None:
    node = make_node(offsets_retention_minutes=1, offsets_retention_check_interval_ms=25_000)
    node.commit("g", "t", 1)
    node.advance(74_999)
    assert node.groups.find("g") is not None
    node.advance(1)
    assert node.groups.find("g") is None


@pytest.mark.option("offsets.topic.compression.codec")
def test_batches_of_the_offsets_topic_have_the_codec(make_node: Callable[..., Node]) -> None:
    node = make_node(offsets_topic_compression_codec=1)
    node.commit("g", "t", 1)
    codecs = {header.compression for log in node.logs.all() if log.topic == TOPIC for _, header in log.batches()}
    assert codecs == {1}


@pytest.mark.option("offsets.topic.num.partitions", "offsets.topic.segment.bytes")
def test_offsets_topic_is_made_with_its_partitions_and_segments(make_node: Callable[..., Node]) -> None:
    node = make_node(offsets_topic_num_partitions=3, offsets_topic_segment_bytes=2_000_000)
    assert len(node.metadata.image.topics[TOPIC].partitions) == 3
    assert node.metadata.topic_config(TOPIC).segment_bytes == 2_000_000
