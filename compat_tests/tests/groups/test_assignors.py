"""The server-side assignors and the topic hash against Apache Kafka's classes, on fresh random cases."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kafka_shim.compat.groups.assignor_driver import AssignorDriver, random_case
from kafka_shim.group.topic_hash import combine, hash_topic
from kafka_shim.metadata.image import Topic
from kafka_shim.tests.group.assignor_cases import assign

CASES = 2000


@pytest.fixture(scope="module")
def driver() -> Iterator[AssignorDriver]:
    with AssignorDriver() as made:
        yield made


def test_random_groups_are_assigned_as_kafka_assigns_them(driver: AssignorDriver) -> None:
    source = random.Random(20261121)
    for number in range(CASES):
        case = random_case(source)
        assert assign(case) == driver.assign(case), f"case {number}: {case}"


def test_topics_are_hashed_as_kafka_hashes_them(driver: AssignorDriver) -> None:
    source = random.Random(7)
    for _ in range(50):
        name = source.choice(("orders", "a", "paÿments-été", "t" * 249))
        rack = source.choice((None, "rack-1", "z"))
        topic = Topic(name, source.randbytes(16))
        topic.partitions = [None] * source.randint(1, 300)  # type: ignore[list-item]
        assert hash_topic(topic, rack) == driver.hash_topic(topic.topic_id, name, len(topic.partitions), rack)
    hashes = [source.randint(-(2**63), 2**63 - 1) for _ in range(20)]
    for count in (1, 2, 20):
        assert combine(hashes[:count]) == driver.combine(hashes[:count])
