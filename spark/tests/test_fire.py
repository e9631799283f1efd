"""Exactly once under fire, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.targets import make
from spark import fire


@pytest.mark.timeout(900)
def test_three_kills_over_100000_records_leave_each_order_once(scratch: Path) -> None:
    with make("shim") as target:
        outcome = fire.run(target, 100_000, 3, 15_000, scratch / "checkpoint")
    print(outcome.line())
    assert dict(outcome.kills) == {"driver": 1, "task": 1, "broker": 1}
    assert outcome.found == 100_000
    assert outcome.is_exact


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_twenty_kills_over_a_million_records_leave_each_order_once(scratch: Path, kind: str) -> None:
    with make(kind) as target:
        outcome = fire.run(target, 1_000_000, 20, 20_000, scratch / "checkpoint")
    print(outcome.line())
    assert sum(outcome.kills.values()) == 20
    assert outcome.found == 1_000_000
    assert outcome.is_exact
