"""`kafka-storage.sh` without a JVM: what it prints and its exit status; the texts are those of Kafka 4.3.1's tool."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.tools.storage import main

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=3\ncontroller.quorum.voters=3@localhost:9093\n"
        "controller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        f"log.dirs={tmp_path}/one,{tmp_path}/two\n"
    )
    return str(path)


def test_directories_are_formatted_once(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "-c", config]) == 1
    missing = f"Found problems:\n  {tmp_path}/one does not exist\n  {tmp_path}/two does not exist\n\n"
    assert capsys.readouterr().out == missing
    assert main(["format", "-t", CLUSTER_ID, "-c", config]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(
        "Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion(FeatureLevelRecord("
        "name='metadata.version', featureLevel=30) at version 0), "
    )
    assert said[0].endswith("], metadataVersionLevel=30, source=format command)")
    assert said[1:] == [
        f"Formatting metadata directory {tmp_path}/one with metadata.version 4.3-IV0.",
        f"Formatting data directory {tmp_path}/two with metadata.version 4.3-IV0.",
    ]
    assert main(["format", "-t", CLUSTER_ID, "-c", config]) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err
    assert main(["format", "-g", "-t", CLUSTER_ID, "-c", config]) == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"
    assert main(["info", "-c", config]) == 0
    found = re.sub(r"directory.id=[\w-]{22}", "directory.id=ID", capsys.readouterr().out)
    assert found == (
        f"Found log directories:\n  {tmp_path}/one\n  {tmp_path}/two\n\n"
        f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id=ID, node.id=3, version=1}}\n\n"
    )


def test_directories_that_do_not_fit_are_problems(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["format", "-t", CLUSTER_ID, "-c", config])
    meta = tmp_path / "two" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=3", "node.id=4"))
    capsys.readouterr()
    assert main(["info", "-c", config]) == 1
    assert "Found problem:\n  Mismatched node IDs between storage directories.\n" in capsys.readouterr().out
    meta.unlink()
    assert main(["info", "-c", config]) == 1
    assert f"  {tmp_path}/two is not formatted.\n" in capsys.readouterr().out


def test_a_configuration_without_roles_is_not_formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.properties"
    path.write_text(f"log.dirs={tmp_path}/one\n")
    assert main(["format", "-t", CLUSTER_ID, "-c", str(path)]) == 1
    assert "appears to be for a legacy cluster" in capsys.readouterr().err


def test_features_of_releases_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version-mapping"]) == 0
    assert capsys.readouterr().out.split() == [
        "metadata.version=30",
        "(4.3-IV0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=1",
        "share.version=1",
        "streams.version=1",
    ]
    assert main(["version-mapping", "-r", "3.8"]) == 0
    assert capsys.readouterr().out.startswith("metadata.version=20 (3.8)\nkraft.version=0\ntransaction.version=0\n")
    assert main(["version-mapping", "-r", "2.8"]) == 1


def test_dependencies_of_features_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feature-dependencies", "-f", "share.version=1", "-f", "eligible.leader.replicas.version=1"]) == 0
    assert capsys.readouterr().out == (
        "share.version=1 has no dependencies.\n"
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
    )
    for wrong, said in (("x", "equals sign not found"), ("x=y", "unable to parse y"), ("x=1", "Unknown feature: x")):
        assert main(["feature-dependencies", "-f", wrong]) == 1
        assert said in capsys.readouterr().err


def test_random_ids_are_of_kafkas_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    assert re.fullmatch(r"[\w][\w-]{21}\n", capsys.readouterr().out)


def test_wrong_words_end_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["format"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("usage: kafka-storage format")


def test_what_cannot_be_written_is_told_in_a_line(config: str) -> None:
    """With the number of the error, and a cluster id that is not UTF-8 with a traceback."""
    command = [sys.executable, "-m", "kafka_shim.tools.storage"]
    line = ["format", "-c", config, "-t"]
    Path(config).parent.joinpath("one").write_text("")
    done = subprocess.run([*command, *line, CLUSTER_ID], stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"{Path(config).parent}/one: Not a directory\n")
    Path(config).parent.joinpath("one").unlink()
    done = subprocess.run([*command, *line, b"\xff"], stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(r"'\\udcff', character \d+ of a text, is not of UTF-8: .*\n", done.stderr)
