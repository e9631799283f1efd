"""The member of a classic group that the console consumer is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_shim import Broker
from kafka_shim.client import classic_membership
from kafka_shim.client.classic_membership import ClassicMember, assign_range
from kafka_shim.client.cluster import Cluster
from kafka_shim.client.groups import describe_group
from kafka_shim.client.offsets import committed_offsets
from kafka_shim.client.requests import NAMES, make
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import RequestError

GROUP, TOPIC = "g", "t"


@pytest.fixture(autouse=True)
def at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members heartbeat at every call, and commit what they have read."""
    monkeypatch.setattr(classic_membership, "HEARTBEAT_S", 0)
    monkeypatch.setattr(classic_membership, "COMMIT_S", 0)


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    broker.create_topic(TOPIC, partitions=3)
    with broker.cluster() as found:
        yield found


def partitions_of(member: ClassicMember) -> set[int]:
    return {number for _, number in member.positions()}


def begun(cluster: Cluster, *topics: str) -> ClassicMember:
    return ClassicMember(cluster, GROUP, lambda: list(topics or (TOPIC,)))


def test_two_members_share_the_partitions_and_one_takes_those_of_the_other_that_leaves(
    broker: Broker, cluster: Cluster
) -> None:
    first = begun(cluster)
    assert partitions_of(first) == {0, 1, 2}
    first.read((TOPIC, 2), 5)
    with broker.cluster() as other, ThreadPoolExecutor(1) as threads:
        second = begun(other)
        joined = threads.submit(second.positions)
        # Its heartbeat says that the group rebalances: it commits, and joins again.
        wait_until(lambda: len(first.positions()) < 3, "the first gives partitions away")
        assert {len(first.positions()), len(joined.result())} == {1, 2}
        assert partitions_of(first) | partitions_of(second) == {0, 1, 2}
        assert committed_offsets(cluster, GROUP)[TOPIC, 2] == 5
        assert (first.positions() | second.positions())[TOPIC, 2] == 5
        second.close()
        assert first.positions() == {(TOPIC, 0): 0, (TOPIC, 1): 0, (TOPIC, 2): 5}
    first.close()
    assert describe_group(cluster, GROUP).members == []


def test_what_was_read_is_committed_and_what_nobody_has_is_not(broker: Broker, cluster: Cluster) -> None:
    member = begun(cluster)
    assert member.positions() == {(TOPIC, number): 0 for number in range(3)}
    member.read((TOPIC, 1), 7)
    member.read(("other", 0), 9)
    member.positions()
    assert committed_offsets(cluster, GROUP) == {(TOPIC, 0): 0, (TOPIC, 1): 7, (TOPIC, 2): 0}
    member.close()
    member.close()  # again: it has left
    silent = ClassicMember(cluster, GROUP, lambda: [TOPIC], commits=False)
    assert silent.positions()[TOPIC, 1] == 7
    silent.read((TOPIC, 1), 8)
    silent.close()
    assert committed_offsets(cluster, GROUP)[TOPIC, 1] == 7


@pytest.mark.parametrize("has_read", [False, True])
def test_a_member_that_was_thrown_out_joins_again_and_reads_on(cluster: Cluster, has_read: bool) -> None:
    """Its commit, or its heartbeat if it has read nothing, says that it is unknown."""
    member = begun(cluster)
    member.positions()
    member.positions()
    if has_read:
        member.read((TOPIC, 0), 3)
    (known,) = describe_group(cluster, GROUP).members
    leave = make("LeaveGroup", group_id=GROUP, members=[{"member_id": known.member_id}])
    assert cluster.coordinator(GROUP).request(leave).error_code == 0
    assert describe_group(cluster, GROUP).members == []
    assert member.positions() == {(TOPIC, number): 0 for number in range(3)}
    assert len(describe_group(cluster, GROUP).members) == 1


def test_a_member_whose_topics_change_joins_again(broker: Broker, cluster: Cluster) -> None:
    topics = [TOPIC]
    member = ClassicMember(cluster, GROUP, lambda: topics)
    assert partitions_of(member) == {0, 1, 2}
    broker.create_topic("more")
    topics.append("more")
    assert set(member.positions()) == {(TOPIC, 0), (TOPIC, 1), (TOPIC, 2), ("more", 0)}


@pytest.mark.parametrize("api", ["Heartbeat", "JoinGroup", "SyncGroup", "OffsetFetch"])
def test_an_error_that_no_join_mends_is_told(broker: Broker, cluster: Cluster, api: str) -> None:
    member = begun(cluster)
    if api == "Heartbeat":
        member.positions()
    broker.faults.arm("request.received", "error", "GROUP_AUTHORIZATION_FAILED", where={"api_key": NAMES[api]})
    with pytest.raises(RequestError) as caught:
        member.positions()
    assert caught.value.code.name == "GROUP_AUTHORIZATION_FAILED"
    broker.faults.disarm()
    assert partitions_of(member) == {0, 1, 2}


def test_ranges_go_by_topic_to_those_who_want_it() -> None:
    found = assign_range({"a": ["t", "u"], "b": ["t"]}, {"t": 3, "u": 2})
    assert found == {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"t": [2]}}
