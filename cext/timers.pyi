"""The base of `group.timers.Timers`: the timers of groups, which every heartbeat moves."""

from collections.abc import Iterable
from typing import Any

class TimerEntry:
    """`armed_ms` is when the clock calls back, `due_ms` when the timer is due, `delay_ms` the delay with which it was
    started. `timer` is None while the entry's owner is called: to everyone else the key then has no timer. `key` is
    None of one that was stopped, and whose timer of the clock another may use."""

    armed_ms: float
    due_ms: float
    delay_ms: float
    timer: Any
    key: tuple[str, str, str] | None

class TimersBase:
    """The base of `group.timers.Timers`, which explains the fields."""

    _clock: Any
    _entries: dict[tuple[str, str, str], TimerEntry]
    _deferred: dict[tuple[str, str, str], tuple[float, float]]
    _late: Any
    _has_lost: bool
    _spare: list[TimerEntry]
    _most_spare: int

    def schedule(self, key: tuple[str, str, str], delay_ms: float, only_if_absent: bool = False) -> None:
        """Start or move the timer of a group's id, a kind and a member's id. With `only_if_absent`, not one that
        runs."""

    def move(self, moves: Iterable[tuple[str, str, str, float, bool]]) -> None:
        """Start, move and stop timers (`decision.TimerMoves`)."""

    def cancel(self, key: tuple[str, str, str]) -> None:
        """Stop a timer. Does nothing if it is not running."""

    def defer_kind(
        self, deferred_kind: str, moves: list[tuple[str, str, str, int, bool]]
    ) -> list[tuple[str, str, str, int, bool]]:
        """Defer the timers of this kind, except those that are moved to a later time: that is one assignment. Returns
        the other moves."""

    def _arm(self, key: tuple[str, str, str], entry: TimerEntry, delay_ms: float) -> None:
        """Have the clock call `_call` of the class above this one, which calls who is due."""
