"""A power cut between any two fsyncs, where `flush.messages` is set: the disk has of each file what its last fsync put
there and nothing newer. No marker without its decision, no completed transaction without its markers (B10, B12)."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim import Broker, memory_dir
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_shim.tests.txn.harness import Node
from kafka_shim.tests.txn.raw import Client
from kafka_shim.txn.transaction import COMPLETE_ABORT, COMPLETE_COMMIT, TV0, TV2
from kafka_shim.wire_client import Connection

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
        # In the flusher's thread, which does one at a time. A file's name is in the image from its first fsync on.
        if Path(path).is_dir():
            return
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
        async with asyncio.timeout(60):
            while node.coordinator.describe("app").state is not COMPLETE_ABORT:  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    asyncio.run(abort())
    node.faults.disarm()
    node.stop()
    assert check_every_image(disk, ([],)) == {"COMPLETE_ABORT"}
    assert disk.count >= 3


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_retried_end_writes_no_marker_before_its_decision_is_on_the_disk(directory: Path, is_awaited: bool) -> None:
    """The fsync of PREPARE failed; the markers' own fsync would come first."""
    node, producer = node_with_an_open_transaction(directory, TV2)
    log = node.logs.get("__transaction_state", node.coordinator.partition_for("app"))
    decided: list[bool] = []
    node.faults.arm("txn.after_marker", lambda **_: decided.append(log.recovery_point == log.log_end_offset))
    node.faults.arm("log.before_fsync", "oserror", "EMFILE", where={"path": log.active.path(".log")})

    async def end() -> None:
        with pytest.raises(KafkaError, match="open files"):
            await node.coordinator.end_stepwise("app", *producer, True, TV2)
        assert decided == []
        node.faults.disarm("log.before_fsync")
        if is_awaited:
            node.clock.advance(100)
            async with asyncio.timeout(60):
                while node.coordinator.describe("app").state is not COMPLETE_COMMIT:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)

    asyncio.run(end())
    if not is_awaited:
        node.clock.advance(100)
    assert decided == [True, True]
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    node.stop()


def test_a_resumed_end_writes_no_marker_before_its_decision_is_on_the_disk(directory: Path) -> None:
    node, producer = node_with_an_open_transaction(directory, TV2)
    node.faults.arm("txn.after_prepare", "error", "UNKNOWN_SERVER_ERROR")

    async def end() -> None:
        with pytest.raises(KafkaError):
            await node.coordinator.end_stepwise("app", *producer, True, TV2)

    asyncio.run(end())
    synced_first: list[str] = []
    start = node.start_coordinator

    def start_coordinator() -> None:
        node.faults.arm("log.before_fsync", lambda path: synced_first.append(Path(path).parent.name))
        node.faults.arm("txn.after_marker", lambda **_: node.faults.disarm("log.before_fsync"), nth=1)
        start()

    node.start_coordinator = start_coordinator  # type: ignore[method-assign]
    node.crash()
    assert f"__transaction_state-{node.coordinator.partition_for('app')}" in synced_first
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    node.stop()


class Fsyncs:
    """The size of each file at each of its fsyncs, which take a while: others write meanwhile."""

    def __init__(self, broker: Broker) -> None:
        self.seen: list[tuple[str, int]] = []
        broker.faults.arm("log.before_fsync", self._on_fsync)

    def _on_fsync(self, path: str) -> None:
        time.sleep(0.03)
        self.seen.append((Path(path).parent.name, Path(path).stat().st_size))

    def first_above(self, name: str, size_bytes: int) -> int:
        """The number of the first fsync that made more than this durable of a partition."""
        return next(at for at, (found, size) in enumerate(self.seen) if found.startswith(name) and size > size_bytes)


@pytest.fixture
def broker() -> Iterator[Broker]:
    options = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1, "num_partitions": 1}
    with Broker(log_flush_interval_messages=1, **options) as started:
        started.call(started.state.metadata.create_topic, "t", 1, 1)
        for topic in ("__transaction_state", "__consumer_offsets"):
            started.call(started.state.metadata.ensure_internal_topic, topic)
        yield started


