"""Cases of the task assignor as plain data (see the recorded ones in task_assignor_cases.json), and what this broker
answers."""

from __future__ import annotations

from typing import Any

from kafka_shim.group.streams.assignor import MemberSpec, SubtopologySpec, assign
from kafka_shim.group.streams.tasks import Numbers, Tasks
from kafka_shim.java_order import order_strings


def _numbers(tasks: dict[str, list[int]]) -> Numbers:
    return {name: set(found) for name, found in tasks.items()}


def assigned(case: dict[str, Any]) -> dict[str, Tasks]:
    """What this broker assigns."""
    members = {}
    for member_id in order_strings(case["members"]):
        member = case["members"][member_id]
        tasks = Tasks(_numbers(member["active"]), _numbers(member["standby"]), {})
        members[member_id] = MemberSpec(member["process"], tasks)
    subtopologies = {name: SubtopologySpec(*each) for name, each in case["subtopologies"].items()}
    return assign(members, subtopologies, case["standby"])


def answer(case: dict[str, Any]) -> dict[str, list[dict[str, list[int]]]]:
    """The same as plain data."""
    return {
        member_id: [{name: sorted(found) for name, found in each.items()} for each in (tasks.active, tasks.standby)]
        for member_id, tasks in assigned(case).items()
    }
