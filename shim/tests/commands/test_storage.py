from __future__ import annotations

import pytest

from kafka_shim.cli import main
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.metadata.opened import opened


def test_a_directory_is_formatted_once(tmp_path, capsys):
    cluster = "AAAAAAAAQACAAAAAAAAAAQ"
    words = ["storage", "format", str(tmp_path / "d"), "--cluster-id", cluster, "--node-id", "3"]
    assert main(words) == 0
    assert f"for node 3 of cluster {cluster}" in capsys.readouterr().out
    assert (tmp_path / "d" / "bootstrap.checkpoint").stat().st_size == 411
    assert main(words) == 1
    assert "formatted already" in capsys.readouterr().err
    assert main([*words, "--ignore-formatted"]) == 0


def test_a_formatted_directory_is_served(tmp_path, capsys):
    main(["storage", "format", str(tmp_path)])
    with opened(tmp_path) as store:
        store.create_topic("t", 3)
    capsys.readouterr()
    assert main(["storage", "info", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "node.id: 1" in lines
    assert "stopped cleanly: yes" in lines
    assert "feature metadata.version: 30" in lines
    assert "topic t: 3 partitions" in lines


def test_a_directory_in_use_or_of_something_else_is_refused(tmp_path, capsys):
    assert main(["storage", "info", str(tmp_path)]) == 1
    assert "is not a data directory" in capsys.readouterr().err
    with opened(tmp_path):
        assert main(["storage", "info", str(tmp_path)]) == 1
        assert "in use by another broker" in capsys.readouterr().err


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
    assert "The old cluster id is nowhere" in capsys.readouterr().out
