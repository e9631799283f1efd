from __future__ import annotations

import pytest

from kafka_shim.cli import main
from kafka_shim.targets.requests import make
from kafka_shim.tests.group.harness import subscription
from kafka_shim.wire_client import Connection


@pytest.fixture
def run(broker, capsys):
    """Run a command against `broker`: (status, lines of stdout, stderr)."""

    def call(*words):
        status = main([*words, "--bootstrap-server", broker.bootstrap_servers])
        out, err = capsys.readouterr()
        return status, [line.split() for line in out.splitlines()], err

    return call


@pytest.fixture
def wire(broker):
    with Connection(broker.bootstrap_servers, client_id="me") as connection:
        yield connection


def commit(wire, group, topic, **offsets):
    from kafka_shim.protocol.messages import offset_commit_request as messages

    parts = [
        messages.OffsetCommitRequestPartition(partition_index=int(name[1:]), committed_offset=offset)
        for name, offset in offsets.items()
    ]
    topics = [messages.OffsetCommitRequestTopic(name=topic, partitions=parts)]
    assert (
        not wire.request(messages.OffsetCommitRequest(group_id=group, topics=topics), 9)
        .topics[0]
        .partitions[0]
        .error_code
    )


def produce(wire, topic, count):
    from kafka_shim.cext.records import build
    from kafka_shim.protocol.messages import produce_request as messages

    records = build([(None, b"x", 1000 * number, ()) for number in range(count)])
    data = messages.TopicProduceData(
        name=topic, partition_data=[messages.PartitionProduceData(index=0, records=records)]
    )
    wire.request(messages.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)


def join(wire, group):
    from kafka_shim.protocol.messages import join_group_request, sync_group_request

    protocols = [join_group_request.JoinGroupRequestProtocol(name="range", metadata=subscription("t"))]
    joined = wire.request(
        join_group_request.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10000,
            rebalance_timeout_ms=10000,
            protocol_type="consumer",
            protocols=protocols,
        ),
        3,
    )
    assignment = b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
    given = [sync_group_request.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)]
    wire.request(
        sync_group_request.SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=given
        ),
        3,
    )
    return joined.member_id


def test_groups_are_listed_and_described_with_their_lag(run, wire):
    run("topics", "create", "t", "--partitions", "2")
    produce(wire, "t", 10)
    commit(wire, "g", "t", p0=4, p1=0)
    assert run("groups", "list") == (0, [["g"]], "")
    assert run("groups", "list", "-v")[1][1] == ["g", "Classic", "Empty"]
    assert run("groups", "list", "--state", "Stable") == (0, [], "")
    status, lines, err = run("groups", "describe", "g")
    assert status == 0
    assert "no active members" in err
    assert lines[1] == ["g", "t", "0", "4", "10", "6", "-", "-", "-"]
    assert lines[2] == ["g", "t", "1", "0", "0", "0", "-", "-", "-"]


def test_members_are_shown_with_what_they_have(run, wire):
    run("topics", "create", "t", "--partitions", "2")
    member_id = join(wire, "g")
    assert run("groups", "describe", "g", "--members")[1][1] == ["g", member_id, "/127.0.0.1", "me", "1"]
    assert run("groups", "describe", "g", "--state")[1][1] == ["g", "range", "Stable", "1"]
    assert run("groups", "describe", "g")[1][1] == ["g", "t", "0", "-", "0", "-", member_id, "/127.0.0.1", "me"]
    assert run("groups", "delete", "g")[::2] == (1, "error: g: NON_EMPTY_GROUP\n")
    status, _, err = run("groups", "reset-offsets", "g", "--to-latest", "--execute", "--topic", "t")
    assert status != 0
    assert "only while it is inactive" in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to-earliest"], "0"),
        (["--to-latest"], "10"),
        (["--to-current"], "4"),
        (["--to-offset", "7"], "7"),
        (["--to-offset", "99"], "10"),
        (["--shift-by", "-3"], "1"),
        (["--shift-by", "100"], "10"),
        (["--to-timestamp", "0"], "0"),
        (["--to-timestamp", "5500"], "6"),
        (["--to-timestamp", "99000"], "10"),
    ],
)
def test_offsets_are_reset_when_it_is_said_twice(run, wire, words, expected):
    run("topics", "create", "t")
    produce(wire, "t", 10)
    commit(wire, "g", "t", p0=4)
    status, lines, err = run("groups", "reset-offsets", "g", *words)
    assert (status, lines[1]) == (0, ["g", "t", "0", expected])
    assert "--execute" in err
    assert run("groups", "describe", "g")[1][1][3] == "4"
    assert run("groups", "reset-offsets", "g", "--execute", "--topic", "t:0", *words)[0] == 0
    assert run("groups", "describe", "g")[1][1][3] == expected


def test_offsets_and_groups_are_deleted(run, wire):
    run("topics", "create", "t", "--partitions", "2")
    commit(wire, "g", "t", p0=4, p1=4)
    assert run("groups", "delete-offsets", "g", "--topic", "t:1")[1][1] == ["t", "1", "Successful"]
    assert len(run("groups", "describe", "g")[1]) == 2
    status, lines, err = run("groups", "delete", "nothing", "g")
    assert (status, lines) == (1, [["Deleted", "group", "g."]])
    assert "GROUP_ID_NOT_FOUND" in err
    assert run("groups", "describe", "g")[0] == 1
    assert run("groups", "list")[1] == []


def test_one_target_is_needed(run):
    assert run("groups", "reset-offsets", "g")[0] == 2
    assert run("groups", "reset-offsets", "g", "--to-latest", "--shift-by", "1")[0] == 2


@pytest.mark.parametrize("words", [["--to-earliest"], ["--to-offset", "5"], ["--to-timestamp", "0"]])
def test_a_reset_of_a_partition_that_is_not_there_is_an_error(run, words):
    run("topics", "create", "t")
    for partition in ("nowhere:0", "t:9"):
        status, lines, err = run("groups", "reset-offsets", "g", "--topic", partition, *words)
        assert (status, lines, err) == (1, [], f"error: {partition.replace(':', '-')}: UNKNOWN_TOPIC_OR_PARTITION\n")


def test_an_unknown_type_is_warned_of(run):
    assert run("groups", "list", "--type", "Share")[2] == ""
    assert run("groups", "list", "--type", "shared")[::2] == (0, "warning: no type is named shared\n")


def test_a_share_group_is_left_to_kafkas_tool(run, wire):
    run("topics", "create", "t")
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    wire.request(make("AlterShareGroupOffsets", group_id="shared", topics=topics))
    assert run("groups", "list", "--verbose", "--type", "share")[1][1] == ["shared", "Share", "Empty"]
    status, lines, err = run("groups", "describe", "shared")
    assert (status, lines) == (1, [])
    assert "shared is a share group: use Kafka's kafka-share-groups.sh" in err


@pytest.mark.parametrize("words", [["describe", "nobody"], ["delete", "nobody"]])
def test_a_group_is_looked_up_before_it_is_asked_for(run, words):
    status, lines, err = run("groups", *words)
    assert (status, lines) == (1, [])
    assert "error: nobody: GROUP_ID_NOT_FOUND" in err
