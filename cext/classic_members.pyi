"""The part of a classic group that every join, sync and leave changes. All members of a group come at once in a
rebalance, so this part is in C. The rules of `group/classic_*.py` decide what begins or ends a phase."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Protocols = list[tuple[str, bytes]]

def know_states(empty: object, preparing: object, completing: object, stable: object, dead: object) -> None:
    """Which objects are the states of groups (`group.classic_state`)."""

def size_of(protocols: Protocols) -> int:
    """Returns the size of the metadata in bytes, and of the protocols' names in characters."""

class ClassicMember:
    """One member. `awaiting_join` and `awaiting_sync` are its delayed requests. Only its group changes `protocols` and
    `awaiting_join`, because the group counts them."""

    # Set by the last join. `protocols` are in the member's order of preference.
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    # The assignment in the current generation.
    assignment: bytes
    # Tokens of `group.decision`.
    awaiting_join: Any
    awaiting_sync: Any
    # Until its first join completes, a member is removed when its (long) timer ends, although it waits (KAFKA-7610).
    is_new: bool

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Any,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None: ...
    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    def metadata(self, protocol: str | None) -> bytes:
        """Returns the member's metadata for this protocol, or empty bytes if the member does not support it."""

    @property
    def is_waiting(self) -> bool:
        """Whether a request of the member is delayed, which counts as a heartbeat."""

class ClassicGroupBase:
    """The base of `group.classic.ClassicGroup`, which explains the fields."""

    state: Any
    previous_state: Any
    generation_id: int
    protocol_type: str | None
    protocol: str | None
    leader_id: str | None
    members: dict[str, ClassicMember]
    joining: set[str]
    protocol_counts: dict[str, int]
    metadata_bytes: int
    static_members: dict[str, str]
    pending_joins: dict[str, None]
    pending_syncs: set[str]
    new_member_added: bool

    @property
    def has_all_joined(self) -> bool: ...
    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member. The first one sets the protocol type and becomes the leader."""

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id. If it was the leader, the oldest remaining member becomes the
        leader."""

    def forget_all(
        self,
        group_id: str,
        kind: str,
        row: type[Any],
        identities: Iterable[Any],
        refusal: Callable[[Any], int],
        moves: list[tuple[str, str, str, int, bool]],
    ) -> tuple[list[Any], bool]:
        """Remove the members that leave, and pending member ids, of which no request waits, and stop the timers of this
        kind of each. `refusal` has to do with one of which a request waits, or that `check_member` refuses: nothing
        has changed for it, and it returns its error code. Returns the rows of the answer, and whether any has left."""

    def await_join(self, member: ClassicMember, token: Any) -> None:
        """The member's JoinGroup waits for the end of the join phase."""

    def end_joins(
        self,
        group_id: str,
        kind: str,
        response: type[Any],
        row: type[Any],
        replies: list[tuple[Any, Any]],
        moves: list[tuple[str, str, str, int, bool]],
    ) -> None:
        """End the join phase of all members: each gets its answer (`late_answers.JoinAnswer`), the leader with all
        members, of this class in its message, and its session's timer, of this kind, starts."""

    def joined(self, response: type[Any], member_id: str, rows: list[Any]) -> Any:
        """Returns the response of this generation."""

    def rows_of_leader(self, row: type[Any]) -> list[Any]:
        """Returns all members with their metadata for the protocol, as JoinGroup tells the leader."""

    def rows_of_record(self, row: type[Any], assignments: Mapping[str, bytes]) -> list[Any]:
        """Returns all members with their assignments, as the group's record holds them."""

    def record_value(self, state_ms: int, assignments: Mapping[str, bytes]) -> bytes | None:
        """Returns the value of the group's record with these assignments, with its version, as it is stored; None if
        the codec has to write it, because it raises an error. `state_ms`: when this state began."""

    def answer_syncs(
        self,
        group_id: str,
        kind: str,
        response: type[Any],
        given: dict[str, bytes],
        leader_id: str,
        token: Any,
        replies: list[tuple[Any, Any]],
        moves: list[tuple[str, str, str, int, bool]],
    ) -> list[ClassicMember]:
        """Answer the leader's SyncGroup, of this token, and those that wait for it (`late_answers.SyncAnswer`), and
        start their sessions' timers. Returns these members, and has not changed them."""

    def keep_assignments(self, given: dict[str, bytes], synced: list[ClassicMember]) -> None:
        """All members have what they are given. Those that synced wait no longer."""

    @property
    def missing(self) -> list[str]:
        """The dynamic members that have not joined."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""

    @property
    def subscriptions(self) -> set[bytes]:
        """What the members say for the protocol: most of them the same."""

    def count_protocols(self, member: ClassicMember, change: int) -> None:
        """Count the member's protocols and its metadata: 1 once it is there, -1 once it is not."""

    def accepts(self, member_id: str, max_size: int) -> bool:
        """Returns whether the group may have this member beside the others."""

    def has_room(self, member_id: str, metadata_bytes: int, most_bytes: int) -> bool:
        """Returns whether so much metadata of this member fits into what all may have."""

    def supports(self, protocol_type: str, protocols: list[tuple[str, Any]]) -> bool:
        """Returns whether a member with these protocols can join. Only their names are read."""

    def admit(self, member: ClassicMember, protocol_type: str, token: Any) -> None:
        """Add a new member whose JoinGroup waits for the end of the join phase."""

    def wait_to_join(
        self, member: ClassicMember, protocol_type: str, token: Any, max_size: int, most_bytes: int
    ) -> bool:
        """Have a new member, whose id the group has given out, wait for others, if that is all that `classic_join.join`
        would do, besides the timer of its session. Returns False, and has changed nothing, if it is not."""

    def wait_to_sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
        protocol_type: str | None,
        protocol_name: str | None,
        token: Any,
    ) -> bool:
        """Have a follower wait for the leader's assignment, if that is all that `classic_sync.sync` would do. Returns
        False, and has changed nothing, if it is not."""

def assignments_of(rows: Iterable[Any]) -> dict[str, bytes]:
    """Returns the assignments that a SyncGroup gives out, copied out of its buffer, by the id of the member."""
