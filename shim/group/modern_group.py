"""What the groups have in common whose members have epochs (Kafka: ModernGroup, and StreamsGroup beside it)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.generics import Generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    M = TypeVar("M")
else:
    M = None


class ModernGroup(Generic[M]):
    """The base of ConsumerGroup, ShareGroup and StreamsGroup; `M` is the class of a member. Changes nothing."""

    __slots__ = ()

    group_id: str
    members: dict[str, M]

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> M:
        """Returns the member. Raises UNKNOWN_MEMBER_ID."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP if the group has members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)


class CommittingGroup(ModernGroup[M]):
    """The base of those whose members commit offsets."""

    __slots__ = ()

    def reader(self, member_id: str | None, epoch: int) -> M | None:
        """Returns the member that OffsetFetch v9+ names, or None: a request without a member is not checked. Raises
        UNKNOWN_MEMBER_ID."""
        if member_id is not None:
            return self.member(member_id)
        if epoch < 0:
            return None
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, which looks for a member without a name

    def check_offset_delete(self) -> None:
        """Always allowed. Topics in use are refused one by one."""

    def offset_expiry_base(self, commit_ms: int) -> int | None:
        """Returns the time from which an offset's retention counts."""
        return commit_ms
