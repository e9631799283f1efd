"""Every way in which a transaction ends reaches the same steps in the same order, and fails at each in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_shim.errors import KafkaError
from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn.ending import AFTER_COMPLETE, AFTER_MARKER, AFTER_PREPARE, BEFORE_COMPLETE, BEFORE_PREPARE
from kafka_shim.txn.transaction import COMPLETE_ABORT, TV2

MARKERS = [(AFTER_MARKER, ("orders", partition)) for partition in range(2)]
STEPS = [BEFORE_PREPARE, AFTER_PREPARE, *MARKERS, BEFORE_COMPLETE]
POINTS = [point for point, _ in (*STEPS, AFTER_COMPLETE)]


def begin(node: Node) -> tuple[int, int]:
    producer = node.init("app", None, 1000)
    for partition in range(2):
        node.produce("app", producer, "orders", partition, "v")
    return producer


def end(node: Node, producer: tuple[int, int]) -> None:
    asyncio.run(node.coordinator.end_stepwise("app", *producer, False, TV2))


def fence(node: Node, producer: tuple[int, int]) -> None:
    with pytest.raises(KafkaError):
        node.init("app")


def time_out(node: Node, producer: tuple[int, int]) -> None:
    node.clock.advance(20_000)


def record(node: Node) -> list[tuple[str, object]]:
    """What is reached from now on."""
    seen: list[tuple[str, object]] = []

    def see(point: str) -> Callable[..., None]:
        def act(topic: str | None = None, partition: int = 0, **facts: object) -> None:
            seen.append((point, None if topic is None else (topic, partition)))

        return act

    for point in POINTS:
        node.faults.arm(point, see(point))
    return seen


@pytest.mark.parametrize("way", [end, fence, time_out])
def test_every_end_takes_the_same_steps(node: Node, way: Callable[[Node, tuple[int, int]], None]) -> None:
    producer = begin(node)
    seen = record(node)
    way(node, producer)
    assert seen == [*STEPS, AFTER_COMPLETE] if way is end else seen == STEPS
    assert node.coordinator.describe("app").state is COMPLETE_ABORT


@pytest.mark.parametrize("way", [end, fence, time_out])
@pytest.mark.parametrize("at", [1, 2, 3, 4], ids=["prepared", "marked", "all-marked", "before-complete"])
def test_an_end_that_fails_after_its_decision_is_tried_again(
    node: Node, way: Callable[[Node, tuple[int, int]], None], at: int
) -> None:
    producer = begin(node)
    point, partition = STEPS[at]
    where = None if partition is None else {"topic": partition[0], "partition": partition[1]}
    node.faults.arm(point, "oserror", "EIO", nth=1, where=where)
    if way is end:
        with pytest.raises(OSError):
            way(node, producer)
    elif way is fence:
        with pytest.raises(OSError):
            node.init("app")
    else:
        way(node, producer)
    node.faults.disarm()
    node.clock.advance(100)
    assert node.coordinator.describe("app").state is COMPLETE_ABORT


@pytest.mark.parametrize("way", [end, fence, time_out])
def test_only_a_client_that_waits_for_its_answer_can_be_held(
    node: Node, way: Callable[[Node, tuple[int, int]], None]
) -> None:
    producer = begin(node)
    node.faults.arm("txn.after_prepare", "hold", "1")
    way(node, producer)
    assert node.faults.reached("txn.after_prepare") == 1
    assert node.coordinator.describe("app").state is COMPLETE_ABORT


def test_steps_after_the_answer_reach_the_point_of_the_answer_too(node: Node) -> None:
    producer = begin(node)
    seen: list[dict[str, object]] = []
    node.faults.arm("txn.answered", lambda **facts: seen.append(facts))
    assert not node.coordinator.must_wait("app")
    follow_up = node.coordinator.decide("app", *producer, False, TV2).follow_up
    assert follow_up is not None
    assert seen == []
    follow_up()
    assert seen == [{"transactional_id": "app"}] * 3
