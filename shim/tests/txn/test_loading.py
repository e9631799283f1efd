"""What a start makes of `__transaction_state`: partitions that it cannot read yet, and partitions that were added."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.storage import names
from kafka_shim.storage.results import StorageError
from kafka_shim.storage.segments import Segment
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.targets.waiting import right_answer
from kafka_shim.tests import descriptors
from kafka_shim.tests.txn.harness import Node, code_of, state_of
from kafka_shim.turns import at_once
from kafka_shim.txn.explain import REFUSED_IDS, Explanations
from kafka_shim.txn.log import TransactionLog
from kafka_shim.txn.transaction import COMPLETE_COMMIT, FIELDS, ONGOING, Transaction
from kafka_shim.wire_client import Connection

ASKED = make("InitProducerId", transactional_id="t", transaction_timeout_ms=60_000)


def test_ids_that_the_start_cannot_read_are_served_once_it_can(tmp_path: Path) -> None:
    """They are not ids that were never there, whose producers nobody fences and whose transactions nobody ends."""
    described = make("DescribeTransactions", transactional_ids=["t"])
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        create_topic(client, "orders", 1)
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["t"]), 4)
        first = client.request(ASKED, 4)
        assert first.error_code == 0
        begin = make(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=first.producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[{"name": "orders", "partitions": [0]}],
        )
        (topic,) = client.request(begin, 3).results_by_topic_v3_and_below
        assert [one.partition_error_code for one in topic.results_by_partition] == [0]
    (log,) = (path for path in tmp_path.glob("__transaction_state-*/*.log") if path.stat().st_size)
    with log.with_suffix(".index").open("ab") as index:
        index.write(b"\xff" * 8)
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        (state,) = client.request(described, 0).transaction_states
        assert state.error_code == ErrorCode.NOT_COORDINATOR
        assert client.request(ASKED, 4).error_code == ErrorCode.NOT_COORDINATOR
        (state,) = right_answer(
            lambda: client.request(described, 0).transaction_states,
            lambda states: states[0].error_code == 0,
            "the id is served",
        )
        assert (state.transaction_state, state.producer_id) == ("Ongoing", first.producer_id)
        again = right_answer(
            lambda: client.request(ASKED, 4), lambda answer: answer.error_code == 0, "the producer is fenced"
        )
        assert again.producer_id == first.producer_id
        assert again.producer_epoch > first.producer_epoch


def read_rest(node: Node) -> None:
    """What the coordinator does every second, in one step."""
    at_once(node.coordinator._log.load_rest(node.coordinator.completion.resume_all))


def test_a_partition_whose_records_cannot_be_read_ends_no_start(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "v")
    log = node.coordinator._log
    number = log.slots["app"].partition
    other = next(name for name in map(str, range(99)) if log.partition_for(name) != number)
    node.init(other)
    left, read = [2], Segment.read

    def fail(segment: Segment, position: int, size_bytes: int) -> bytes:
        """The second record is in a bad sector."""
        if f"{TRANSACTION_STATE_TOPIC}-{number}/" in segment.path(names.LOG):
            left[0] -= 1
            if not left[0]:
                left[0] = 2
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(segment, position, size_bytes)

    with monkeypatch.context() as patch, caplog.at_level("WARNING", "kafka_shim.txn"):
        patch.setattr(Segment, "read", fail)
        node.restart()
        assert node.init(other)[1] == 1
        for _ in range(3):
            assert code_of(node.init, "app") is ErrorCode.NOT_COORDINATOR
            assert [txn.transactional_id for txn in node.coordinator.transactions()] == [other]
            read_rest(node)
        assert len(caplog.records) == 1
    read_rest(node)
    assert state_of(node).state is ONGOING
    assert node.end("app", producer, True) == (producer[0], producer[1] + 1)
    assert node.visible("orders", 0) == ["v"]


def test_a_start_without_descriptors_for_its_transactions_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.init("app")

    def fail(*_: object) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    log = TransactionLog(node.config, node.logs, node.metadata, Explanations())
    monkeypatch.setattr(Segment, "read", fail)
    with pytest.raises(StorageError, match="cannot be read"):
        log.load()


def test_an_id_stays_in_its_partition_when_others_are_added(tmp_path: Path) -> None:
    """All its records are in one partition, so that none is read behind a later one of another."""
    name = next(name for name in map(str, range(9999)) if internal_partition(name, 50) > internal_partition(name, 60))
    asked = make("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    grown = make(
        "CreatePartitions", topics=[{"name": "__transaction_state", "count": 60, "assignments": None}], timeout_ms=9000
    )
    answers = []
    for life in range(4):
        with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
            client.request(make("FindCoordinator", key_type=1, coordinator_keys=[name]), 4)
            if life == 1:
                (result,) = client.request(grown, 3).results
                assert result.error_code == 0
            for _ in range(2):
                answer = client.request(asked, 4)
                answers.append((answer.error_code, answer.producer_id, answer.producer_epoch))
    assert answers == [(0, answers[0][1], epoch) for epoch in range(8)]


def test_of_two_partitions_that_have_an_id_the_later_record_counts(node: Node) -> None:
    """A version of before left such directories behind, where somebody had added partitions."""
    node.init("t")
    log = node.coordinator._log
    slot = log.slots["t"]
    assert slot.transaction is not None
    other = slot.partition + 1

    def at(last_update_ms: int) -> Transaction:
        fields = {name: getattr(slot.transaction, name) for name in FIELDS}
        return Transaction(**{**fields, "last_update_ms": last_update_ms})

    now_ms = slot.transaction.last_update_ms
    for txn in (at(now_ms - 1), None):
        log.apply("t", txn, other)
        assert log.slots["t"] is slot
    later = at(now_ms + 1)
    log.apply("t", later, other)
    assert (log.slots["t"].partition, log.slots["t"].transaction) == (other, later)
    log.apply("t", None, slot.partition)
    assert "t" in log.slots
    log.apply("t", None, other)
    assert "t" not in log.slots


def test_refusals_of_an_id_that_a_start_has_read_are_not_dropped_by_those_of_made_up_ids(tmp_path: Path) -> None:
    node = Node(tmp_path)
    producer_id, epoch = node.init("app")
    node.restart()
    for name in ("app", *(f"made-up-{number}" for number in range(REFUSED_IDS))):
        with pytest.raises(KafkaError):
            node.end(name, (producer_id, epoch + 5), True)
    lines = node.coordinator.explanations.lines("app")
    assert [line.split(" ", 2)[1] for line in lines] == ["EndTxn"]
    node.stop()


def test_ids_in_partitions_that_the_start_cannot_read_are_given_to_nobody_else(tmp_path: Path) -> None:
    """A power cut has lost the record of their block."""
    metadata = Path("__cluster_metadata-0", f"{0:020d}.log")
    with Broker(data_dir=tmp_path / "first") as broker, Connection(broker.bootstrap_servers) as client:
        client.request(make("FindCoordinator", key_type=1, coordinator_keys=["t"]), 4)
        on_disk = (tmp_path / "first" / metadata).stat().st_size
        first = client.request(ASKED, 4)
        shutil.copytree(tmp_path / "first", cut := tmp_path / "cut")
    os.truncate(cut / metadata, on_disk)
    (log,) = (path for path in cut.glob("__transaction_state-*/*.log") if path.stat().st_size)
    in_the_way = log.with_name(f"{9:020d}.log")
    in_the_way.mkdir()
    with Broker(data_dir=cut) as broker, Connection(broker.bootstrap_servers) as client:
        assert client.request(ASKED, 4).error_code == ErrorCode.NOT_COORDINATOR
        other = client.request(make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000), 4)
        in_the_way.rmdir()
        again = right_answer(
            lambda: client.request(ASKED, 4), lambda answer: answer.error_code == 0, "the id is served"
        )
        assert again.producer_id == first.producer_id < other.producer_id


@pytest.mark.parametrize(("known", "next_id"), [(2500, 2501), (5_000_000, 1000)])
def test_an_id_that_a_transaction_is_about_to_get_is_given_to_nobody_else(node: Node, known: int, next_id: int) -> None:
    """One that is far from all blocks is not of this broker, and no power cut is the reason."""
    node.init("t")
    log = node.coordinator._log
    fields = {name: getattr(log.slots["t"].transaction, name) for name in FIELDS}
    log.write(log.slots["t"], Transaction(**{**fields, "next_producer_id": known}))
    node.restart()
    assert node.init("other")[0] == next_id


@pytest.mark.parametrize("position", [61, 70], ids=["the length of a record", "its key"])
def test_a_corrupt_batch_costs_what_it_holds_and_nothing_else(node: Node, position: int) -> None:
    producer = node.init("app")
    partition = node.coordinator.partition_for("app")
    same = (f"id-{number}" for number in range(100))
    other = node.init(next(name for name in same if node.coordinator.partition_for(name) == partition))
    for _ in range(2):
        node.produce("app", producer, "orders", 0, "a")
        producer = node.end("app", producer, True)
    batches = [batch.position for _, batch in node.logs.get(TRANSACTION_STATE_TOPIC, partition).batches()]
    node.stop()
    (path,) = node.path.glob(f"{TRANSACTION_STATE_TOPIC}-{partition}/*.log")
    data = bytearray(path.read_bytes())
    data[batches[-1] + position] ^= 0xFF  # the end of the second transaction, which is prepared again
    path.write_bytes(data)
    node.start()
    assert state_of(node).state is COMPLETE_COMMIT
    assert node.init("app") == (producer[0], producer[1] + 1)
    assert other[0] in {one.producer_id for one in node.coordinator.transactions()}
    assert node.visible("orders", 0) == ["a", "a"]


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\0\x7f\xff", b"\0\0\0\x03app"])
def test_a_record_that_no_broker_wrote_keeps_nobody_from_their_transactions(node: Node, key: bytes) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("__transaction_state", node.coordinator.partition_for("app"))
    now_ms = node.clock.now_ms()
    log.append_batch(cext_records.build([(key, b"\0\1junk", now_ms, ())]), now_ms=now_ms)
    node.crash()
    assert state_of(node).state is ONGOING
    assert node.end("app", producer, True) == (producer[0], 1)
    assert node.visible("orders", 0) == ["a"]


def test_start_that_cannot_read_the_transactions_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that cannot be read now is not one that was never there: nobody would fence its last producer."""
    first = node.init("t")
    start_coordinator = node.start_coordinator

    def start_without_descriptors() -> None:
        with descriptors.none_left():
            start_coordinator()

    monkeypatch.setattr(node, "start_coordinator", start_without_descriptors)
    with pytest.raises(StorageError, match="cannot be loaded"):
        node.restart()
    monkeypatch.undo()
    node.start_coordinator()
    assert node.init("t") == (first[0], first[1] + 1)
