"""Exactly once while driver, tasks and broker are killed, in processes of their own."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from kafka_shim.spark import chaos, stream
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.targets import Target, make


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "orders", "per_batch", "sink"),
    [("shim", 30_000, 4_000, stream.FOREACH_BATCH), ("kafka-native", 30_000, 4_000, stream.DATA_SOURCE)],
)
def test_three_kills_leave_each_order_once(scratch: Path, kind: str, orders: int, per_batch: int, sink: str) -> None:
    with make(kind) as target:
        outcome = chaos.run(target, orders, 3, per_batch, scratch / "checkpoint", sink=sink, echo=print)
    print(outcome.line())
    assert outcome.kills == {"driver": 1, "task": 1, "broker": 1}
    assert outcome.found == orders
    assert outcome.is_exact


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_twenty_kills_over_a_million_records_leave_each_order_once(scratch: Path, kind: str) -> None:
    with make(kind) as target:
        outcome = chaos.run(target, 1_000_000, 20, 20_000, scratch / "checkpoint", echo=print)
    print(outcome.line())
    assert outcome.kills.total() == 20
    assert outcome.found == 1_000_000
    assert outcome.is_exact


def test_kills_are_shared_out_among_the_kinds() -> None:
    kills: Counter[str] = Counter()
    while (left := 8 - kills.total()) > 0:
        kills.update(chaos.plan(kills, left))
    assert sorted(kills.values()) == [2, 3, 3]
    assert chaos.plan(kills, 0) == set()
    # One that did not come to pass is made up for.
    assert chaos.plan(Counter(driver=2, broker=2, task=1), 1) == {"task"}


def test_a_missing_a_doubled_and_a_changed_record_are_told(shim: str, name: str) -> None:
    topic = kafka.create(shim, f"{name}out")
    rows = [chaos.expected(number) for number in (0, 1, 1, 3)]
    rows[3]["tax_cents"] = -1
    kafka.fill(shim, topic, ({"value": json.dumps(row).encode()} for row in rows))
    outcome = chaos.Outcome()
    chaos.count(shim, topic, 4, outcome)
    assert (outcome.found, outcome.missing, outcome.doubled, outcome.wrong) == (4, [2], [1], [3])
    assert outcome.line().endswith("1 missing, 1 doubled, 1 wrong")


class _Ended:
    """A run of the job that has ended at once; it keeps what it was started with."""

    def __init__(self, _command: list[str], environment: dict[str, str], _cwd: Path) -> None:
        self.environment = environment
        self.batches = 0

    def end(self) -> int:
        return 0


def test_the_job_finds_the_modules_that_the_run_itself_finds(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the folder of this package was on its path, so that a package found by PYTHONPATH was not, or another."""
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setattr(chaos, "Driver", _Ended)
    ended = chaos._run_driver(Target(), [], scratch, set(), chaos.Outcome(), random.Random(1))
    assert ended.environment["PYTHONPATH"] == "/mine"  # type: ignore[attr-defined]
