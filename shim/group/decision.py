"""What a rule decides, Kafka's CoordinatorResult: records to write, changes of memory, timers, replies, in this order.

The rules of all kinds of groups are pure: they read state, an event and the time, and return a `Decision`. The
coordinator appends the records. If that fails, nothing changes, whoever would have got a reply gets the error, and
`retries` are scheduled. Then the records are applied, unless `replayed` is False: a classic group holds more than its
record says (which requests wait, which protocols a member knows), so its rules bring `changes` instead, and only
start-up builds it from records. What a classic rule changes at once is what no record holds; docs/DESIGN.md lists it.
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
        """One request that waits for its response: the first answer counts."""

        def answer(self, response: Any, flushes: Flushes = ()) -> None: ...
        def fail(self, code: ErrorCode) -> None: ...


# Kinds of timers. A timer's key is (group id, kind, member id); the member id is "" where the group itself waits.
SESSION = "session"
REBALANCE = "rebalance"
JOIN = "join"
SYNC = "sync"
REGEX = "regex"

CANCEL = -1


class Decision:
    """The outcome of one event. Rules build it, the runtime carries it out, tests look at it."""

    __slots__ = (
        "changes",
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
        # Changes of memory that belong to the records; run after the append.
        self.changes: list[Callable[[], None]] = []
        # (group id, kind, member id): timers that are started to try again when the append failed.
        self.retries: list[tuple[str, str, str]] = []
        # Groups that stand for what the records say, where a group changes its protocol back.
        self.replacements: list[ClassicGroup] = []
        # (group id, when its topics are looked at again, the epoch for which that holds)
        self.refreshes: list[tuple[str, int, int]] = []
        # (group id, kind, member id, delay in ms or CANCEL, only if none is running)
        self.timers: list[tuple[str, str, str, int, bool]] = []
        self.replies: list[tuple[Token, Any]] = []
        # The answer to the request itself, where it never waits.
        self.response: Any = None

    def schedule(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start this timer, or move it."""
        self.timers.append((group_id, kind, member_id, max(delay_ms, 0), False))

    def schedule_if_absent(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start this timer unless it runs."""
        self.timers.append((group_id, kind, member_id, max(delay_ms, 0), True))

    def cancel(self, group_id: str, kind: str, member_id: str = "") -> None:
        """Stop this timer; not running is no error."""
        self.timers.append((group_id, kind, member_id, CANCEL, False))

    def reply(self, token: Token | None, response: Any) -> None:
        """Answer a request; the token is None if none waits."""
        if token is not None:
            self.replies.append((token, response))
