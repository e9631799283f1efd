from __future__ import annotations

import json

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
        connection.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]))
        yield connection


ADVICE = " (kafka-shim topics list shows what is there)"


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
    status, _, err = run("groups", "delete", "g")
    assert (status, err.startswith("error: g: NON_EMPTY_GROUP (stop its members first: ")) == (1, True)
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


def test_a_partition_without_an_offset_is_not_shifted(run, wire):
    """It would be shifted from its end: the group would never see what it has not read yet."""
    run("topics", "create", "t", "--partitions", "2")
    produce(wire, "t", 10)
    commit(wire, "g", "t", p1=0)
    status, lines, err = run("groups", "reset-offsets", "g", "--topic", "t", "--shift-by", "-1", "--execute")
    assert (status, lines) == (1, [])
    assert err == "error: there is no offset of t-0 that could be shifted\n"
    assert run("groups", "describe", "g")[1][1:] == [["g", "t", "1", "0", "0", "0", "-", "-", "-"]]


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
    for partition, name in (("nowhere:0", "nowhere"), ("t:9", "t-9")):
        status, lines, err = run("groups", "reset-offsets", "g", "--topic", partition, *words)
        assert (status, lines, err) == (1, [], f"error: {name}: UNKNOWN_TOPIC_OR_PARTITION{ADVICE}\n")


def test_an_unknown_type_or_state_is_warned_of_with_those_that_there_are(run):
    assert run("groups", "list", "--type", "Share")[2] == ""
    warning = "warning: no type is named shared: there are classic, consumer, share, streams\n"
    assert run("groups", "list", "--type", "shared")[::2] == (0, warning)
    assert run("groups", "list", "--state", "stable", "--state", "NotReady")[2] == ""
    warning = (
        "warning: no state is named running: there are PreparingRebalance, CompletingRebalance, Stable, Dead, Empty, "
        "Assigning, Reconciling, NotReady\n"
    )
    assert run("groups", "list", "--state", "running")[::2] == (0, warning)


def test_one_thing_of_a_group_is_described_at_a_time(run):
    status, _, err = run("groups", "describe", "g", "--members", "--state")
    assert (status, err.splitlines()[-1]) == (2, "error: give one of --members, --state and --offsets")


def test_offsets_are_numbers_in_json(run, wire):
    run("topics", "create", "t", "--partitions", "2")
    commit(wire, "g", "t", p0=4)
    lines = run("groups", "describe", "g", "--json")[1]
    (row,) = json.loads(" ".join(" ".join(line) for line in lines))
    assert (row["currentOffset"], row["logEndOffset"], row["lag"]) == (4, 0, 0)


def test_share_groups_are_described_and_reset_by_kafkas_tool(run, wire):
    run("topics", "create", "t")
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    wire.request(make("AlterShareGroupOffsets", group_id="shared", topics=topics))
    assert run("groups", "list", "--verbose", "--type", "share")[1][1] == ["shared", "Share", "Empty"]
    produce(wire, "t", 3)
    status, lines, err = run("groups", "describe", "shared")
    assert (status, lines[1]) == (0, ["shared", "t", "0", "0", "3", "3", "-", "-", "-"])
    assert "Share group 'shared' has no active members." in err
    status, lines, err = run("groups", "reset-offsets", "shared", "--to-latest", "--topic", "t")
    assert (status, lines) == (1, [])
    assert "shared is a share group: its offsets are reset by Kafka's kafka-share-groups.sh" in err


