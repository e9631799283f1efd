"""Groups of kinds that this version does not support, found in the log of a data directory that Kafka used.

Their records are left unchanged. Each group is known by its id, so that it is listed, its requests fail with a clear
error, and no group of another kind is created under the same id: Kafka could not read such a log.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.kind import GroupKind
from kafka_shim.protocol.record_types import GROUP_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.group.kind import Group
    from kafka_shim.group.records import Record


class UnservedGroup:
    """One group, of which only the records exist."""

    state_name = "Unknown"
    is_empty = False
    protocol_type = None

    __slots__ = ("TYPE", "group_id")

    def __init__(self, group_id: str, kind: str) -> None:
        self.group_id = group_id
        self.TYPE = kind

    def is_subscribed(self, topic: str) -> bool:
        return True

    def check_offset_delete(self) -> None:
        self.check_delete()

    def check_delete(self) -> None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is a {self.TYPE} group.")

    def offset_expiry_base(self, commit_ms: int) -> int | None:
        return None

    def tombstones(self) -> list[Record]:
        raise AssertionError(f"the {self.TYPE} group {self.group_id} is not served: it cannot be removed")


class UnservedKind(GroupKind):
    """A row that tracks the ids of such groups and refuses all requests for them."""

    def __init__(self, name: str) -> None:
        self.name = name
        types = {number: name_of for number, name_of in GROUP_KEYS.items() if name_of.startswith(f"{name}_group_")}
        self.records = {
            number: self._apply_group if name_of.startswith(f"{name}_group_metadata_key.") else self._apply
            for number, name_of in types.items()
        }

    def _apply(self, by_id: dict[str, Group], key: Any, value: Any) -> None:
        if value is not None:
            by_id.setdefault(key.group_id, UnservedGroup(key.group_id, self.name))

    def _apply_group(self, by_id: dict[str, Group], key: Any, value: Any) -> None:
        if value is not None:
            self._apply(by_id, key, value)
            return
        group = by_id.get(key.group_id)
        if group is not None and self.name == group.TYPE:
            del by_id[key.group_id]
