from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import build, iterate
from kafka_shim.cli import main
from kafka_shim.config import read_properties
from kafka_shim.embedded import Broker
from kafka_shim.protocol.record_frames import ControlType, encode_metadata
from kafka_shim.protocol.records.remove_topic_record import RemoveTopicRecord
from kafka_shim.storage import data_dir
from kafka_shim.storage.regular_files import open_regular
from kafka_shim.storage.results import StorageError
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.requests import create_topic, make, produce
from kafka_shim.tests.metadata.opened import opened
from kafka_shim.tests.test_server import served
from kafka_shim.txn.records import encode_key
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import Connection


def test_a_directory_is_formatted_once(tmp_path, capsys):
    cluster = "AAAAAAAAQACAAAAAAAAAAQ"
    words = ["storage", "format", str(tmp_path / "d"), "--cluster-id", cluster, "--node-id", "3"]
    assert main(words) == 0
    assert f"for node 3 of cluster {cluster}" in capsys.readouterr().out
    assert (tmp_path / "d" / "bootstrap.checkpoint").stat().st_size == 411
    assert main(["storage", "info", str(tmp_path / "d")]) == 0
    assert "stopped cleanly: no broker has started on it yet\n" in capsys.readouterr().out
    assert main(words) == 1
    assert "is already formatted" in capsys.readouterr().err
    assert main([*words, "--ignore-formatted"]) == 0


@pytest.mark.parametrize(
    "command",
    ["storage format", "storage info", "storage mend", "storage check", "storage upgrade-to-kafka", "certs make"],
)
def test_a_directory_without_a_name_is_not_the_one_where_one_is(tmp_path, capsys, monkeypatch, command):
    """As of a variable that is not set: the working directory became a data directory."""
    monkeypatch.chdir(tmp_path)
    assert main([*command.split(), ""]) == 2
    assert "a directory has a name, not ''" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["format", "mend"])
