"""Both clocks are those of the module `time`, rounded down."""

import time

import pytest

from kafka_shim.cext.machine_time import MachineTime


@pytest.mark.parametrize(
    ("ours_ms", "python_ns"), [(MachineTime().now_ms, time.time_ns), (MachineTime().monotonic_ms, time.monotonic_ns)]
)
def test_a_clock_reads_between_two_looks_of_python(ours_ms, python_ns):
    for _ in range(1000):
        before_ns = python_ns()
        read_ms = ours_ms()
        assert before_ns // 1_000_000 <= read_ms <= python_ns() // 1_000_000
