"""Memory that ends: in a function that is replaced, or after an append, where the n-th call behind it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim import group, metadata, share, storage, txn
from kafka_shim.errors import KafkaError
from kafka_shim.storage.log import PartitionLog

CALLS = frozenset({"call", "c_call"})
# Other calls do not count: what the test itself does, an event loop, a virtual clock.
TIMER = "_call"  # a callback that the event loop cannot call is lost
COUNTED = tuple(
    str(Path(package.__file__).parent) for package in (group, metadata, share, storage, txn) if package.__file__
)


def no_memory_left(*_: object, **__: object) -> None:
    """In the place of a function that finds no memory."""
    raise MemoryError


def runs_out(
    function: Callable[..., object], *arguments: object, appends: str, topic: str, append: int, call: int
) -> bool:
    """Call the function. Of its appends to the topic by this method of `PartitionLog` the one of this number succeeds,
    and the call of this number behind it, of Python or of C, fails with MemoryError (both from 0). Returns whether it
    came to that. Errors that the function raises are what its client is told."""
    real = getattr(PartitionLog, appends)
    calls = _Calls(call)
    left = [append]

    def append_then_count(log: PartitionLog, *arguments: Any, **named: Any) -> Any:
        appended = real(log, *arguments, **named)
        if log.topic == topic:
            left[0] -= 1
            if left[0] == -1:
                sys.setprofile(calls)
        return appended

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartitionLog, appends, append_then_count)
        _run(function, arguments)
    return calls.are_over


def runs_out_at(call: int, function: Callable[..., object], *arguments: object) -> bool:
    """As `runs_out`, where the calls count from the beginning of the function."""
    calls = _Calls(call)

    def count_and_call() -> None:
        sys.setprofile(calls)
        function(*arguments)

    _run(count_and_call, ())
    return calls.are_over


class _Calls:
    """A profiler in which the call of this number fails."""

    def __init__(self, call: int) -> None:
        self.left = call

    @property
    def are_over(self) -> bool:
        return self.left < 0

    def __call__(self, frame: Any, event: str, called: Any) -> None:
        if event in CALLS and frame.f_code.co_filename.startswith(COUNTED) and frame.f_code.co_name != TIMER:
            self.left -= 1
            if self.left < 0:
                sys.setprofile(None)
                raise MemoryError


def _run(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        function(*arguments)
    except (KafkaError, MemoryError):
        pass
    finally:
        sys.setprofile(None)