@pytest.mark.parametrize("node_id", ["-1", str(1 << 31)])
def test_a_directory_gets_no_node_id_that_cannot_be_served(tmp_path, capsys, command, node_id):
    assert main(["storage", command, str(tmp_path), "--node-id", node_id]) == 2
    assert f"{node_id} is not in the range 0<=x<=2147483647." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_formatted_directory_is_served(tmp_path, capsys):
    main(["storage", "format", str(tmp_path)])
    with opened(tmp_path) as store:
        store.create_topic("t", 3)
        store.create_topic("u", 1)
    capsys.readouterr()
    assert main(["storage", "info", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "node.id: 1" in lines
    assert "stopped cleanly: yes" in lines
    assert "feature metadata.version: 30 (4.3-IV0)" in lines
    assert {"topic t: 3 partitions", "topic u: 1 partition"} <= set(lines)


def test_a_directory_in_use_or_of_something_else_is_refused(tmp_path, capsys):
    assert main(["storage", "info", str(tmp_path)]) == 1
    assert "is not a data directory" in capsys.readouterr().err
    with opened(tmp_path):
        assert main(["storage", "info", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert "in use by a broker of this process" in said
        assert "stop that first, or name another directory" in said  # who asks may want this one, and no broker


def test_a_directory_that_is_not_there_is_not_made_to_be_mended(tmp_path, capsys):
    path = tmp_path / "mistyped"
    assert main(["storage", "mend", str(path)]) == 1
    assert capsys.readouterr() == ("", f"error: {path} is no directory\n")
    assert not path.exists()


@pytest.mark.parametrize("cluster", ["short", "!" * 22])
def test_a_cluster_id_that_is_none_is_a_mistake(tmp_path, cluster):
    assert main(["storage", "format", str(tmp_path), "--cluster-id", cluster]) == 2


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "is missing"),
        (b"", "is damaged: it names no cluster.id"),
        (b"\xff\xfe\x00", "is damaged: it names no cluster.id"),
        (b"version=1\nnode.id=1\n", "is damaged: it names no cluster.id"),
    ],
)
def test_a_lost_identity_over_partitions_is_refused_and_can_be_mended(tmp_path, capsys, content, cause):
    with opened(tmp_path) as store:
        store.create_topic("t", 3)
    meta = tmp_path / "meta.properties"
    before = meta.read_text()
    cluster_id = dict(line.partition("=")[::2] for line in before.splitlines())["cluster.id"]
    if content is None:
        meta.unlink()
    else:
        meta.write_bytes(content)
    with (
        pytest.raises(StorageError, match=f"meta.properties {cause}, and the directory holds 4 partitions"),
        opened(tmp_path),
    ):
        pass
    assert meta.exists() == (content is not None)
    assert main(["storage", "mend", str(tmp_path), "--cluster-id", cluster_id]) == 0
    assert f"node 1 of cluster {cluster_id}" in capsys.readouterr().out
    assert meta.read_text() == before
    with opened(tmp_path) as store:
        assert len(store.topic("t").partitions) == 3
    assert main(["storage", "mend", str(tmp_path)]) == 0
    assert "Nothing to mend" in capsys.readouterr().out


def test_another_directory_of_the_broker_says_what_was_lost(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    with opened(first, second) as store:
        store.create_topic("t", 4)
    before = (first / "meta.properties").read_text()
    (first / "meta.properties").unlink()
    assert main(["storage", "mend", str(first), str(second)]) == 0
    assert (first / "meta.properties").read_text() == before
    with opened(first, second):
        pass


def test_a_cluster_id_that_is_nowhere_is_made_anew_and_said(tmp_path, capsys):
    with opened(tmp_path) as store:
        store.create_topic("t")
    (tmp_path / "meta.properties").unlink()
    assert main(["storage", "mend", str(tmp_path)]) == 0
    assert "No file has the old cluster id" in capsys.readouterr().out


def test_what_is_missing_is_told_before_a_new_id_is_made(tmp_path, capsys):
    (tmp_path / "t-0").mkdir()
    assert main(["storage", "mend", str(tmp_path)]) == 1
    assert capsys.readouterr() == ("", "error: no file has the node id: give it with --node-id\n")


def test_options_that_a_broker_would_ignore_are_said_when_its_directory_is_formatted(tmp_path, capsys):
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'data'}\nlog.retention.houres=1\n")
    assert main(["storage", "format", "--config", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Formatted ")
    assert err.startswith(f"warning: {file}: log.retention.houres is not an option of Kafka")
    assert err.count("\n") == 1


CLUSTER = "AAAAAAAAQACAAAAAAAAAAQ"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def properties(tmp_path, **more: str):
    """A server.properties of a combined node with a dynamic quorum."""
    options = {
        "process.roles": "broker,controller",
        "node.id": "3",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{free_ports(1)[0]}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    return ["storage", "format", "--config", str(path), "-t", CLUSTER]


def identity(directory):
    return dict(line.partition("=")[::2] for line in (directory / "meta.properties").read_text().splitlines())


def test_a_standalone_quorum_is_served_with_its_voter(tmp_path, capsys):
    assert main([*properties(tmp_path), "--standalone"]) == 0
    snapshot = tmp_path / "a" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    assert snapshot.exists()
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()
    assert identity(tmp_path / "b")["node.id"] == "3"
    config = str(tmp_path / "server.properties")
    for _ in range(2):
        with served("--config", config) as (ready, child):
            address = ready["listeners"].split(",")[0].partition("://")[2]
            with Connection(address) as client:
                quorum = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
                told = client.request(make("DescribeQuorum", topics=quorum), 2)
                features = client.request(make("ApiVersions", client_software_name="t", client_software_version="1"), 4)
            child.terminate()
            child.communicate(timeout=60)
        (voter,) = told.topics[0].partitions[0].current_voters
        assert (voter.replica_id, uuid_text(voter.replica_directory_id)) == (
            3,
            identity(tmp_path / "a")["directory.id"],
        )
        assert ("kraft.version", 1) in [(one.name, one.max_version_level) for one in features.finalized_features]
    # The log has the voters from the first epoch on, once.
    content = (snapshot.parent / "00000000000000000000.log").read_bytes()
    keys = [
        record.key[-1]
        for batch in scan_all(content)
        if batch.is_control
        for record in iterate(content, batch.position, batch.position + batch.size_bytes)
    ]
    assert keys == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS, 2]


def test_an_initial_controller_has_the_directory_id_that_was_given(tmp_path):
    assert main([*properties(tmp_path), "-I", f"3@h:19093:{DIRECTORY},4@i:9:{DIRECTORY}"]) == 0
    assert identity(tmp_path / "a")["directory.id"] == DIRECTORY
    assert identity(tmp_path / "b")["directory.id"] != DIRECTORY


def test_a_release_of_then_is_served_at_its_level(tmp_path):
    assert main([*properties(tmp_path, node_id="1"), "-N", "-r", "3.9", "-f", "group.version=1"]) == 0
    with opened(tmp_path / "a") as store:
        assert store.image.features == {"metadata.version": 21, "group.version": 1}


@pytest.mark.parametrize(
    ("more", "words", "part"),
    [
        ({}, [], "you must specify one of the following: --standalone"),
        ({"controller_quorum_voters": "3@h:9"}, ["-s"], "You cannot specify controller.quorum.voters and format"),
        ({"controller_quorum_voters": "3@h:9"}, ["-r", "1.0"], "Unknown metadata.version '1.0'"),
        ({"controller_listener_names": ""}, ["-s"], "needs the controller's listener"),
        ({"controller_listener_names": "OTHER"}, ["-s"], "CONTROLLER is not in listener.security.protocol.map"),
        ({}, ["-s", "-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=b]"], "SCRAM is only supported in"),
        ({}, ["-I", "nonsense"], "No @ found"),
    ],
)
def test_what_kafkas_tool_refuses_is_refused(tmp_path, capsys, more, words, part):
    assert main([*properties(tmp_path, **more), *words]) == 1
    assert part in capsys.readouterr().err
    assert not (tmp_path / "a" / "meta.properties").exists()


def test_options_that_exclude_each_other_and_none_at_all(tmp_path, capsys):
    assert main([*properties(tmp_path), "-s", "-N"]) == 2
    assert main(["storage", "format"]) == 1
    assert "name the directories to format" in capsys.readouterr().err


def test_a_directory_of_another_node_or_cluster_is_not_ignored(tmp_path, capsys):
    words = [*properties(tmp_path), "-N"]
    assert main(words) == 0
    assert main([*words, "-g"]) == 0
    assert main([*words, "-g", "--node-id", "9"]) == 1
    assert "Invalid node.id in:" in capsys.readouterr().err
    assert main([*words[:-2], DIRECTORY, "-N", "-g"]) == 1
    assert f"Expected {DIRECTORY}, but read {CLUSTER}" in capsys.readouterr().err


def test_a_check_names_the_file_that_cannot_be_read(tmp_path, capsys):
    with opened(tmp_path):
        pass
    meta = tmp_path / "meta.properties"
    meta.unlink()
    meta.mkdir()
    assert main(["storage", "check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {meta} cannot be read: ")


def test_a_directory_is_checked_and_handed_to_kafka(tmp_path, capsys, monkeypatch):
    path = tmp_path / "d"
    with opened(path) as store:
        store.create_topic("t", 1)
    monkeypatch.chdir(tmp_path)
    assert main(["storage", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"{path}: 2 partitions, 1 segment, " in out
    assert "the last stop was clean" in out
    assert out.endswith("whole\n")
    assert main(["storage", "check", str(path), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["is_damaged"], report["findings"], report["segments"]) == (False, [], 1)
    assert main(["storage", "upgrade-to-kafka", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Wrote ./server.properties. The last stop was clean.\n" in out
    assert f"kafka-server-start.sh {tmp_path / 'server.properties'}" in out
    assert "The last stop was clean." in out
    written = read_properties(tmp_path / "server.properties")
    assert (written["node.id"], written["log.dirs"]) == ("1", str(path))
    assert written["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert main(["storage", "upgrade-to-kafka", str(path)]) == 1
    assert "--force replaces it" in capsys.readouterr().err
    assert main(["storage", "upgrade-to-kafka", str(path), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"] == written
    (path / "meta.properties").unlink()
    assert main(["storage", "check", str(path)]) == 1
    assert "damage: " in capsys.readouterr().out
    assert main(["storage", "upgrade-to-kafka", str(path), "--force"]) == 1
    assert "storage check` says where" in capsys.readouterr().err
    assert main(["storage", "check", str(tmp_path / "nowhere")]) == 1
    assert not (tmp_path / "nowhere").exists()
    empty = tmp_path / "empty"
    assert main(["storage", "format", str(empty)]) == 0
    assert main(["storage", "upgrade-to-kafka", str(empty), "--force"]) == 1
    assert "name all of log.dirs" in capsys.readouterr().err
    with opened(tmp_path / "other"):
        assert main(["storage", "check", str(tmp_path / "other")]) == 1
        assert f"in use by a broker of this process (pid {os.getpid()})" in capsys.readouterr().err


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("is_locked_once", [True, False])
def test_a_directory_that_may_not_be_written_to_is_read(tmp_path, capsys, monkeypatch, reason, is_locked_once):
    """As a backup, or a volume that is mounted read-only. The lock file could not be opened, or made."""
    with opened(tmp_path) as store:
        store.create_topic("t", 1)
    if not is_locked_once:
        (tmp_path / ".lock").unlink()

    def open_to_read(path: str, flags: int) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(reason, os.strerror(reason), path)
        return open_regular(path, flags)

    monkeypatch.setattr(data_dir, "open_regular", open_to_read)
    assert main(["storage", "info", str(tmp_path)]) == 0
    assert "topic t: 1 partition" in capsys.readouterr().out
    assert main(["storage", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("whole\n")
    assert main(["storage", "mend", str(tmp_path)]) == 1
    assert f"{tmp_path}/.lock cannot be used: {os.strerror(reason)}" in capsys.readouterr().err
    assert (tmp_path / ".lock").exists() == is_locked_once


def test_a_directory_that_a_broker_has_open_is_not_read_by_a_mount_without_writing(tmp_path, capsys, monkeypatch):
    def open_to_read(path: str, flags: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return open_regular(path, flags)

    with served("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0") as (_, child):
        monkeypatch.setattr(data_dir, "open_regular", open_to_read)
        for command in ("info", "check"):
            assert main(["storage", command, str(tmp_path)]) == 1
            assert f"is in use by another process (pid {child.pid})" in capsys.readouterr().err


def test_the_command_that_starts_kafka_can_be_typed_in_a_folder_with_spaces(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "it's my data"
    with opened(folder / "d") as store:
        store.create_topic("t", 1)
    monkeypatch.chdir(folder)
    assert main(["storage", "upgrade-to-kafka", "d"]) == 0
    command = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(command) == ["bin/kafka-server-start.sh", str(folder / "server.properties")]


def test_a_directory_of_something_else_is_said_so(tmp_path, capsys):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("x")
    (tmp_path / "home" / "polkit-1").mkdir()  # a name as a partition's
    assert main(["storage", "check", str(tmp_path / "home")]) == 1
    assert "home is no data directory: it has no meta.properties" in capsys.readouterr().err
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "home")]) == 1
    assert "is no data directory" in capsys.readouterr().err
    assert {one.name for one in (tmp_path / "home").iterdir()} == {"letter.txt", "polkit-1"}


@pytest.mark.parametrize("blocked", ["meta.properties", ".lock"])
@pytest.mark.parametrize("command", ["info", "check", "mend", "format"])
def test_what_cannot_be_read_is_named_in_one_line(tmp_path, capsys, command, blocked):
    (tmp_path / "meta.properties").touch()
    (tmp_path / "t-0").mkdir()
    (tmp_path / blocked).unlink(missing_ok=True)
    (tmp_path / blocked).mkdir()
    assert main(["storage", command, str(tmp_path)]) == 1
    err = capsys.readouterr().err
    reason = (
        "Is a directory" if blocked == ".lock" else "this is not a regular file, restore it from a backup or remove it"
    )
    assert re.fullmatch(rf"error: .* cannot be (used|read): {reason}\n", err), err
    assert str(tmp_path) in err


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who has a lock")
def test_who_has_a_directory_is_named(tmp_path, capsys):
    hold = "import sys; from kafka_shim.storage.data_dir import DataDir; d = DataDir(sys.argv[1]); d.lock()"
    line = [sys.executable, "-c", f"{hold}; print(1, flush=True); sys.stdin.read()", str(tmp_path)]
    (tmp_path / "meta.properties").write_text("version=1\n")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "1\n"
        assert main(["storage", "check", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        child.communicate("", timeout=60)
    assert f"is in use by another process (pid {child.pid})" in said


def bad_record(path, value):
    """Appends a batch with one more record to the metadata log of a stopped broker."""
    log = path / "__cluster_metadata-0" / "00000000000000000000.log"
    batches = scan_all(log.read_bytes())
    offset = batches[-1].next_offset
    with log.open("ab") as file:
        file.write(build([(None, value, 1, ())], base_offset=offset, leader_epoch=batches[-1].leader_epoch))
    return log, offset


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (encode_metadata(RemoveTopicRecord(topic_id=b"\1" * 16), 0), "stops a start: "),
        (b"\1\xff\x7f\0", "stops a start: "),
        (b"", "stops a start: "),
    ],
)
def test_the_metadata_log_is_replayed(tmp_path, capsys, value, said):
    path = tmp_path / "d"
    with opened(path) as store:
        store.create_topic("t", 1)
    log, offset = bad_record(path, value)
    before = log.read_bytes()
    assert main(["storage", "check", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"damage: {log}: the record at offset {offset}, position " in out
    assert said in out
    assert out.endswith("1 damaged\n")
    assert log.read_bytes() == before
    with pytest.raises(StorageError), opened(path):
        pass


def contents(path: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file() and one.name != ".lock"}


@pytest.mark.parametrize("was_clean", [True, False])
def test_to_look_at_a_directory_changes_nothing_in_it(tmp_path, capsys, was_clean):
    path = tmp_path / "d"
    with Broker(data_dir=str(path)) as broker, Connection(broker.bootstrap_servers) as client:
        for name in "abc":
            create_topic(client, name, 1)
    log = path / "__cluster_metadata-0" / "00000000000000000000.log"
    if not was_clean:
        (path / ".kafka_cleanshutdown").unlink()
        log.write_bytes(log.read_bytes() + b"half a batch")
    before = contents(path)
    assert main(["storage", "info", str(path)]) == 0
    assert "topic c: 1 partition\n" in capsys.readouterr().out
    assert contents(path) == before
    data = bytearray(log.read_bytes())
    batches = scan_all(bytes(data[: scan_all(bytes(data))[-1].position])) if was_clean else scan_all(bytes(data[:-12]))
    data[batches[len(batches) // 2].position + 30] ^= 1
    log.write_bytes(data)
    before = contents(path)
    assert main(["storage", "info", str(path)]) == (1 if was_clean else 0)
    told = capsys.readouterr()
    if was_clean:
        assert f"error: {log}: what is at position " in told.err
        assert "`kafka-shim storage check` tells more" in told.err
    assert contents(path) == before


def test_kafka_is_told_where_the_metadata_is_if_not_in_the_first_directory(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    with Broker(log_dirs=f"{first},{second}"):
        pass
    for order, told in (((first, second), None), ((second, first), first)):
        assert main(["storage", "upgrade-to-kafka", *order, "--force"]) == 0
        assert read_properties("server.properties").get("metadata.log.dir") == told


def test_who_hands_a_killed_brokers_directory_to_kafka_is_told_to_start_it_once_more(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path / "d"):
        pass
    (tmp_path / "d" / ".kafka_cleanshutdown").unlink()
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "d")]) == 0
    out = capsys.readouterr().out
    assert "The last stop was not clean: Kafka recovers the logs at its start." in out
    assert "Serve the directory once more and stop the broker with SIGTERM first: a transaction that was" in out
    with opened(tmp_path / "d"):
        pass
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "d"), "--force"]) == 0
    out = capsys.readouterr().out
    assert "The last stop was clean." in out
    assert "once more" not in out


def test_who_hands_prepared_transactions_to_kafka_is_told_to_serve_them_first(tmp_path, capsys, monkeypatch):
    """A disk refuses the marker until after the clean stop: Kafka does not write it."""
    monkeypatch.chdir(tmp_path)
    command = ["storage", "upgrade-to-kafka", str(tmp_path / "d"), "--force"]
    with Broker(data_dir=tmp_path / "d") as broker, Connection(broker.bootstrap_servers) as client:
        create_topic(client, "t", 1)
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["x"]), 4)
        begun = client.request(make("InitProducerId", transactional_id="x", transaction_timeout_ms=60_000), 5)
        owner = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        batch = produce("t", 0, [(b"k", b"v")], transactional_id="x", transactional=True, base_sequence=0, **owner)
        assert client.request(batch, 12).responses[0].partition_responses[0].error_code == 0
        broker.faults.arm("log.before_write", "oserror", "ENOSPC", where={"topic": "t"})
        assert client.request(make("EndTxn", transactional_id="x", committed=True, **owner), 5).error_code == 0
    assert main(command) == 0
    assert "1 transaction is being ended, and may stay open for ever" in capsys.readouterr().out
    with Broker(data_dir=tmp_path / "d"):
        pass
    assert main(command) == 0
    assert "being ended" not in capsys.readouterr().out


def test_records_of_transactions_that_a_start_skips_keep_nobody_from_apache_kafka(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Broker(data_dir=tmp_path / "d") as broker, Connection(broker.bootstrap_servers) as client:
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["x"]), 4)
        for key, value in ((encode_key("x"), b""), (b"\0\0\0", b"")):
            batch = build([(key, value, 1, ())])
            broker.call(
                lambda batch=batch: broker.state.logs.get("__transaction_state", 0).append_batch(batch, now_ms=1)
            )
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "d")]) == 0
    assert "being ended" not in capsys.readouterr().out


def test_who_hands_acls_to_kafka_is_told_what_makes_it_ask_them(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    acl = {"principal": "User:alice", "operation": "READ", "topic": "orders"}
    with Broker(data_dir=str(tmp_path / "d"), acls=[acl]):
        pass
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "d")]) == 0
    out = capsys.readouterr().out
    assert "The broker's own options are not in it: add those of its configuration file and of -o" in out
    assert "1 ACL is stored: until authorizer.class.name and super.users are in the file, " in out
    assert main(["storage", "upgrade-to-kafka", str(tmp_path / "d"), "--force", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["notes"]) == 2


@pytest.mark.parametrize("node_id", ["abc", "", "-1", "1_0"])
def test_a_node_id_that_is_no_number_is_told_and_can_be_mended(tmp_path, capsys, node_id):
    with opened(tmp_path) as store:
        store.create_topic("t", 1)
    meta = tmp_path / "meta.properties"
    before = meta.read_text()
    meta.write_text(before.replace("node.id=1\n", f"node.id={node_id}\n"))
    assert main(["storage", "info", str(tmp_path)]) == 0
    assert main(["storage", "check", str(tmp_path)]) == 1
    assert f"is damaged: its node.id is {node_id!r}: `kafka-shim storage mend`" in capsys.readouterr().out
    with pytest.raises(StorageError, match=r"its node\.id is"), opened(tmp_path):
        pass
    assert main(["storage", "mend", str(tmp_path)]) == 0
    assert "Mended" in capsys.readouterr().out
    assert meta.read_text() == before


@pytest.mark.parametrize("name", ["a,b", "a "])
def test_a_directory_that_log_dirs_cannot_name_is_not_handed_to_kafka(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path / name) as store:
        store.create_topic("t", 1)
    assert main(["storage", "upgrade-to-kafka", name]) == 1
    assert f"log.dirs cannot name {str(tmp_path / name)!r}" in capsys.readouterr().err
    assert not Path("server.properties").exists()


def test_a_directory_without_a_node_id_is_not_handed_to_kafka(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path / "d") as store:
        store.create_topic("t", 1)
    meta = tmp_path / "d" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1\n", ""))
    assert main(["storage", "upgrade-to-kafka", "d"]) == 1
    assert "error: d/meta.properties has no node.id: add the line node.id=NUMBER" in capsys.readouterr().err


def test_kafka_finds_a_directory_whose_name_is_not_ascii(tmp_path, monkeypatch):
    """Java reads a properties file as ISO 8859-1: `ü` in UTF-8 was another directory to it."""
    path = tmp_path / "dü\\😀"
    with opened(path) as store:
        store.create_topic("t", 1)
    monkeypatch.chdir(tmp_path)
    assert main(["storage", "upgrade-to-kafka", str(path)]) == 0
    content = (tmp_path / "server.properties").read_bytes()
    assert f"log.dirs={tmp_path}/d\\u00fc\\\\\\ud83d\\ude00\n".encode("ascii") in content
    assert read_properties(tmp_path / "server.properties")["log.dirs"] == str(path)
