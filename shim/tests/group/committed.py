"""What the tests of committed offsets share."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.groups import Groups
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup

DAY_MS = 24 * 3_600_000
NO_OFFSET = (-1, 0)
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
PRODUCER = (1000, 0)


def fetch_all(group: str):
    return OffsetFetchRequestGroup(group_id=group, topics=None)


def stored_state(groups: Groups) -> dict[str, object]:
    """What is stored of each group."""
    found: dict[str, object] = {}
    for group_id, group in groups.by_id.items():
        offsets = {
            (topic, partition): (each.offset, each.metadata, each.commit_ms)
            for topic, by_partition in groups.offsets.of_group(group_id).items()
            for partition, each in by_partition.items()
        }
        if isinstance(group, ClassicGroup):
            members = {name: (each.assignment, each.protocols) for name, each in group.members.items()}
            found[group_id] = group.generation_id, group.protocol, group.leader_id, members, offsets
        else:
            found[group_id] = group.group_epoch, group.assignment_epoch, group.members, group.target, offsets
    return found
