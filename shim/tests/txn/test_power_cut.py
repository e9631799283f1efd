"""A power cut between any two fsyncs, where `flush.messages` is set: the disk has of each file what its last fsync put
there and nothing newer. No marker without its decision, no completed transaction without its markers (B10, B12)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shim import memory_dir
from shim.errors import ErrorCode, KafkaError
from shim.tests.txn.harness import Node
from shim.txn.state import COMPLETE_ABORT, COMPLETE_COMMIT, TV0, TV2

TIMEOUT_MS = 5000


class Disk:
    """Follows the fsyncs of a node, and keeps what the disk held after each of them."""

    def __init__(self, node: Node, images: Path) -> None:
        self.node = node
        self.images = images
        self.count = 0
        shutil.copytree(node.path, self.image(0))
        node.faults.arm("log.before_fsync", self._on_fsync)

    def image(self, number: int) -> Path:
        return self.images / f"image-{number}"

    def _on_fsync(self, path: str) -> None:
        # In the flusher's thread, which does one at a time.
        shutil.copytree(self.image(self.count), self.image(self.count + 1))
        self.count += 1
        relative = Path(path).relative_to(self.node.path)
        shutil.copy2(path, self.image(self.count) / relative)


@pytest.fixture
def directory() -> Iterator[Path]:
    made = memory_dir.make()
    yield made
    memory_dir.remove(made)


def node_with_an_open_transaction(directory: Path, tv: int) -> tuple[Node, tuple[int, int]]:
    node = Node(directory, log_flush_interval_messages=1)
    node.topic("orders")
    producer = node.init("app", None, TIMEOUT_MS)
    partitions = frozenset({("orders", 0), ("orders", 1)})
    if tv < TV2:
        node.coordinator.add_partitions("app", *producer, partitions, tv)
    for partition in range(2):
        node.produce("app", producer, "orders", partition, f"p{partition}", 12 if tv >= TV2 else 9)
    return node, producer


def check_every_image(disk: Disk, allowed: tuple[list[str], ...]) -> set[str]:
    """The states that the images end in."""
    states = set()
    for number in range(disk.count + 1):
        life = disk.images / f"after-{number}"
        life.mkdir()
        shutil.copytree(disk.image(number), life / "life-0")
        node = Node(life, log_flush_interval_messages=1)
        try:
            node.clock.set_wall(disk.node.clock.now_ms())
            node.clock.advance(TIMEOUT_MS + 10_000)
            for partition in range(2):
                log = node.logs.get("orders", partition)
                assert log.last_stable_offset == log.log_end_offset, f"image {number}: it hangs in {log.name}"
            seen = node.visible("orders", 0) + node.visible("orders", 1)
            assert seen in allowed, f"image {number}: {seen}"
            txn = node.coordinator.describe("app")
            assert txn.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
            assert (txn.state is COMPLETE_COMMIT) == bool(seen)
            states.add(txn.state.name)
        finally:
            node.stop()
    return states


@pytest.mark.parametrize("tv", [TV0, TV2])
@pytest.mark.parametrize("commit", [True, False])
def test_at_any_fsync_of_the_end(directory: Path, commit: bool, tv: int) -> None:
    node, producer = node_with_an_open_transaction(directory, tv)
    disk = Disk(node, directory)

    async def end() -> None:
        assert node.coordinator.must_wait("app")
        await node.coordinator.end_stepwise("app", *producer, commit, tv)

    asyncio.run(end())
    node.faults.disarm()
    assert node.visible("orders", 0) == (["p0"] if commit else [])
    node.stop()
    states = check_every_image(disk, ([], ["p0", "p1"]) if commit else ([],))
    assert states == ({"COMPLETE_ABORT", "COMPLETE_COMMIT"} if commit else {"COMPLETE_ABORT"})
    assert disk.count >= 4


@pytest.mark.parametrize("how", ["timeout", "fenced"])
def test_at_any_fsync_of_an_abort_of_the_broker_s_own(directory: Path, how: str) -> None:
    node, _ = node_with_an_open_transaction(directory, TV2)
    disk = Disk(node, directory)

    async def abort() -> None:
        if how == "timeout":
            node.clock.advance(TIMEOUT_MS + 10_000)
        else:
            with pytest.raises(KafkaError) as caught:
                node.init("app")
            assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
        async with asyncio.timeout(20):
            while node.coordinator.describe("app").state is not COMPLETE_ABORT:  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    asyncio.run(abort())
    node.faults.disarm()
    node.stop()
    assert check_every_image(disk, ([],)) == {"COMPLETE_ABORT"}
    assert disk.count >= 3
