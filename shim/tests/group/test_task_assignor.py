"""The task assignor of streams groups: equal to Apache Kafka's on recorded cases, complete and sticky on any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.group.streams.heap import JavaHeap
from kafka_shim.tests.group.task_assignor_cases import answer, assigned

RECORDED = json.loads((Path(__file__).parent / "task_assignor_cases.json").read_text())


def test_recorded_cases_have_kafkas_answer() -> None:
    assert len(RECORDED) > 200
    for each in RECORDED:
        assert answer(each["case"]) == each["answer"], each["case"]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    subtopologies = {str(at): [draw(st.integers(1, 8)), draw(st.booleans())] for at in range(draw(st.integers(1, 3)))}
    members = {
        f"m{at}": {"process": f"p{draw(st.integers(0, 3))}", "rack": None, "active": {}, "standby": {}}
        for at in range(draw(st.integers(1, 6)))
    }
    for name, (tasks, _) in subtopologies.items():
        for number in range(tasks):
            owner = draw(st.sampled_from([None, *members]))
            if owner is not None:
                members[owner]["active"].setdefault(name, []).append(number)
    return {"standby": draw(st.integers(0, 2)), "subtopologies": subtopologies, "members": members}


@given(cases())
def test_each_task_is_active_once_and_standby_in_other_processes(case: dict[str, Any]) -> None:
    found = assigned(case)
    active = [(name, number) for each in found.values() for name, numbers in each.active.items() for number in numbers]
    wanted = [(name, number) for name, (tasks, _) in case["subtopologies"].items() for number in range(tasks)]
    assert sorted(active) == sorted(wanted)
    processes = len({member["process"] for member in case["members"].values()})
    for name, (tasks, has_state) in case["subtopologies"].items():
        for number in range(tasks):
            holders = [
                case["members"][member_id]["process"]
                for member_id, each in found.items()
                for form in (each.active, each.standby)
                if number in form.get(name, ())
            ]
            assert len(holders) == len(set(holders)), "a process has a task in one form"
            copies = case["standby"] if has_state else 0
            assert len(holders) == 1 + min(copies, processes - 1)


@given(st.lists(st.integers(0, 5)))
def test_heap_gives_the_lightest_first(weights: list[int]) -> None:
    heap: JavaHeap[int] = JavaHeap(float)
    for weight in weights:
        heap.add(weight)
    assert [heap.poll() for _ in weights] == sorted(weights)
    assert not heap
