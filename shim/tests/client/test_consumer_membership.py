"""The member of a consumer group that `kafka-shim consume --group` is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim.client.cluster import Cluster
from kafka_shim.client.consumer_membership import LEAVES, ConsumerMember
from kafka_shim.client.requests import make
from kafka_shim.embedded import Broker
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import RequestError

GROUP, PARTITION = "g", ("t", 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Broker() as broker, broker.cluster() as found:  # an assignment waits on the clock, which must go on
        broker.create_topic("t")
        broker.produce("t", "a", "b")
        yield found


def forget(cluster: Cluster, member: ConsumerMember) -> None:
    """What the end of its session does to a member that was silent."""
    request = make("ConsumerGroupHeartbeat", group_id=GROUP, member_id=member._member_id, member_epoch=LEAVES)
    assert cluster.coordinator(GROUP).request(request).error_code == 0
    member._next_s = 0.0


def await_partitions(member: ConsumerMember) -> None:
    wait_until(lambda: member.beat() and not member.is_new, "the member has partitions")
    assert member.assigned == {PARTITION}


def test_a_member_that_the_group_has_forgotten_joins_again(cluster: Cluster) -> None:
    """As one whose output nobody read for a while: it ended with UNKNOWN_MEMBER_ID."""
    member = ConsumerMember(cluster, GROUP, ["t"])
    assert member.is_new
    await_partitions(member)
    forget(cluster, member)
    await_partitions(member)
    member.commit({PARTITION: 1})
    assert member.committed() == {PARTITION: 1}
    member.leave()


def test_it_commits_nothing_that_others_may_have_read_meanwhile(cluster: Cluster) -> None:
    member = ConsumerMember(cluster, GROUP, ["t"])
    await_partitions(member)
    member.commit({PARTITION: 1})
    forget(cluster, member)
    member.commit({PARTITION: 2})
    assert (member.committed(), member.assigned, member.is_new) == ({PARTITION: 1}, frozenset(), True)
    await_partitions(member)
    forget(cluster, member)
    member.leave()  # it has already
    member.leave()


def test_a_member_whose_group_was_removed_joins_again(cluster: Cluster) -> None:
    """As one whose output nobody read for ten minutes before it had committed: an empty group without offsets goes."""
    member = ConsumerMember(cluster, GROUP, ["t"])

    def remove() -> None:
        forget(cluster, member)
        answer = cluster.coordinator(GROUP).request(make("DeleteGroups", groups_names=[GROUP]))
        assert [one.error_code for one in answer.results] == [0]

    await_partitions(member)
    remove()
    await_partitions(member)
    remove()
    member.commit({PARTITION: 1})
    assert member.is_new
    await_partitions(member)
    remove()
    member.leave()


def test_any_other_error_is_told(cluster: Cluster) -> None:
    member = ConsumerMember(cluster, "", ["t"])
    with pytest.raises(RequestError, match="INVALID_REQUEST"):
        member.beat()
    member = ConsumerMember(cluster, GROUP, ["t"])
    with pytest.raises(RequestError, match="GROUP_ID_NOT_FOUND"):
        member.commit({PARTITION: 1})  # it has not joined
