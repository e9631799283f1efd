"""Kafka's own command-line tools print the same about the shim as about Apache Kafka, and ours print it too."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.targets import jvm
from kafka_shim.targets.shim_process import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_shim.targets import Target


TOOLS: list[ToolDriver] = []


@pytest.fixture(scope="module", autouse=True)
def tools() -> Iterator[None]:
    """One JVM for all tools of this file."""
    with ToolDriver() as driver:
        TOOLS.append(driver)
        yield
        TOOLS.clear()


def printed(target: Target, name: str, *arguments: str) -> list[str]:
    """What a tool prints, sorted, without what is one broker's own."""
    text = TOOLS[0].run(name, "--bootstrap-server", target.bootstrap, *arguments)
    return sorted(normal(target, text).splitlines())


def normal(target: Target, text: str) -> str:
    text = text.replace(target.bootstrap, "ADDRESS").replace(str(target.data_dir), "DIRECTORY")
    return re.sub(r"TopicId: \S+", "TopicId: ID", text)


def ours(target: Target, *arguments: str) -> str:
    """What `kafka-shim NOUN VERB ...` prints."""
    command = [sys.executable, "-m", "kafka_shim", *arguments, "--bootstrap-server", target.bootstrap]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return normal(target, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def both(shim: Target, kafka: Target) -> tuple[Target, Target]:
    """Both brokers with the same two topics, made by Kafka's tool."""
    for target in (shim, kafka):
        made = printed(
            target,
            "kafka-topics",
            "--create",
            "--topic",
            "tools.one",
            "--partitions",
            "3",
            "--config",
            "retention.ms=9",
        )
        assert "Created topic tools.one." in made
        printed(target, "kafka-topics", "--create", "--topic", "tools-two", "--partitions", "1")
    return shim, kafka


def same(both: tuple[Target, Target], name: str, *arguments: str) -> list[str]:
    """The tool's lines about the shim, when it prints the same about Kafka."""
    shim, kafka = both
    ours = printed(shim, name, *arguments)
    assert ours == printed(kafka, name, *arguments)
    return ours


@pytest.mark.timeout(300)
def test_topics_are_described_grown_and_deleted_alike(both):
    described = same(both, "kafka-topics", "--describe", "--topic", "tools.*")
    assert len([line for line in described if "Partition: " in line]) == 4
    same(both, "kafka-topics", "--alter", "--topic", "tools-two", "--partitions", "5")
    listed = same(both, "kafka-topics", "--list", "--topic", "tools.*")
    assert listed == ["tools-two", "tools.one"]
    same(both, "kafka-topics", "--create", "--topic", "tools-three", "--partitions", "2")
    same(both, "kafka-topics", "--delete", "--topic", "tools-three")
    assert "tools-three" not in same(both, "kafka-topics", "--list", "--topic", "tools.*")


@pytest.mark.timeout(300)
def test_options_are_altered_and_described_alike(both):
    entity = ("--entity-type", "topics", "--entity-name", "tools.one")
    same(both, "kafka-configs", "--alter", *entity, "--add-config", "cleanup.policy=[compact,delete],segment.ms=77000")
    described = same(both, "kafka-configs", "--describe", *entity)
    assert any("cleanup.policy=compact,delete" in line for line in described)
    same(both, "kafka-configs", "--alter", *entity, "--delete-config", "segment.ms")
    everything = same(both, "kafka-configs", "--describe", *entity, "--all")
    assert len(everything) == 34
    broker = ("--entity-type", "brokers", "--entity-default")
    same(both, "kafka-configs", "--alter", *broker, "--add-config", "log.cleaner.backoff.ms=20000")
    same(both, "kafka-configs", "--describe", *broker)
    same(both, "kafka-configs", "--alter", *broker, "--delete-config", "log.cleaner.backoff.ms")


@pytest.mark.timeout(300)
def test_records_are_counted_and_deleted_alike(both, tmp_path: Path):
    for target in both:
        jvm.tool(
            "kafka-console-producer",
            "--bootstrap-server",
            target.bootstrap,
            "--topic",
            "tools-two",
            stdin=b"".join(b"line %d\n" % number for number in range(20)),
        )
    counted = [printed(target, "kafka-get-offsets", "--topic", "tools-two") for target in both]
    assert [sum(int(line.rpartition(":")[2]) for line in lines) for lines in counted] == [20, 20]
    file = tmp_path / "delete.json"
    file.write_text('{"partitions": [{"topic": "tools.one", "partition": 0, "offset": 0}], "version": 1}')
    same(both, "kafka-delete-records", "--offset-json-file", str(file))
    same(both, "kafka-get-offsets", "--topic", "tools.one", "--time", "-2")


@pytest.mark.timeout(300)
def test_directories_features_and_the_quorum_are_described(both):
    shim, _ = both
    directories = printed(shim, "kafka-log-dirs", "--describe", "--topic-list", "tools.one")
    assert any('"partition":"tools.one-2","size":0,"offsetLag":0,"isFuture":false' in line for line in directories)
    assert any('"error":null,"logDir":"DIRECTORY"' in line for line in directories)
    features = [
        [re.sub(r"Epoch: \d+", "", line) for line in printed(target, "kafka-features", "describe")] for target in both
    ]
    assert features[0] == features[1]
    status = "\n".join(printed(shim, "kafka-metadata-quorum", "describe", "--status"))
    assert re.search(r"LeaderId: +1\n", status)
    assert re.search(r"MaxFollowerLag: +0\n", status)


@pytest.mark.timeout(300)
def test_our_commands_print_what_kafkas_tools_print(both):
    shim, _ = both
    described = ours(shim, "topics", "describe", "tools.one").splitlines()
    theirs = printed(shim, "kafka-topics", "--describe", "--topic", "tools.one")
    # Their tool prints options in the order of a hash map.
    assert [sorted(re.split(r",|Configs: ", line)) for line in sorted(described)] == [
        sorted(re.split(r",|Configs: ", line)) for line in theirs
    ]
    options = ("describe", "--entity-type", "topics", "--entity-name", "tools.one")
    for more in ((), ("--all",)):
        assert sorted(ours(shim, "configs", *options, *more).splitlines()) == printed(
            shim, "kafka-configs", f"--{options[0]}", *options[1:], *more
        )


def test_our_commands_make_change_and_remove_topics(shim: Target):
    assert (
        ours(shim, "topics", "create", "mine", "--partitions", "2", "-c", "retention.ms=5") == "Created topic mine.\n"
    )
    assert "TOPIC_ALREADY_EXISTS" in ours(shim, "topics", "create", "mine")
    assert ours(shim, "topics", "create", "mine", "--if-not-exists") == ""
    assert ours(shim, "topics", "alter", "mine", "--partitions", "3") == "Topic mine has 3 partitions.\n"
    entity = ("--entity-type", "topics", "--entity-name", "mine")
    altered = ours(
        shim, "configs", "alter", *entity, "--add-config", "max.message.bytes=7", "--delete-config", "retention.ms"
    )
    assert altered == "Completed updating config for topic mine.\n"
    assert "PartitionCount: 3\tReplicationFactor: 1\tConfigs: max.message.bytes=7" in ours(
        shim, "topics", "describe", "mine"
    )
    assert "mine" in ours(shim, "topics", "list").splitlines()
    assert ours(shim, "topics", "delete", "mine") == "Deleted topic mine.\n"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in ours(shim, "topics", "delete", "mine")
