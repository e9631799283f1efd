"""The three levels of transaction.version under Java and librdkafka: both ask what is finalised and adapt."""

from __future__ import annotations

import confluent_kafka
import pytest

from kafka_shim.compat.transactions.pipeline import read_committed
from kafka_shim.compat.transactions.soak import soak
from kafka_shim.targets.java_transactions import JavaTransactions
from kafka_shim.targets.requests import create_topic, finalise, make
from kafka_shim.targets.shim_process import ShimProcess
from kafka_shim.wire_client import Connection

pytestmark = pytest.mark.java


@pytest.mark.parametrize("level", [0, 1, 2])
def test_commit_abort_fence_and_offsets_at_every_level(level: int) -> None:
    with ShimProcess() as target:
        with Connection(target.bootstrap) as client:
            create_topic(client, "t", 1)
            finalise(client, "transaction.version", level)
        with JavaTransactions(target.bootstrap) as java:
            java.producer("p", "app")
            java.call("init", "p")
            for value, outcome in (("a", "commit"), ("x", "abort"), ("b", "commit")):
                java.call("begin", "p")
                java.send("p", "t", value)
                java.call("offsets", "p", "group", "t", "0", str(ord(value)))
                java.call(outcome, "p")
            java.producer("q", "app")
            java.call("init", "q")
            java.call("begin", "q")
            java.send("q", "t", "c")
            java.call("commit", "q")
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": target.bootstrap, "transactional.id": "rd", "log_level": 0}
        )
        producer.init_transactions(60)
        for value, commit in ((b"d", True), (b"y", False)):
            producer.begin_transaction()
            producer.produce("t", value)
            producer.flush(60)
            (producer.commit_transaction if commit else producer.abort_transaction)(60)
        with Connection(target.bootstrap) as client:
            assert read_committed(client, "t", 0) == ["a", "b", "c", "d"]
            request = make(
                "OffsetFetch", groups=[{"group_id": "group", "topics": [{"name": "t", "partition_indexes": [0]}]}]
            )
            assert client.request(request, 8).groups[0].topics[0].partitions[0].committed_offset == ord("b")
            (described,) = client.request(make("DescribeTransactions", transactional_ids=["app"]), 0).transaction_states
            # Three ends and two initialisations: at level 2 each end bumps the epoch as well.
            assert described.producer_epoch == (1 if level < 2 else 5)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", [0, 1])
def test_two_minutes_of_commits_aborts_and_kills_at_the_older_levels(level: int) -> None:
    print(soak(120, seed=13, kills_per_minute=15, transaction_version=level))
