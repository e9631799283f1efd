"""The server-side assignors and the topic hash against Apache Kafka's classes, on fresh random cases."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kafka_shim.compat.groups.assignor_driver import AssignorDriver, random_case
from kafka_shim.group.topic_hash import combine, hash_topic
from kafka_shim.metadata.image import Topic
from kafka_shim.tests.group.assignor_cases import assign, assign_share

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


def test_random_share_groups_are_assigned_as_kafka_assigns_them(driver: AssignorDriver) -> None:
    """In three steps each: from any state, then with members that come and go, and topics that grow."""
    source = random.Random(932)
    for number in range(CASES // 4):
        case = random_case(source)
        case["assignor"] = "simple"
        for step in range(3):
            told = driver.assign(case)
            assert assign_share(case) == told, f"case {number}, step {step}: {case}"
            members = case["members"]
            for member_id in members:
                members[member_id]["target"] = told[member_id]
            if source.random() < 0.5 and len(members) > 1:
                del members[source.choice(list(members))]
            else:
                topics = members[source.choice(list(members))]["topics"]
                members[f"new{step}"] = {"instance": None, "topics": topics, "target": {}}
            case["topics"][source.choice(list(case["topics"]))] += source.randint(0, 3)


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
