"""What the options of transactions and of the metadata log do, under a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, put
from kafka_shim.tests.txn.harness import TOPIC, Node
from kafka_shim.txn import admission
from kafka_shim.txn.transaction import TV2


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def make(**options: object) -> Node:
        node = Node(tmp_path / f"{len(made)}", **options)
        made.append(node)
        node.topic("orders")
        return node

    yield make
    for node in made:
        node.faults.disarm()
        node.stop()


@pytest.mark.option("transaction.max.timeout.ms")
def test_timeout_of_a_transaction_has_its_limit(make_node: Callable[..., Node]) -> None:
    node = make_node(transaction_max_timeout_ms=5000)
    node.init("app", timeout_ms=5000)
    with pytest.raises(KafkaError, check=lambda err: err.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT):
        node.init("app", timeout_ms=5001)


@pytest.mark.option("transaction.abort.timed.out.transaction.cleanup.interval.ms")
def test_overdue_transaction_is_aborted_at_the_next_look(make_node: Callable[..., Node]) -> None:
    node = make_node(transaction_abort_timed_out_transaction_cleanup_interval_ms=3000)
    producer = node.init("app", timeout_ms=1000)
    node.produce("app", producer, "orders", 0, "a")
    node.clock.advance(2999)
    assert node.markers == []
    node.clock.advance(1)
    assert [marker[-1] for marker in node.markers] == [False]


@pytest.mark.option("transactional.id.expiration.ms", "transaction.remove.expired.transaction.cleanup.interval.ms")
def test_unused_id_is_forgotten_at_the_look_after_its_time(make_node: Callable[..., Node]) -> None:
    node = make_node(
        transactional_id_expiration_ms=5000, transaction_remove_expired_transaction_cleanup_interval_ms=2000
    )
    node.init("app")
    node.clock.advance(5999)
    assert node.coordinator.describe("app") is not None
    node.clock.advance(1)
    with pytest.raises(KafkaError, check=lambda err: err.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
        node.coordinator.describe("app")


@pytest.mark.option("transaction.state.log.num.partitions", "transaction.state.log.segment.bytes")
def test_topic_of_transactions_is_made_with_its_partitions_and_segments(make_node: Callable[..., Node]) -> None:
    node = make_node(transaction_state_log_num_partitions=4, transaction_state_log_segment_bytes=2_000_000)
    assert len(node.metadata.image.topics[TOPIC].partitions) == 4
    assert node.metadata.topic_config(TOPIC).segment_bytes == 2_000_000


@pytest.fixture
def impatient(make_node: Callable[..., Node]) -> Node:
    """A node on which a Produce asks its coordinator again after 300 ms, and gives up 600 ms after it came."""
    return make_node(add_partitions_to_txn_retry_backoff_ms=300, add_partitions_to_txn_retry_backoff_max_ms=500)


def produce_while_ending(node: Node) -> tuple[asyncio.Task[Any], asyncio.Task[Any]]:
    """Begins a commit, which is held after PrepareCommit, and a Produce of the same producer, which waits for it."""
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 1)
    node.faults.arm("txn.after_prepare", "hold")
    ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
    admitted = admission.admit_patiently(node.coordinator, node.clock, node.config, "app", producer[0], 1, [(log, 0)])
    return ending, asyncio.create_task(admitted)


@pytest.mark.option("add.partitions.to.txn.retry.backoff.ms")
def test_produce_tries_again_at_its_pause(impatient: Node) -> None:
    node = impatient

    async def scenario() -> list[bool]:
        ending, waiting = produce_while_ending(node)
        await node.clock.advance_and_drain(10)
        node.faults.disarm()
        await ending
        done = []
        for delay_ms in (289, 1):
            await node.clock.advance_and_drain(delay_ms)
            done.append(waiting.done())
        (outcome,), _ = await waiting
        assert not isinstance(outcome, KafkaError)
        return done

    assert asyncio.run(scenario()) == [False, True]


@pytest.mark.option("add.partitions.to.txn.retry.backoff.max.ms")
def test_produce_gives_up_when_its_time_to_join_is_over(impatient: Node) -> None:
    node = impatient

    async def scenario() -> list[bool]:
        ending, waiting = produce_while_ending(node)
        done = []
        for delay_ms in (300, 299, 1):
            await node.clock.advance_and_drain(delay_ms)
            done.append(waiting.done())
        (outcome,), _ = await waiting
        assert isinstance(outcome, KafkaError)
        assert outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS
        node.faults.disarm()
        await ending
        return done

    assert asyncio.run(scenario()) == [False, False, True]


@pytest.mark.option("transaction.partition.verification.enable")
def test_transactional_batch_is_taken_unverified_where_the_check_is_off(make_disk: Callable[..., Disk]) -> None:
    from kafka_shim.tests.storage.conftest import batch, refused

    data = {"pid": 1, "seq": 0, "txn": True}
    with refused(ErrorCode.INVALID_TXN_STATE):
        append_as_client(make_disk().open(), batch(b"a", **data), now_ms=NOW_MS, version=11)
    log = make_disk(transaction_partition_verification_enable=False).open()
    assert append_as_client(log, batch(b"a", **data), now_ms=NOW_MS, version=11).base_offset == 0
    put(log, b"b", pid=1, seq=1, txn=True)


# --- the metadata log


def kept(directory: Path, suffix: str) -> list[str]:
    return sorted(path.name for path in (directory / "__cluster_metadata-0").glob(f"*{suffix}"))


@pytest.mark.option("metadata.log.segment.bytes", "metadata.log.segment.ms")
@pytest.mark.parametrize(
    ("options", "rolls"),
    [({}, False), ({"metadata_log_segment_bytes": 4000}, True), ({"metadata_log_segment_ms": 1000}, True)],
)
def test_metadata_log_rolls_by_size_and_time(tmp_path: Path, options: dict[str, int], rolls: bool) -> None:
    broker = Opened(tmp_path, **options).start()
    for number in range(80):
        if number % 40 == 0:
            broker.clock.advance(1001)
        record = ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="t", name="retention.ms", value=f"{number}")
        broker.store.commit([record])
    broker.stop()
    assert (len(kept(tmp_path, ".log")) > 1) is rolls


@pytest.mark.option("metadata.log.max.record.bytes.between.snapshots", "metadata.log.max.snapshot.interval.ms")
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 0),
        ({"metadata_log_max_record_bytes_between_snapshots": 3000}, 1),
        ({"metadata_log_max_snapshot_interval_ms": 1000}, 1),
    ],
)
def test_snapshot_is_made_by_bytes_and_time(tmp_path: Path, options: dict[str, int], count: int) -> None:
    broker = Opened(tmp_path, **options).start()
    broker.store.create_topic("one")
    assert kept(tmp_path, ".checkpoint") == []
    broker.clock.advance(1000)
    broker.store.create_topic("two", 60)
    broker.stop()
    assert len(kept(tmp_path, ".checkpoint")) == count


@pytest.mark.option("metadata.max.retention.bytes", "metadata.max.retention.ms")
@pytest.mark.parametrize(
    ("options", "are_gone"),
    [({}, False), ({"metadata_max_retention_bytes": 20_000}, True), ({"metadata_max_retention_ms": 1000}, True)],
)
def test_old_metadata_goes_by_size_and_age(tmp_path: Path, options: dict[str, int], are_gone: bool) -> None:
    broker = Opened(
        tmp_path,
        metadata_log_max_record_bytes_between_snapshots=4000,
        metadata_log_segment_bytes=2000,
        **options,
    ).start()
    for number in range(400):
        if number % 100 == 0:
            broker.clock.advance(1001)
        record = ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="t", name="retention.ms", value=f"{number}")
        broker.store.commit([record])
        broker.store.await_snapshot()
    broker.stop()
    assert (int(kept(tmp_path, ".log")[0][:20]) > 0) is are_gone


@pytest.mark.option("min.insync.replicas")
def test_new_directory_keeps_the_number_of_replicas_for_kafka(tmp_path: Path) -> None:
    broker = Opened(tmp_path, min_insync_replicas=2).start()
    assert broker.store.image.config_of(RESOURCE_BROKER, "") == {"min.insync.replicas": "2"}
    broker.stop()


@pytest.mark.option("node.id", "broker.id")
def test_broker_has_its_id() -> None:
    for name in ("node_id", "broker_id"):
        with Broker(**{name: 7}) as broker:
            assert broker.node_id == 7
