"""What a piece of work costs, counted in calls: the same on every machine, where a time is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def calls_of(function: Callable[..., Answer], *arguments: Any, **fields: Any) -> tuple[Answer, int]:
    """(what `function` answers, how many calls of Python and C functions it made). A loop that calls nothing is not
    seen, nor is what compiled code does inside."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        # Builds for coverage tell of compiled functions, too.
        count += event in ("call", "c_call") and frame.f_code.co_filename.endswith(".py")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        answer = function(*arguments, **fields)
    finally:
        sys.setprofile(before)
    return answer, count