def test_all_groups_are_described(run, wire):
    run("topics", "create", "t")
    for name in ("a", "b"):
        commit(wire, name, "t", p0=0)
    assert [line[0] for line in run("groups", "describe", "--all", "--state")[1]] == ["GROUP", "a", "GROUP", "b"]
    assert run("groups", "describe")[0] == 2
    assert run("groups", "describe", "a", "--all")[0] == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to-datetime", "1970-01-01T00:00:05.500"], "6"),
        (["--to-datetime", "1970-01-01T01:00:05.500+01:00"], "6"),
        (["--by-duration", "P1D"], "10"),
        (["--by-duration", "PT0S"], "10"),
    ],
)
def test_offsets_are_reset_by_times_of_kafkas_forms(run, wire, words, expected):
    run("topics", "create", "t")
    produce(wire, "t", 10)
    assert run("groups", "reset-offsets", "g", "--topic", "t:0", *words)[1][1] == ["g", "t", "0", expected]


def test_offsets_go_to_a_file_and_come_back(run, wire, tmp_path):
    run("topics", "create", "t", "--partitions", "2")
    produce(wire, "t", 10)
    commit(wire, "g", "t", p0=4, p1=0)
    status, lines, _ = run("groups", "reset-offsets", "g", "--to-current", "--export")
    assert (status, lines) == (0, [["t,0,4"], ["t,1,0"]])
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,7\n\nt,1,99\n")
    status, lines, err = run("groups", "reset-offsets", "g", "--from-file", str(file), "--execute")
    assert (status, lines[1:]) == (0, [["g", "t", "0", "7"], ["g", "t", "1", "0"]])
    assert "t-1 has no offset 99: offset 0 is used" in err
    assert run("groups", "describe", "g")[1][1][3] == "7"
    for text, told in (("t,0\n", "line 1 is not"), ("t,0,1\nt,0,2\n", "line 2 names t-0 again")):
        file.write_text(text)
        status, _, err = run("groups", "reset-offsets", "g", "--from-file", str(file))
        assert (status, told in err) == (2, True)
    for data, told in ((b"\xfe,0,1\n", "can't decode byte 0xfe"), (b"t" * 200_000, "field larger than field limit")):
        file.write_bytes(data)
        status, _, err = run("groups", "reset-offsets", "g", "--from-file", str(file))
        assert (status, "it holds no lines of text: " in err, told in err) == (2, True, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--dry-run", "--execute", "--to-latest"], "contradict"),
        (["--topic", "t", "--all-topics", "--to-latest"], "contradict"),
        (["--from-file", "-", "--topic", "t"], "leave --topic"),
        (["--to-latest", "--to-datetime", "2026-01-01"], "give one of"),
        (["--to-latest", "--to-earliest"], "give one of"),
        (["--to-datetime", "yesterday"], "is not a time"),
        (["--by-duration", "P"], "is not a duration"),
        (["--to-offset", "-1"], "range"),
    ],
)
def test_contradictions_are_refused(run, words, told):
    status, _, err = run("groups", "reset-offsets", "g", *words)
    assert (status, told in err) == (2, True)


@pytest.mark.parametrize("words", [["describe", "nobody"], ["delete", "nobody"]])
def test_a_group_is_looked_up_before_it_is_asked_for(run, words):
    status, lines, err = run("groups", *words)
    assert (status, lines) == (1, [])
    assert "error: nobody: GROUP_ID_NOT_FOUND" in err


def test_each_name_that_fails_is_told(run, wire):
    run("topics", "create", "t")
    commit(wire, "g", "t", p0=0)
    for words, done, failed in (
        (
            ("topics", "create", "t", "new", "a b"),
            "Created topic new.",
            ["t: TOPIC_ALREADY_EXISTS", "a b: INVALID_TOPIC"],
        ),
        (("topics", "delete", "no", "new", "none"), "Deleted topic new.", ["no: UNKNOWN", "none: UNKNOWN"]),
        (("groups", "delete", "no", "g", "none"), "Deleted group g.", ["no: GROUP_ID_NOT", "none: GROUP_ID_NOT"]),
    ):
        status, lines, err = run(*words)
        assert (status, [" ".join(line) for line in lines]) == (1, [done])
        told = err.splitlines()
        assert len(told) == 2
        assert all(any(line.startswith(f"error: {name}") for line in told) for name in failed)
