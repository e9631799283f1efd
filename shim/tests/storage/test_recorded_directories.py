"""The metadata say which directory holds a partition, and which ones take no new partitions."""

from __future__ import annotations

import errno
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.metadata.assignments import RETRY_MS, Assignments
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.two_dirs import SMALL


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.ENOSPC, "full"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_a_directory_is_recorded_later_if_it_could_not_be_when_it_was_to_be(node, monkeypatch, error):
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", fail)
        node.store.create_topic("t", 1, 1, SMALL)
        node.clock.advance(100)
    assert node.store.topic("t").partitions[0].directories != (node.raw_id("a"),)
    node.clock.advance(RETRY_MS)
    assert node.store.topic("t").partitions[0].directories == (node.raw_id("a"),)


def test_a_move_that_could_not_be_recorded_either_leaves_the_directory_to_be_recorded_later(node, monkeypatch):
    """The record of a new partition's directory waits for room on a full disk, and so does that of its move, which is
    called off then."""
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assign, attempts = Assignments.assign, []

    def fail(*_: object) -> None:
        raise full

    def note(*arguments: object) -> None:
        attempts.append(arguments)
        assign(*arguments)

    node.logs.moves.assign = partial(note, node.store.assignments)
    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", fail)
        node.store.create_topic("t", 1, 1, SMALL)
        node.clock.advance(100)
        node.move("b")
        node.settle(lambda: bool(attempts))
    node.move("a")
    node.clock.advance(RETRY_MS)
    assert node.holder() == "a"


def test_a_directory_is_recorded_later_if_there_was_no_memory_for_the_timer_either(node, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", no_memory_left)
        patch.setattr(Scheduler, "after", no_memory_left)
        node.store.create_topic("t", 1, 1, SMALL)
        with suppress(MemoryError):
            node.clock.advance(100)
    node.clock.advance(RETRY_MS)
    assert node.store.topic("t").partitions[0].directories == (node.raw_id("a"),)
    assert not node.store.assignments._scheduler.is_scheduled("assign")


@pytest.mark.option("cordoned.log.dirs")
def test_cordoned_directories_take_no_new_partitions(tmp_path):
    a, b = (str(tmp_path / "data" / name) for name in "ab")
    config = BrokerConfig.parse({"log.dirs": f"{a},{b}", "cordoned.log.dirs": a})
    logs = Logs(config, VirtualClock(), Faults())
    logs.open_dirs("AAAAAAAAQACAAAAAAAAAAQ")
    logs.start(lambda topic, partition: (bytes(16), TopicConfig(config), 0))
    for partition in range(4):
        logs.create("t", bytes(16), partition, TopicConfig(config))
    assert {Path(logs.get("t", partition).directory).parent.name for partition in range(4)} == {"b"}
    config.cordoned_log_dirs = ("*",)
    assert Path(logs.create("u", bytes(16), 0, TopicConfig(config)).directory).parent.name == "a"
    logs.stop()


def test_cordoning_every_directory_refuses_new_topics_and_is_recorded(node):
    node.config.cordoned_log_dirs = ("*",)
    node.store.assignments.record_cordoned()
    (broker,) = node.store.image.brokers.values()
    assert set(broker.cordoned_log_dirs) == {node.raw_id("a"), node.raw_id("b")}
    with pytest.raises(KafkaError, match="have all their log directories cordoned") as refusal:
        node.store.create_topic("t", 1, 1)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    node.config.cordoned_log_dirs = ()
    node.store.assignments.record_cordoned()
    node.store.create_topic("t", 1, 1)
