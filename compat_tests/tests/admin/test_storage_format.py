"""`kafka-shim storage format` writes what Kafka's storage tool writes, but for times and random ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import iterate
from kafka_shim.cli import main
from kafka_shim.targets import jvm
from kafka_shim.targets.kafka_native import CLUSTER_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
CONFIG = """\
process.roles=broker,controller
node.id=3
listeners=PLAINTEXT://127.0.0.1:19192,CONTROLLER://127.0.0.1:19193
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:19193
"""


def batches(path: Path) -> list[Any]:
    """All of a snapshot but its times: the header record contains one."""
    content = path.read_bytes()
    return [
        (
            *(batch.base_offset, batch.is_control, batch.leader_epoch, batch.attributes, batch.size_bytes),
            *(
                (record.key, None if batch.is_control and record.offset == 0 else record.value)
                for record in iterate(content, batch.position, batch.position + batch.size_bytes)
            ),
        )
        for batch in scan_all(content)
    ]


def written(directory: Path, *, with_id: bool) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        if path.suffix == ".checkpoint":
            files[name] = batches(path)
        elif path.is_file() and path.name != ".lock":
            lines = path.read_text().splitlines()
            files[name] = sorted(
                line for line in lines if line[:1] != "#" and (with_id or not line.startswith("directory.id"))
            )
    return files


@pytest.mark.parametrize(
    "words",
    [
        ("-I", f"3@[::1]:19193:{DIRECTORY}"),  # of several voters the order is a chance of the JVM
        ("-N", "-r", "3.9"),
        ("-s", "-r", "4.1-IV0", "-f", "group.version=0"),
        (
            "-g",
            "-N",
            "-S",
            'SCRAM-SHA-256=[name=alice,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bQ==",password=secret]',
        ),
    ],
    ids=lambda words: words[0],
)
def test_the_directory_is_kafkas(tmp_path: Path, words: tuple[str, ...]) -> None:
    found = []
    for who in ("kafka", "shim"):
        config = tmp_path / f"{who}.properties"
        config.write_text(f"{CONFIG}log.dirs={tmp_path / who}\n")
        line = ("format", "-t", CLUSTER_ID, "-c", str(config), *words)
        for _ in range(2 if "-g" in words else 1):  # the second time nothing is left to do
            if who == "kafka":
                jvm.run("kafka.tools.StorageTool", *line)
            else:
                assert main(["storage", *line]) == 0
        found.append(written(tmp_path / who, with_id=words[0] == "-I"))
    theirs, ours = found
    if words[0] == "-s":  # the voter's directory id is a random one
        name = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
        one, two = theirs.pop(name), ours.pop(name)
        assert [batch[:5] for batch in one] == [batch[:5] for batch in two]
    assert ours == theirs
