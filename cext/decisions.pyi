"""What a rule of a group decides, as `group.decision.Decision`, which has the types and explains the fields."""

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
    def schedule(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None: ...
    def schedule_if_absent(self, group_id: str, kind: str, member_id: str, delay_ms: int) -> None: ...
    def cancel(self, group_id: str, kind: str, member_id: str = "") -> None: ...
    def reply(self, token: Any, response: Any) -> None: ...
