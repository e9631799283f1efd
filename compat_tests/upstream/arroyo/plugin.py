"""Loaded into the child pytest before arroyo's tests: the module ``tests.assertions``, which they import and its
distribution leaves out."""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


@contextmanager
def assert_changes(read: Callable[[], Any], before: Any, after: Any) -> Iterator[None]:
    """What `read` returns is `before` where the block starts and `after` where it ends."""
    assert read() == before
    yield
    assert read() == after


def assert_does_not_change(read: Callable[[], Any], value: Any) -> Any:
    """What `read` returns is `value` where the block starts and where it ends."""
    return assert_changes(read, value, value)


assertions = types.ModuleType("tests.assertions")
assertions.assert_changes = assert_changes  # type: ignore[attr-defined]
assertions.assert_does_not_change = assert_does_not_change  # type: ignore[attr-defined]
sys.modules["tests.assertions"] = assertions
