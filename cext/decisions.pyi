"""The result of a rule of a group. `group.decision.Decision` is this class, with the types and the fields explained."""

from typing import Any

class Decision:
    records: list[Any]
    replayed: bool
    changes: list[Any]
    retries: list[Any]
    replacements: list[Any]
    refreshes: list[Any]
    describers: list[Any]
    timers: list[Any]
    replies: list[Any]
    response: Any

    def __init__(self) -> None: ...
    def schedule(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start the timer, or move it if it runs. A negative delay is 0. `member_id` is "" for a timer of the group."""

    def schedule_if_absent(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None:
        """Start the timer unless it runs. A negative delay is 0."""

    def cancel(self, group_id: str, kind: str, member_id: str = "") -> None:
        """Stop the timer, if it runs."""

    def reply(self, token: Any, response: Any) -> None:
        """Answer a request that waits, after the append. Does nothing for the token None."""
