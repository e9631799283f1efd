"""Which Produce requests the coordinator admits to a transaction (B9)."""

from __future__ import annotations

import asyncio

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.tests.txn.harness import A0, Node, code_of, state_of
from kafka_shim.txn.transaction import (
    TV0,
    TV2,
)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, "INVALID_TXN_STATE"), (10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE"), (12, None)],
)
def test_produce_to_a_partition_that_is_not_in_the_transaction(node: Node, version: int, code: str | None) -> None:
    producer = node.init("app")
    if code is None:
        assert node.produce("app", producer, "orders", 0, "a", version) == 0
        assert state_of(node).partitions == {A0}
    else:
        assert code_of(node.produce, "app", producer, "orders", 0, "a", version) is ErrorCode[code]
        node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
        assert node.produce("app", producer, "orders", 0, "a", version) == 0


@pytest.mark.parametrize(
    ("version", "code"), [(9, "NOT_ENOUGH_REPLICAS"), (11, "NOT_ENOUGH_REPLICAS"), (12, "CONCURRENT_TRANSACTIONS")]
)
def test_produce_while_the_transaction_before_is_being_ended(node: Node, version: int, code: str) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")

    async def scenario() -> None:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        following = (producer[0], 1)
        assert code_of(node.produce, "app", following, "orders", 1, "b", version) is ErrorCode[code]
        node.faults.disarm()
        assert await ending == following

    asyncio.run(scenario())


def test_trouble_of_the_coordinator_has_the_text_of_kafka() -> None:
    from kafka_shim.txn import admission

    trouble = KafkaError(ErrorCode.NOT_COORDINATOR, "the reason")
    told = admission.as_produce_error(trouble, admission.REFUSED_AS_ABORTABLE)
    assert (told.code, told.message) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "Unable to verify the partition has been added to the transaction. Underlying error: NOT_COORDINATOR",
    )


def test_produce_v12_waits_for_the_transaction_before(node: Node) -> None:
    from kafka_shim.txn import admission

    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 1)

    async def scenario(release_after_ms: int) -> list[object]:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(
            admission.admit_patiently(node.coordinator, node.clock, node.config, "app", producer[0], 1, [(log, 0)])
        )
        await node.clock.advance_and_drain(release_after_ms)
        node.faults.disarm()
        await ending
        await node.clock.advance_and_drain(200)
        return (await waiting)[0]

    (outcome,) = asyncio.run(scenario(50))
    assert not isinstance(outcome, KafkaError)


def test_produce_v12_gives_up_after_its_time(node: Node) -> None:
    from kafka_shim.txn import admission

    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 1)

    async def scenario() -> list[object]:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(
            admission.admit_patiently(node.coordinator, node.clock, node.config, "app", producer[0], 1, [(log, 0)])
        )
        await node.clock.advance_and_drain(99)
        assert not waiting.done()
        await node.clock.advance_and_drain(20)
        outcomes, _ = await waiting
        node.faults.disarm()
        await ending
        return outcomes

    (outcome,) = asyncio.run(scenario())
    assert isinstance(outcome, KafkaError)
    assert outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS
