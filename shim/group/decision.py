"""The result of a rule (Kafka's CoordinatorResult): records, memory changes, timers and responses, applied in this
order.

The rules of all kinds of groups are pure: they read state, an event and the time, and return a `Decision`. The
coordinator appends the records. If that fails, nothing changes, every waiting request of the decision gets the error,
and `retries` are scheduled. Otherwise the records are applied, unless `replayed` is False: a classic group holds more
than its record (waiting requests, each member's protocols), so its rules give `changes` instead, and only start-up
builds it from records. A classic rule changes at once only what no record holds; docs/DESIGN.md lists it.
"""

from __future__ import annotations

from kafka_shim.cext import decisions

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

if TYPE_CHECKING:

    class Decision:
        """The outcome of one event. Rules build it, the runtime carries it out, tests inspect it."""

        records: list[Record]
        replayed: bool
        # Memory changes that belong to the records. They run after the append.
        changes: list[Callable[[], None]]
        # (group id, kind, member id): timers that are started for a retry if the append failed.
        retries: list[tuple[str, str, str]]
        # Groups that are registered in place of what the records say, when a group changes its protocol back.
        replacements: list[ClassicGroup]
        # (group id, time of the next topic check, the epoch for which it holds)
        refreshes: list[tuple[str, int, int]]
        # (group id, which topics the client who asks for a resolution of expressions may describe)
        describers: list[tuple[str, Callable[[str], bool] | None]]
        timers: TimerMoves
        replies: list[tuple[Token, Any]]
        # The response to the request itself, if the request never waits.
        response: Any

        def schedule(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
            """Start or move this timer."""

        def schedule_if_absent(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
            """Start this timer unless it is running."""

        def cancel(self, group_id: str, kind: str, member_id: str = "") -> None:
            """Stop this timer. Does nothing if it is not running."""

        def reply(self, token: Token | None, response: Any) -> None:
            """Respond to a request. The token is None if none waits."""

else:  # every event of a group makes one
    Decision = decisions.Decision
