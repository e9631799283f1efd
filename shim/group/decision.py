"""The result of a rule (Kafka's CoordinatorResult): records, memory changes, timers and responses, applied in this
order.

The rules of all kinds of groups are pure: they read state, an event and the time, and return a `Decision`. The
coordinator appends the records. If that fails, nothing changes, every waiting request of the decision gets the error,
and `retries` are scheduled. Otherwise the records are applied, unless `replayed` is False: a classic group holds more
than its record (waiting requests, each member's protocols), so its rules give `changes` instead, and only start-up
builds it from records. A classic rule changes at once only what no record holds; docs/DESIGN.md lists it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from kafka_shim.errors import ErrorCode
    from kafka_shim.group.classic import ClassicGroup
    from kafka_shim.group.records import Record
    from kafka_shim.outcome import Flushes

    class Token(Protocol):
        """One request that waits for its response. Only the first response counts."""

        def answer(self, response: Any, flushes: Flushes = ()) -> None: ...
        def complete(self, response: Any, flushes: Flushes = ()) -> bool: ...
        def wake(self) -> None: ...
        def fail(self, code: ErrorCode) -> None: ...

    # A heartbeat writes nothing: its error code, and (kind, delay in ms, only if none is running) of the timers of the
    # member that it starts or moves.
    Heartbeat = tuple[ErrorCode, tuple[tuple[str, int, bool], ...]]
    # (group id, kind, member id, delay in ms or CANCEL, only if none is running)
    TimerMoves = list[tuple[str, str, str, int, bool]]


# Kinds of timers. A timer's key is (group id, kind, member id). The member id is "" for a timer of the group itself.
SESSION = "session"
REBALANCE = "rebalance"
JOIN = "join"
SYNC = "sync"
REGEX = "regex"

CANCEL = -1


class Decision:
    """The outcome of one event. Rules build it, the runtime carries it out, tests inspect it."""

    __slots__ = (
        "changes",
        "describers",
        "records",
        "refreshes",
        "replacements",
        "replayed",
        "replies",
        "response",
        "retries",
        "timers",
    )

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.replayed = True
        # Memory changes that belong to the records. They run after the append.
        self.changes: list[Callable[[], None]] = []
        # (group id, kind, member id): timers that are started for a retry if the append failed.
        self.retries: list[tuple[str, str, str]] = []
        # Groups that are registered in place of what the records say, when a group changes its protocol back.
        self.replacements: list[ClassicGroup] = []
        # (group id, time of the next topic check, the epoch for which it holds)
        self.refreshes: list[tuple[str, int, int]] = []
        # (group id, which topics the client who asks for a resolution of expressions may describe)
        self.describers: list[tuple[str, Callable[[str], bool] | None]] = []
        self.timers: TimerMoves = []
        self.replies: list[tuple[Token, Any]] = []
        # The response to the request itself, if the request never waits.
        self.response: Any = None

    def schedule(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start or move this timer."""
        self.timers.append((group_id, kind, member_id, delay_ms if delay_ms > 0 else 0, False))

    def schedule_if_absent(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start this timer unless it is running."""
        self.timers.append((group_id, kind, member_id, delay_ms if delay_ms > 0 else 0, True))

    def cancel(self, group_id: str, kind: str, member_id: str = "") -> None:
        """Stop this timer. Does nothing if it is not running."""
        self.timers.append((group_id, kind, member_id, CANCEL, False))

    def reply(self, token: Token | None, response: Any) -> None:
        """Respond to a request. The token is None if none waits."""
        if token is not None:
            self.replies.append((token, response))
