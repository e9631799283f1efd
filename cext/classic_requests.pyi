"""Requests of members of classic groups that need no rule: those that only wait, and those that are answered at once.

Each function returns False or None if a rule has to decide; nothing was changed then. These requests do not queue in
`group.member_turns`, as those of the handlers do: serving one takes hardly longer than reading it.

If memory runs out in the middle of a change, the groups of the partition are no longer current, and are read again."""

from typing import Any

from kafka_shim.cext.replies import DelayedBase

class GroupsBase:
    """The base of `group.groups.Groups`, which explains the fields."""

    by_id: dict[str, Any]
    is_current: bool

    def __enter__(self) -> None:
        """Between this and `__exit__` a rule decides, and records are appended and applied. Memory may end anywhere."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """The groups are current again; calls `_failed` instead after an error. Also if `is_current` was set to False
        meanwhile: a block inside this one has ended, and set it to True."""

    def _failed(self, kind: type[BaseException], error: BaseException | None) -> None:
        """The block ended with this error. Sets `is_current`."""

class PartitionCountBase:
    """The base of `metadata.partition_count.PartitionCount`, which explains the field."""

    known: int

class Joining:
    """The fields of a JoinGroup of a dynamic member. Its protocols have no metadata if it has no member id."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    protocol_type: str
    protocols: list[tuple[str, Any]]
    metadata_bytes: int
    # Set by `new_id`, for `expect`.
    group: Any

class Syncing:
    """The fields of a SyncGroup without assignments, and those of its answer."""

    group_id: str
    generation_id: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    # Set by `assigned`.
    group_protocol_type: str | None
    group_protocol: str | None
    assignment: bytes

class ClassicRequestsBase:
    """The base of `group.classic_requests.ClassicRequests`."""

    def __init__(self, runtime: Any, timers: tuple[str, str, str], limits: Any) -> None:
        """`timers` are the kinds of timers JOIN, SESSION and SYNC; `limits` has the limits of `group.classic_join`."""

    def new_id(self, client_id: str | None, joining: Joining) -> str | None:
        """Returns the id that a new member gets with MEMBER_ID_REQUIRED, and changes nothing."""

    def expect(self, joining: Joining, member_id: str) -> None:
        """Have the group of `new_id` expect the member that was given this id. If memory ends, nothing has changed."""

    def wait_to_join(self, joining: Joining, client_id: str, client_host: str, delayed: DelayedBase) -> bool:
        """Have a new member, whose id the group has given out, wait for others (`ClassicGroupBase.wait_to_join`)."""

    def has_joined(self, group: Any, group_id: str, member_id: str) -> None:
        """Start the session of a new member that waits for others, and end the wait of a new group that has no initial
        delay if it was the last one."""

    def wait_to_sync(self, syncing: Syncing, delayed: DelayedBase) -> bool:
        """Have a follower wait for the leader's assignment (`ClassicGroupBase.wait_to_sync`)."""

    def keep(self, group_id: str, member_id: str, instance_id: str | None, generation_id: int) -> bool:
        """Keep a member alive that is in this generation, unless a rebalance is prepared."""

    def assigned(self, syncing: Syncing) -> bool:
        """Give a member of a stable group its assignment."""
