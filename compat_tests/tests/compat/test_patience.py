"""Scenarios and conversations say the same on a machine that takes more than a minute for one of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim import Broker
from kafka_shim.compat.groups.conversations import beat, first_member, join_fields, stable
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.scenarios.scenario_client import Producer, ScenarioClient
from kafka_shim.compat.scenarios.transactions import state_of
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages import describe_transactions_response as described
from kafka_shim.targets import make

A_WHILE_MS = 90_000
STATES = [
    (ErrorCode.NONE, "PrepareAbort"),
    (ErrorCode.NOT_COORDINATOR, ""),
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ""),
    (ErrorCode.NONE, "CompleteAbort"),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker whose clock stands still."""
    with Broker(clock="virtual", group_initial_rebalance_delay_ms=0) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[ScenarioClient]:
    made = ScenarioClient(make(f"external={broker.bootstrap_servers}"))
    yield made
    made.close()


@pytest.fixture
def script(broker: Broker) -> Iterator[Script]:
    made = Script(broker.bootstrap_servers, "x")
    made.quietly("FindCoordinator", 4, key_type=0, coordinator_keys=["any"])
    yield made
    made.close()


def test_an_open_transaction_outlives_a_slow_restart(broker: Broker, client: ScenarioClient) -> None:
    topic = client.topic()
    producer = Producer(client, "x")
    producer.send(topic, b"open")
    broker.clock.advance(A_WHILE_MS)
    assert state_of(client, producer.transactional_id) == "Ongoing"


def test_members_outlive_slow_steps(broker: Broker, script: Script) -> None:
    group, leader = stable(script, "slow")
    second = script.ask("JoinGroup", 9, **join_fields(group))
    parked = script.park("JoinGroup", 9, **join_fields(group, second.member_id))
    assert parked.is_waiting
    broker.clock.advance(A_WHILE_MS)
    assert parked.is_waiting
    assert beat(script, group, leader).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    led = first_member(script, group, member_id=leader.member_id)
    assert parked.answer().generation_id == led.generation_id


class Told(ScenarioClient):
    """A client whose broker is in these states, one after the other."""

    left = STATES

    def quietly(self, api: str, version: int, **fields: Any) -> Any:
        (error_code, state), *self.left = self.left
        row = described.TransactionState(error_code=error_code, transaction_state=state)
        return described.DescribeTransactionsResponse(transaction_states=[row])


def test_a_coordinator_that_loads_again_has_settled_nothing(broker: Broker) -> None:
    client = Told(make(f"external={broker.bootstrap_servers}"))
    assert client.settle("x") == "CompleteAbort"
    assert client.left == []


def test_a_script_waits_for_a_coordinator_that_loads_again(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(make("external=127.0.0.1:1"))
    monkeypatch.setattr(script, "quietly", told.quietly)
    script.settle("x")
    assert told.left == []
