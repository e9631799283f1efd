"""Metadata in turns, and the thread that writes its snapshot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from kafka_shim.api import (
    k03_metadata,
)
from kafka_shim.embedded import Broker
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.storage import partitions
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    altered,
    begun,
    entry,
    steps_of,
    topics,
)
from kafka_shim.wire_client import Connection


def test_metadata_of_a_large_topic_takes_many_steps_and_shows_it_as_it_was(broker: Broker) -> None:
    topics(broker, large=10 * k03_metadata.PARTITIONS_PER_STEP, other=1)

    def run(state: Any) -> tuple[Any, int]:
        steps = begun(state, make("Metadata", topics=None), 12, 3)
        state.metadata.create_partitions("large", 11 * k03_metadata.PARTITIONS_PER_STEP)
        state.metadata.delete_topic("other")
        return steps_of(steps)

    answer, count = broker.call(run, broker.state)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [
        ("large", 10 * k03_metadata.PARTITIONS_PER_STEP)
    ]
    assert count >= 7
    # What was described before the change is not kept for those who ask after it.
    again, _ = broker.call(lambda: steps_of(begun(broker.state, make("Metadata", topics=None), 12, 0)))
    assert [len(topic.partitions) for topic in again.topics] == [11 * k03_metadata.PARTITIONS_PER_STEP]


def test_a_snapshot_shows_the_metadata_of_its_offset_while_they_change(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread encodes it; what the event loop changes meanwhile is not in it."""
    from kafka_shim.metadata import snapshots
    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import read_records
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.tests.metadata.test_snapshots import everything

    topics(broker, kept=3, gone=200)
    began, may_go_on, threads = threading.Event(), threading.Event(), set()
    records_of = snapshots.image_records

    def held(view: Any) -> Iterator[Any]:
        threads.add(threading.get_ident())
        for number, record in enumerate(records_of(view)):
            if number == 1:  # before the topics
                began.set()
                assert may_go_on.wait(60)
            yield record

    monkeypatch.setattr(snapshots, "image_records", held)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("AlterClientQuotas", entries=[entry("u")]), 1)

        def start(state: Any) -> tuple[Any, int, int]:
            store = state.metadata
            store._snapshots._start(store.image, store._clock.now_ms(), "a test asks")
            return deepcopy(everything(store.image)), store.image.last_offset, threading.get_ident()

        before, offset, loop_thread = broker.call(start, broker.state)
        assert began.wait(60)
        broker.call(broker.state.metadata.delete_topic, "gone")
        broker.call(broker.state.metadata.create_partitions, "kept", 5)
        kept = broker.call(lambda: broker.state.metadata.image.topics["kept"].topic_id)
        change_of_one = PartitionChangeRecord(partition_id=0, topic_id=kept, eligible_leader_replicas=[1])
        broker.call(broker.state.metadata.commit, [change_of_one])
        client.request(altered(["kept"], "80"), 1)
        change = entry("u")
        change["ops"][0]["value"] = 6.0
        client.request(make("AlterClientQuotas", entries=[change]), 1)
        may_go_on.set()
        broker.call(broker.state.metadata.await_snapshot)
        path = broker.call(lambda: broker.state.metadata.snapshot_path(*broker.state.metadata.newest_snapshot()))
    again = Image()
    replayer = Replayer(again)
    for record in read_records(path.read_bytes()):
        replayer.apply(record)
    assert everything(again) == before
    assert int(path.name[:20]) == offset + 1
    assert loop_thread not in threads


def test_a_process_of_its_own_spares_the_collector_the_logs_that_are_used(broker: Broker) -> None:
    """A look at 20,000 of them held the loop for 60 ms."""
    spared: list[int] = []
    broker.call(lambda: setattr(broker.state.logs.partitions, "after_many", lambda: spared.append(1)))
    topics(broker, first=partitions.MANY - 100)
    before = len(spared)
    topics(broker, second=partitions.MANY)
    assert len(spared) == before + 1
