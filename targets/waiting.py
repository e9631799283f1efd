"""Waits for what a broker, a client or a process does some time after it has answered. All end at a deadline."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

# Longer than anything takes on a machine with other work. What needs longer, or must not take so long, says so.
PATIENCE_S = 60.0
PAUSE_S = 0.01


def last_answer(ask: Callable[[], T], is_right: Callable[[T], object], timeout_s: float = PATIENCE_S) -> T:
    """Returns the first answer that is right, or the last one before the deadline."""
    deadline_s = time.monotonic() + timeout_s
    while not is_right(answer := ask()) and time.monotonic() < deadline_s:
        time.sleep(PAUSE_S)
    return answer


def right_answer(ask: Callable[[], T], is_right: Callable[[T], object], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Returns the first answer that is right. Raises AssertionError with `what` and the last answer at the deadline."""
    answer = last_answer(ask, is_right, timeout_s)
    if not is_right(answer):
        raise AssertionError(f"not within {timeout_s:g} s: {what}; the last answer: {answer!r}")
    return answer


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> float:
    """Returns how many seconds passed until the condition held. Raises AssertionError with `what` at the deadline."""
    started_s = time.monotonic()
    right_answer(condition, bool, what, timeout_s)
    return time.monotonic() - started_s
