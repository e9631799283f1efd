"""`--json` of the commands that show something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.commands.main import run
from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.wire_client import Connection


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker with a topic, committed offsets and a transactional id."""
    with Broker() as broker, Connection(broker.bootstrap_servers) as client:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        assert run(["topics", "create", *at, "orders", "--partitions", "2", "--config", "retention.ms=5"]) == 0
        partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=0)
        topics = [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
        client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        committed = client.request(OffsetCommitRequest(group_id="g", topics=topics), 8).topics[0].partitions[0]
        assert committed.error_code == 0
        client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]))
        begun = client.request(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000))
        assert begun.error_code == 0
        yield broker.bootstrap_servers


def shown(address: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "--bootstrap-server", address, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_topics_are_listed_and_described_as_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(address, capsys, "topics", "list", "--exclude-internal") == [{"topic": "orders"}]
    (topic,) = shown(address, capsys, "topics", "describe", "orders")
    assert len(topic.pop("topicId")) == 22
    assert topic.pop("configs")["retention.ms"] == "5"
    partitions = [{"partition": one, "leader": 1, "replicas": [1], "isr": [1]} for one in (0, 1)]
    assert topic == {"topic": "orders", "partitionCount": 2, "replicationFactor": 1, "partitions": partitions}


@pytest.mark.parametrize("name", ["None", "-"])
def test_a_name_that_reads_like_nothing_is_one(address: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["topics", "create", "--bootstrap-server", address, "--", name]) == 0
    try:
        assert {"topic": name} in shown(address, capsys, "topics", "list")
        assert shown(address, capsys, "topics", "describe", name)[0]["topic"] == name
    finally:
        assert run(["topics", "delete", "--bootstrap-server", address, "--", name]) == 0


def test_groups_are_listed_and_described_as_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(address, capsys, "groups", "list") == [{"group": "g", "type": "Classic", "state": "Empty"}]
    (row,) = shown(address, capsys, "groups", "describe", "g")
    assert (row["group"], row["topic"], row["partition"], row["consumerId"]) == ("g", "orders", 1, None)
    (state,) = shown(address, capsys, "groups", "describe", "g", "--state")
    assert state == {"group": "g", "assignmentStrategy": None, "state": "Empty", "members": 0}


def test_transactions_are_listed_and_described_as_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = shown(address, capsys, "transactions", "list")
    assert (row["transactionalId"], row["transactionState"]) == ("x", "Empty")
    (row,) = shown(address, capsys, "transactions", "describe", "x")
    assert (row["transactionTimeoutMs"], row["transactionDurationMs"]) == (1000, None)


def test_a_state_of_transactions_may_be_in_any_case(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["transactionalId"] for one in shown(address, capsys, "transactions", "list", "--state", "empty")] == [
        "x"
    ]
    assert not shown(address, capsys, "transactions", "list", "--state", "ongoing")
    assert run(["transactions", "list", "--state", "open", "--bootstrap-server", address]) == 0
    assert capsys.readouterr().err == (
        "warning: no state is named open: there are Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, "
        "CompleteAbort, Dead, PrepareEpochFence\n"
    )


def test_a_pattern_of_transactional_ids_that_is_none_is_named(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["transactions", "list", "--transactional-id-pattern", "*x*", "--bootstrap-server", address]
    assert run(words) == 1
    assert capsys.readouterr().err == "error: *x*: INVALID_REGULAR_EXPRESSION (patterns are of RE2, as orders-.*)\n"


def test_options_are_described_as_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(address, capsys, "configs", "describe", "--entity-type", "topics", "--entity-name", "orders") == [
        {
            "name": "retention.ms",
            "value": "5",
            "sensitive": False,
            "readOnly": False,
            "source": "DYNAMIC_TOPIC_CONFIG",
        }
    ]


def test_failed_command_prints_no_json(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["topics", "describe", "nothing", "--bootstrap-server", address, "--json"]) == 1
    told = capsys.readouterr()
    assert (told.out, "nothing: UNKNOWN_TOPIC_OR_PARTITION" in told.err) == ("", True)


def test_a_transactional_id_is_looked_up_before_it_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        for command in ("describe", "force-terminate"):
            assert run(["transactions", command, *at, "nobody"]) == 1
            assert "nobody: TRANSACTIONAL_ID_NOT_FOUND" in capsys.readouterr().err
