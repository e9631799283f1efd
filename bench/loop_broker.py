"""A broker in this process whose event loop is watched: ``python -m bench.loop_broker FOLDER JSON``, JSON with options.

Prints one line of JSON with its address, then for each line on stdin one with the longest stretch since the last: CPU
of the loop's thread, and time, between two looks of a timer that is due every millisecond. A stretch holds at least
one turn of the loop, so none was longer. `syncs` counts the fsyncs since the start.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from kafka_shim import Broker
from kafka_shim.first_uses import MODULES, imports
from kafka_shim.serve import collect_in_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROBE_S = 0.001


class Probe:
    """Loop thread only."""

    def __init__(self) -> None:
        self._cpu_ns = self._wall_ns = 0
        self._longest_cpu_ns = self._longest_wall_ns = 0

    def look(self) -> None:
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        if self._wall_ns:
            self._longest_cpu_ns = max(self._longest_cpu_ns, cpu_ns - self._cpu_ns)
            self._longest_wall_ns = max(self._longest_wall_ns, wall_ns - self._wall_ns)
        self._cpu_ns, self._wall_ns = cpu_ns, wall_ns
        asyncio.get_running_loop().call_later(PROBE_S, self.look)

    def take(self) -> dict[str, float]:
        found = {"turn_cpu_ms": self._longest_cpu_ns / 1e6, "turn_ms": self._longest_wall_ns / 1e6}
        self._longest_cpu_ns = self._longest_wall_ns = 0
        return found


def main(folder: str, options: dict[str, Any]) -> None:
    probe = Probe()
    for _ in imports(MODULES):  # as in the first seconds of `kafka-shim serve`
        pass
    with Broker(data_dir=folder, **options) as broker:
        broker.call(collect_in_parts, broker.state)  # as `kafka-shim serve` does
        broker.call(probe.look)
        print(json.dumps({"bootstrap": broker.bootstrap_servers}), flush=True)
        for _ in sys.stdin:
            syncs = broker.state.logs.services.flusher.sync_count
            print(json.dumps(broker.call(probe.take) | {"syncs": syncs}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
