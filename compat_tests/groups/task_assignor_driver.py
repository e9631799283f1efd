"""Apache Kafka's task assignor of streams groups behind a pipe (compat_tests/java/TaskAssignorDriver).

A case is plain data, so that recorded cases are JSON: `{"standby", "subtopologies": {id: [tasks, has state]},
"members": {id: {"process", "rack", "active": {id: [numbers]}, "standby": {id: [numbers]}}}}`. The result is `{member:
[active, standby]}`.

    python -m kafka_shim.compat.groups.task_assignor_driver CASES SEED > shim/tests/group/task_assignor_cases.json
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from kafka_shim.compat.java_driver import JavaDriver
from kafka_shim.targets import jvm

SOURCE = Path(__file__).resolve().parent.parent / "java" / "TaskAssignorDriver.java"

Case = dict[str, Any]
Tasks = dict[str, list[int]]
Answer = dict[str, list[Tasks]]


class TaskAssignorDriver(JavaDriver):
    """Kafka's assignor of streams groups, in one JVM."""

    def __init__(self) -> None:
        super().__init__(jvm.command("TaskAssignorDriver", level="error", extra=(jvm.compiled(SOURCE),)))

    def assign(self, case: Case) -> Answer:
        """Returns Kafka's assignment."""
        subtopologies = ",".join(
            f"{name}:{tasks}:{'stateful' if has_state else 'stateless'}"
            for name, (tasks, has_state) in case["subtopologies"].items()
        )
        members = [
            "|".join((name, each["process"], each["rack"] or "", _text(each["active"]), _text(each["standby"])))
            for name, each in case["members"].items()
        ]
        rows = [row.split("|") for row in self._ask(str(case["standby"]), subtopologies, *members).split("\t")]
        return {name: [_tasks(active), _tasks(standby)] for name, active, standby in rows}


def _text(tasks: Tasks) -> str:
    return ",".join(f"{name}:{'.'.join(map(str, numbers))}" for name, numbers in tasks.items() if numbers)


def _tasks(text: str) -> Tasks:
    pairs = (entry.partition(":") for entry in text.split(",") if entry)
    return {name: [int(number) for number in numbers.split(".")] for name, _, numbers in pairs}


def random_case(source: random.Random) -> Case:
    """Returns a group in a random state: new, grown, shrunk, or with another number of standby tasks than before."""
    subtopologies = {str(at): [source.randint(1, 12), source.random() < 0.6] for at in range(source.randint(1, 4))}
    processes = [source.randbytes(8).hex() for _ in range(source.randint(1, 6))]
    members: dict[str, Any] = {
        source.randbytes(source.randint(2, 12)).hex(): {
            "process": source.choice(processes),
            "rack": source.choice((None, "a", "b")),
            "active": {},
            "standby": {},
        }
        for _ in range(source.randint(1, 12))
    }
    # A previous target: some of the tasks and members, sometimes far from balanced.
    if source.random() < 0.75:
        owners = source.sample(list(members), source.randint(1, len(members)))
        keep = source.random()
        for name, (tasks, has_state) in subtopologies.items():
            for number in range(tasks):
                if source.random() < keep:
                    members[source.choice(owners)]["active"].setdefault(name, []).append(number)
                for owner in source.sample(owners, min(len(owners), source.randint(0, 2))) if has_state else ():
                    members[owner]["standby"].setdefault(name, []).append(number)
    return {"standby": source.choice((0, 0, 1, 1, 2)), "subtopologies": subtopologies, "members": members}


def main(count: str, seed: str) -> None:
    """Prints `count` cases with Kafka's assignments."""
    source = random.Random(int(seed))
    with TaskAssignorDriver() as driver:
        cases = [random_case(source) for _ in range(int(count))]
        recorded = [{"case": case, "answer": driver.assign(case)} for case in cases]
    print("[" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in recorded) + "]")


if __name__ == "__main__":
    main(*sys.argv[1:])
