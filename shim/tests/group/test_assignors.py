"""The assignors: equal to Apache Kafka's on recorded cases, and complete, balanced and sticky on any."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.group.assignors import ASSIGNORS, GroupSpec, MemberSpec
from kafka_shim.group.share_assignor import assign_simple
from kafka_shim.java_order import copied_table_size, order_ints, order_strings, table_size
from kafka_shim.tests.group.assignor_cases import assign

RECORDED = json.loads((Path(__file__).parent / "assignor_cases.json").read_text())


@pytest.mark.parametrize("name", ASSIGNORS)
def test_recorded_cases_have_kafkas_answer(name: str) -> None:
    cases = [each for each in RECORDED if each["case"]["assignor"] == name]
    assert len(cases) > 50
    for each in cases:
        assert assign(each["case"]) == each["answer"], each["case"]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    names = [f"{number:032x}" for number in range(1, draw(st.integers(1, 4)) + 1)]
    topics = {name: draw(st.integers(1, 12)) for name in names}
    same = draw(st.booleans())
    everything = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    members: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 7))):
        wanted = everything if same else draw(st.lists(st.sampled_from(names), unique=True))
        members[f"m{number}"] = {"instance": None, "topics": wanted, "target": {}}
    for topic, count in topics.items():
        for partition in range(count):
            owner = draw(st.sampled_from([None, *members]))
            if owner is not None:
                members[owner]["target"].setdefault(topic, []).append(partition)
    return {"assignor": draw(st.sampled_from(sorted(ASSIGNORS))), "same": same, "topics": topics, "members": members}


def loads(answer: dict[str, dict[str, list[int]]]) -> dict[str, int]:
    return {member: sum(map(len, found.values())) for member, found in answer.items()}


@given(cases())
def test_each_partition_of_a_wanted_topic_has_one_owner_who_wants_it(case: dict[str, Any]) -> None:
    given_out = [
        (topic, partition, member)
        for member, found in assign(case).items()
        for topic, numbers in found.items()
        for partition in numbers
    ]
    wanted = {topic for member in case["members"].values() for topic in member["topics"]}
    expected = {(topic, partition) for topic in wanted for partition in range(case["topics"][topic])}
    assert sorted((topic, partition) for topic, partition, _ in given_out) == sorted(expected)
    assert all(topic in case["members"][member]["topics"] for topic, _, member in given_out)


@given(cases())
def test_uniform_with_equal_subscriptions_is_balanced_to_one(case: dict[str, Any]) -> None:
    case["assignor"], case["same"] = "uniform", True
    wanted = case["members"]["m0"]["topics"]
    for member in case["members"].values():
        member["topics"] = wanted
    found = loads(assign(case))
    assert max(found.values()) - min(found.values()) <= 1


@given(cases())
def test_a_balanced_assignment_stays_as_it_is(case: dict[str, Any]) -> None:
    first = assign(case)
    for member_id, found in first.items():
        case["members"][member_id]["target"] = found
    assert assign(case) == first


@given(cases())
def test_a_member_that_comes_takes_only_what_it_gets(case: dict[str, Any]) -> None:
    case["assignor"], case["same"] = "uniform", True
    wanted = case["members"]["m0"]["topics"]
    for member in case["members"].values():
        member["topics"] = wanted
    first = assign(case)
    for member_id, found in first.items():
        case["members"][member_id]["target"] = found
    case["members"]["new"] = {"instance": None, "topics": wanted, "target": {}}
    second = assign(case)
    for member_id, found in first.items():
        for topic, numbers in second[member_id].items():
            assert set(numbers) <= set(found.get(topic, [])), "nobody but the new member gains"


@given(cases())
def test_range_gives_runs_and_the_same_runs_for_topics_of_one_size(case: dict[str, Any]) -> None:
    case["assignor"] = "range"
    for member in case["members"].values():
        member["topics"] = list(case["topics"])
    case["topics"] = dict.fromkeys(case["topics"], 7)
    for member in case["members"].values():
        member["target"] = {}
    for found in assign(case).values():
        runs = list(found.values())
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs)
        assert all(run == runs[0] for run in runs)


def test_java_orders_strings_by_their_spread_hash() -> None:
    """As `new HashSet<>(List.of(...))` of a JDK prints them."""
    assert order_strings(["range", "cooperative-sticky", "sticky"]) == order_strings(
        ["sticky", "range", "cooperative-sticky"]
    )
    assert [table_size(count) for count in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
    assert [copied_table_size(count) for count in (0, 11, 12, 24, 100)] == [16, 16, 32, 64, 256]


def test_small_integers_come_ascending_until_they_exceed_the_table() -> None:
    assert order_ints({3, 1, 15, 0}) == [0, 1, 3, 15]
    assert order_ints({3, 17, 15, 0}) == [0, 17, 3, 15]


def test_the_time_of_a_share_member_with_many_partitions_does_not_grow_with_their_square() -> None:
    topic_id, count = b"t" * 16, 30_000
    spec = GroupSpec({"m": MemberSpec({topic_id: None}, None, {})}, True, {}, {topic_id: count})
    started = time.process_time()
    assigned = assign_simple(spec, {topic_id: set(range(count))})
    assert time.process_time() - started < 4
    assert assigned == {"m": {topic_id: set(range(count))}}