@pytest.mark.parametrize("what", ["records", "offsets"])
def test_a_transaction_is_on_the_disk_before_what_it_holds(broker: Broker, what: str) -> None:
    """Another client's fsync of the same file, asked for just before, would take the batch along, and its coordinator's
    record would come later: a batch of a transaction that nobody knows of."""
    with Connection(broker.bootstrap_servers) as first, Connection(broker.bootstrap_servers) as second:
        plain, client = Client(first, "app-1"), Client(second, "app-2")
        assert plain.init() == client.init() == ErrorCode.NONE
        assert plain.produce(12) == plain.commit_offsets(5) == ErrorCode.NONE
        target = "t-0" if what == "records" else "__consumer_offsets-0"
        sizes = {log.name: log.size_bytes for log in broker.state.logs.loaded()}
        fsyncs = Fsyncs(broker)
        busy = threading.Thread(target=broker.call, args=(time.sleep, 0.1))
        busy.start()
        if what == "records":
            plain.send_produce(12, sequence=1)
            client.send_produce(12)
        else:
            send_offsets(plain)
            send_offsets(client)
        busy.join()
        for each in (plain, client):
            if what == "records":
                assert each.receive_produce(12) == ErrorCode.NONE
            else:
                _, answer = each.connection.receive(TxnOffsetCommitRequest.API_KEY, 5)
                assert answer.topics[0].partitions[0].error_code == 0
        grown = broker.state.logs.get(target[:-2], 0).size_bytes - sizes[target]
        broker.faults.disarm()
    began = fsyncs.first_above("__transaction_state-0", sizes["__transaction_state-0"])
    assert began < fsyncs.first_above(target, sizes[target] + grown // 2)


def send_offsets(client: Client) -> None:
    """TxnOffsetCommit v5, its answer not awaited."""
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id=client.name,
        group_id=client.name,
        producer_id=client.producer[0],
        producer_epoch=client.producer[1],
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])],
    )
    client.connection.send(request, 5)


METADATA = Path("__cluster_metadata-0") / f"{0:020d}.log"


def test_an_id_whose_block_a_power_cut_lost_is_given_to_nobody_else(directory: Path) -> None:
    """The record that names it may be on the disk before that of its block is: no fsync is awaited between them."""
    node = Node(directory)
    on_disk = (node.path / METADATA).stat().st_size
    producer_id, _ = node.init("app")
    shutil.copytree(node.path, directory / "cut" / "life-0")
    node.stop()
    os.truncate(directory / "cut" / "life-0" / METADATA, on_disk)
    node = Node(directory / "cut")
    others = [node.init("other")[0], node.coordinator.init_producer_id(None, 0, None).response[0]]
    assert min(others) > producer_id
    assert node.init("app") == (producer_id, 1)
    node.crash()
    assert node.init("third")[0] > max(others)
    node.stop()


def test_an_id_of_an_earlier_life_waits_for_the_fsync_of_its_block(directory: Path) -> None:
    """The broker was killed before it: a power cut would take the block back, and give it to others."""
    node = Node(directory)
    producer_id, _ = node.init("app")
    start, is_released = node.start_coordinator, threading.Event()

    def start_coordinator() -> None:
        node.faults.arm("log.before_fsync", lambda path: is_released.wait(60))
        start()

    node.start_coordinator = start_coordinator  # type: ignore[method-assign]
    node.crash()
    end_offset = node.metadata.next_offset
    outcome = node.coordinator.init_producer_id("app", TIMEOUT_MS, None)
    assert outcome.response == (producer_id, 1)
    (flush,) = outcome.flushes
    assert not flush.done()
    is_released.set()
    flush.result(60)
    node.faults.disarm()
    assert node.metadata.partition_log.recovery_point == end_offset
    assert list(node.coordinator.init_producer_id("app", TIMEOUT_MS, None).flushes) == []
    node.stop()
