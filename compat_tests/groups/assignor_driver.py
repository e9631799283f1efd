"""Apache Kafka's server-side assignors and topic hash behind a pipe (compat_tests/java/AssignorDriver).

A case is plain data, so that recorded cases are JSON: `{"assignor", "same", "topics": {id hex: partitions}, "members":
{id: {"instance", "topics": [id hex], "target": {id hex: [partitions]}}}}`. The result is `{member: {id hex: [...]}}`.

    python -m kafka_shim.compat.groups.assignor_driver CASES SEED > shim/tests/group/assignor_cases.json
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from kafka_shim.compat.java_driver import JavaDriver
from kafka_shim.targets import jvm

SOURCE = Path(__file__).resolve().parent.parent / "java" / "AssignorDriver.java"

Case = dict[str, Any]
Answer = dict[str, dict[str, list[int]]]


class AssignorDriver(JavaDriver):
    """Kafka's assignors of consumer groups, in one JVM."""

    def __init__(self) -> None:
        super().__init__(jvm.command("AssignorDriver", level="error", extra=(jvm.compiled(SOURCE),)))

    def assign(self, case: Case) -> Answer:
        """Returns Kafka's assignment."""
        topics = ",".join(f"{topic}:{count}" for topic, count in case["topics"].items())
        members = [
            "|".join(
                (
                    member_id,
                    member["instance"] or "",
                    ",".join(member["topics"]),
                    ",".join(f"{topic}:{'.'.join(map(str, found))}" for topic, found in member["target"].items()),
                )
            )
            for member_id, member in case["members"].items()
        ]
        found = self._ask("assign", case["assignor"], "same" if case["same"] else "mixed", topics, *members)
        answer: Answer = {}
        for member in found.split("\t"):
            member_id, _, parts = member.rpartition("|")
            answer[member_id] = {
                part.partition(":")[0]: [int(number) for number in part.partition(":")[2].split(".")]
                for part in parts.split(",")
                if part
            }
        return answer

    def hash_topic(self, topic_id: bytes, name: str, count: int, rack: str | None) -> int:
        return int(self._ask("hash", topic_id.hex(), name, str(count), rack or ""))

    def combine(self, hashes: list[int]) -> int:
        return int(self._ask("combine", *map(str, hashes)))


def random_case(source: random.Random) -> Case:
    """Returns a group in a random state: new, grown, shrunk, resubscribed, or with topics that grew."""
    topics = {source.randbytes(16).hex(): source.randint(1, 40) for _ in range(source.randint(1, 6))}
    names = list(topics)
    same = source.random() < 0.5
    members: dict[str, Any] = {}
    everything = source.sample(names, source.randint(1, len(names)))
    for _ in range(source.randint(1, 15)):
        member_id = source.choice(("", "client-")) + source.randbytes(source.randint(1, 12)).hex()
        wanted = everything if same else source.sample(names, source.randint(0, len(names)))
        members[member_id] = {
            "instance": source.randbytes(3).hex() if source.random() < 0.3 else None,
            "topics": wanted,
            "target": {},
        }
    # A previous target assignment: some of the partitions and members, sometimes far from balanced.
    if source.random() < 0.75:
        owners = source.sample(list(members), source.randint(1, len(members)))
        keep = source.random()
        for topic, count in topics.items():
            for partition in range(count):
                if source.random() < keep:
                    target = members[source.choice(owners)]["target"]
                    target.setdefault(topic, []).append(partition)
    assignor = source.choice(("uniform", "uniform", "range"))
    return {"assignor": assignor, "same": same, "topics": topics, "members": members}


def main(count: str, seed: str) -> None:
    """Prints `count` cases with Kafka's assignments."""
    source = random.Random(int(seed))
    with AssignorDriver() as driver:
        cases = [random_case(source) for _ in range(int(count))]
        recorded = [{"case": case, "answer": driver.assign(case)} for case in cases]
    print("[" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in recorded) + "]")


if __name__ == "__main__":
    main(*sys.argv[1:])
