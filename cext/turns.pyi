"""Slices of long tasks and turns of members, as far as each part of a task or each request asks for them."""

from typing import Any

class SliceEnd:
    """The base of `scheduler.Slice`, which explains the fields."""

    _clock: Any
    _ends_us: int
    _left: int
    _most: int

    def is_over(self) -> bool:
        """Count one part. Returns whether the event loop should have its turn now."""

class MemberTurnsEnd:
    """The base of `group.member_turns.MemberTurns`, which explains the fields and begins the turns."""

    _clock: Any
    _slice: SliceEnd
    _waiting: Any
    _has_turn: bool
    _is_over: bool
    _lost_ms: int

    def takes(self) -> bool:
        """Count one request. Returns whether it is served in this turn of the loop, and not on a later one."""
