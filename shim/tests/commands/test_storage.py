from __future__ import annotations

import pytest

from kafka_shim.cli import main
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
