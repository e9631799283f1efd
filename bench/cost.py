"""What a broker has cost so far, from the operating system's counters."""

from __future__ import annotations

import psutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.targets import Target


def cpu_s(target: Target) -> float:
    """Returns user and system CPU seconds of the target's process."""
    times = psutil.Process(target.pid).cpu_times()
    return float(times.user + times.system)
