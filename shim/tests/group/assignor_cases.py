"""Cases of assignors as plain data (see the recorded ones in assignor_cases.json), and what this broker answers."""

from __future__ import annotations

from typing import Any

from kafka_shim.group.assignors import ASSIGNORS, GroupSpec, MemberSpec
from kafka_shim.group.share_assignor import assign_simple
from kafka_shim.java_order import order_strings, order_uuids

Answer = dict[str, dict[str, list[int]]]


def spec_of(case: dict[str, Any]) -> GroupSpec:
    """The case as an assignor takes it."""
    members = {}
    for member_id in order_strings(case["members"]):
        member = case["members"][member_id]
        members[member_id] = MemberSpec(
            {bytes.fromhex(topic): None for topic in member["topics"]},
            member["instance"],
            {bytes.fromhex(topic): set(found) for topic, found in member["target"].items()},
        )
    assigned: dict[bytes, set[int]] = {}
    for member in members.values():
        for topic_id, found in member.assignment.items():
            assigned.setdefault(topic_id, set()).update(found)
    counts = {bytes.fromhex(topic): count for topic, count in case["topics"].items()}
    return GroupSpec(members, case["same"], assigned, counts)


def assign(case: dict[str, Any]) -> Answer:
    """What this broker assigns."""
    found = ASSIGNORS[case["assignor"]](spec_of(case))
    return {
        member_id: {topic_id.hex(): sorted(numbers) for topic_id, numbers in found.get(member_id, {}).items()}
        for member_id in case["members"]
    }


def assign_share(case: dict[str, Any]) -> Answer:
    """What this broker assigns to the members of a share group, when every partition has a state."""
    spec = spec_of(case)
    for member in spec.members.values():
        member.topic_ids = dict.fromkeys(order_uuids(member.topic_ids))
    initialized = {topic_id: set(range(count)) for topic_id, count in spec.partition_counts.items()}
    found = assign_simple(spec, initialized)
    return {
        member_id: {
            topic_id.hex(): sorted(numbers) for topic_id, numbers in found.get(member_id, {}).items() if numbers
        }
        for member_id in case["members"]
    }
