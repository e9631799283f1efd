"""What an answer waits for is its own: nobody else's fsync, and nobody else's failure."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

OFFSETS = "__consumer_offsets"
SESSION_MS = 10_000


def join_request(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )


def sync_request(joined: JoinGroupResponse, *assigned: str) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=name, assignment=b"a") for name in assigned],
    )


def join(connection: Connection) -> JoinGroupResponse:
    """The group's first member, as far as SyncGroup."""
    given = connection.request(join_request(), 6)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return connection.request(join_request(given.member_id), 6)


@pytest.fixture
def flushed(broker):
    """`__consumer_offsets` is fsynced before each answer."""
    broker.call(broker.state.metadata.ensure_internal_topic, OFFSETS)
    for log in broker.state.logs.all():
        if log.topic == OFFSETS:
            log.config.flush_messages = 1


def fsyncs(broker, count: int) -> None:
    """Returns when so many have begun since the fault was armed."""
    while broker.faults.reached("log.before_fsync") < count:
        pass


def test_a_failed_fsync_of_a_groups_timer_is_not_charged_to_another_client(broker, client, flushed):
    make_topic(client, "t")
    with Connection(broker.bootstrap_servers, timeout_s=60) as member:
        joined = join(member)
        assert member.request(sync_request(joined, joined.member_id), 5).error_code == 0
    broker.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    broker.clock.advance(SESSION_MS + 1)  # the session's end is written to the group's partition
    fsyncs(broker, 1)
    assert produce(client, "t", 0, batch(b"mine")).error_code == ErrorCode.NONE
    assert client.request(MetadataRequest(), 12).cluster_id == broker.cluster_id


def test_members_who_wait_for_the_leader_wait_for_its_fsync_too(broker, flushed):
    """The leader's SyncGroup writes the assignment that the others are told."""
    with ExitStack() as stack:
        leader, follower = (stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=60)) for _ in range(2))
        first = join(leader)
        given = follower.request(join_request(), 6)
        follower.send(join_request(given.member_id), 6)
        while broker.call(lambda: len(broker.state.groups.find("g").members)) < 2:
            pass
        leads = leader.request(join_request(first.member_id), 6)
        _, follows = follower.receive(JoinGroupRequest.API_KEY, 6)
        assert leads.leader == first.member_id == follows.leader
        follower.send(sync_request(follows), 5)
        broker.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
        refused = leader.request(sync_request(leads, leads.member_id, follows.member_id), 5)
        _, told = follower.receive(SyncGroupRequest.API_KEY, 5)
        assert [refused.error_code, told.error_code] == [ErrorCode.NOT_COORDINATOR] * 2


def test_an_answer_leaves_also_if_there_is_no_memory_to_tell_of_its_fsync(broker, client, monkeypatch):
    make_topic(client, "t", 1, flush_messages="1")
    with monkeypatch.context() as patch:
        patch.setattr(Future, "_invoke_callbacks", no_memory_left)  # of the thread, behind the fsync
        told = produce(client, "t", 0, batch(b"a"))
    assert (told.error_code, told.base_offset) == (ErrorCode.NONE, 0)
