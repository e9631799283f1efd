"""What clients make the log say is bounded, and the log says how much it left out."""

from __future__ import annotations

import logging

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.line_limit import MAX_LINES, PERIOD_MS, LineLimit

logger = logging.getLogger("kafka_shim.tests.line_limit")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_the_first_lines_are_written_and_the_others_counted(clock: VirtualClock, caplog: pytest.LogCaptureFixture):
    limit = LineLimit(logger, clock)
    for number in range(1000):
        limit.write("no. %d", number)
    assert lines_of(caplog) == [f"no. {number}" for number in range(MAX_LINES)]
    clock.advance(PERIOD_MS - 1)
    assert lines_of(caplog) == []
    clock.advance(1)
    left_out = 1000 - MAX_LINES
    told = f"{left_out} further lines like those before were left out within 10 s; the latest: no. 999"
    assert lines_of(caplog) == [told]
    # The next period has lines of its own, and one without a flood says nothing more.
    limit.write("no. %d", 7)
    clock.advance(2 * PERIOD_MS)
    assert lines_of(caplog) == ["no. 7"]


def test_lines_now_and_then_are_all_written(clock: VirtualClock, caplog: pytest.LogCaptureFixture):
    limit = LineLimit(logger, clock)
    for number in range(10 * MAX_LINES):
        limit.write("no. %d", number)
        clock.advance(PERIOD_MS / MAX_LINES)
    assert len(lines_of(caplog)) == 10 * MAX_LINES


@pytest.mark.parametrize(
    ("count", "told"), [(1, "1 further line like those before was"), (2, "2 further lines like those before were")]
)
def test_what_was_left_out_is_said_at_the_end(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture, count: int, told: str
):
    limit = LineLimit(logger, clock, level=logging.WARNING, period_ms=1000)
    for _ in range(MAX_LINES + count):
        limit.write("again")
    limit.close()
    limit.close()
    clock.advance(5000)
    assert lines_of(caplog)[MAX_LINES:] == [f"{told} left out within 1 s; the latest: again"]
