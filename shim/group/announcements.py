"""The lines of the log that tell an operator what changed in groups: members, generations and epochs, ends."""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.group.records import GroupRecord
from kafka_shim.plurals import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from kafka_shim.group.records import Record

logger = logging.getLogger("kafka_shim.group")

CLASSIC = "GroupMetadataKey"
GROUPS = {
    CLASSIC: "group",
    "ConsumerGroupMetadataKey": "consumer group",
    "ShareGroupMetadataKey": "share group",
    "StreamsGroupMetadataKey": "streams group",
}
MEMBERS = {
    "ConsumerGroupMemberMetadataKey": "consumer group",
    "ShareGroupMemberMetadataKey": "share group",
    "StreamsGroupMemberMetadataKey": "streams group",
}


def announcements(records: Sequence[Record], is_member: Callable[[str, str], bool]) -> list[str]:
    """Returns one line for each change. `is_member(group id, member id)` tells of the time before it."""
    return list(_lines(records, is_member)) if logger.isEnabledFor(logging.INFO) else []


def announce(lines: Sequence[str]) -> None:
    """Write the lines of a change that is made. It stays, so its request does not fail for want of a line."""
    with suppress(MemoryError):
        for line in lines:
            logger.info("%s", line)


def _lines(records: Sequence[Record], is_member: Callable[[str, str], bool]) -> Iterator[str]:
    announced: set[tuple[str, str]] = set()
    stays = {_group_id(record.key) for record in records if type(record.key).__name__ in GROUPS and _is_kept(record)}
    for record in records:
        key: Any = record.key
        if isinstance(record, GroupRecord):
            yield _generation(record.key, record.generation, record.member_count, record.protocol)
            continue
        value: Any = record.value
        name = type(key).__name__
        if name in MEMBERS:
            whose = f"{MEMBERS[name]} {key.group_id}"
            if value is None:
                yield f"member {key.member_id} leaves {whose}"
            elif not is_member(key.group_id, key.member_id) and (key.group_id, key.member_id) not in announced:
                announced.add((key.group_id, key.member_id))
                yield f"member {key.member_id} joins {whose}, as client {value.client_id} at {value.client_host}"
        elif name in GROUPS:
            group_id = _group_id(key)
            if value is None:
                if group_id not in stays:  # else it changes its protocol
                    yield f"{GROUPS[name]} {group_id} is deleted"
            elif name == CLASSIC:
                yield _generation(key, value.generation, len(value.members), value.protocol)
            else:
                yield f"{GROUPS[name]} {group_id} is at epoch {value.epoch}"


def _is_kept(record: Record) -> bool:
    """Whether it is no tombstone. The value of a GroupRecord would have to be read."""
    return isinstance(record, GroupRecord) or record.value is not None


def _generation(key: Any, generation: int, count: int, protocol: str | None) -> str:
    members = counted(count, "member")
    by = f", assigned by {protocol}" if count and protocol else ""
    return f"group {key.group} is at generation {generation} with {members}{by}"


def _group_id(key: Any) -> str:
    found: str = key.group if type(key).__name__ == CLASSIC else key.group_id
    return found
