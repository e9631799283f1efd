"""``make bench``: the shim, Apache Kafka and the yardstick side by side on this machine, in turn, and the table with
ratios.

Every round runs each kind of work on each broker, one after the other; the first round only warms up. A figure is the
median of the rounds, a ratio the median of the rounds' ratios. ``--quick`` does a few small rounds. Further tables have
transactions: commits per second of Java producers on both brokers; groups: commits, heartbeats, a hundred joins; TLS
and 10,000 ACLs. A last one, left out of ``--quick``, has what grows with use: memory over 4 GB, 10,000 partitions. CPUs
are kept from halting where wake-ups are measured, and memory is made ready before a log is written (``machine``),
unless ``--as-is``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from bench import groups, machine, report, scale, security, transactions
from bench.client_process import ROOT, anonymous_mb, load, make_topic
from kafka_shim.targets import Target, make, requests
from kafka_shim.targets.base import ProcessTarget, free_ports
from kafka_shim.targets.kafka_native import java_version
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

GB = 1_000_000_000


class Yardstick(ProcessTarget):
    kind = "yardstick"

    def start(self) -> Self:
        if not self.bootstrap:
            self.bootstrap = f"127.0.0.1:{free_ports(1)[0]}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._spawn(
            [sys.executable, "-m", "bench.yardstick", str(self.port), str(self.data_dir)], environment=environment
        )
        self.wait_until_it_answers()
        return self


def measure(target: Target, round_number: int, amount: int, single: int, is_settled: bool) -> dict[str, float]:
    """Runs one round on one broker, on topics of its own that are deleted afterwards. CPUs are kept awake only for work
    that waits for wake-ups; for the rest that would put broker and client on one CPU, where both have work.
    """
    topic, one = f"bench-{round_number}", f"single-{round_number}"
    real = target.kind != "yardstick"
    if real:
        with Connection(target.bootstrap, timeout_s=60) as client:
            make_topic(client, topic, 4)
            make_topic(client, one, 1)
    if is_settled:
        machine.settle(target.data_dir.parent, amount)
    wrote = load("produce", target, topic, amount)
    read = load("consume", target, topic, int(wrote["bytes"]))
    with machine.awake(is_settled):
        each = load("latency", target, one, single)
    if real:
        with Connection(target.bootstrap, timeout_s=60) as client:
            client.request(requests.make("DeleteTopics", topic_names=[topic, one], timeout_ms=60_000), 5)
    return {
        "produce_mb_s": wrote["bytes"] / wrote["seconds"] / 1e6,
        "produce_cpu_s_gb": wrote["cpu_s"] / wrote["bytes"] * GB,
        "consume_mb_s": read["bytes"] / read["seconds"] / 1e6,
        "consume_cpu_s_gb": read["cpu_s"] / read["bytes"] * GB,
        "single_p50_us": each["p50_us"],
        "single_p99_us": each["p99_us"],
        "single_cpu_us": each["cpu_s"] / each["requests"] * 1e6,
    }


def start_times(new: Callable[[], Target], repeats: int) -> tuple[list[float], list[float]]:
    """Returns the seconds from process start on an existing directory to the first response, and the
    memory in MB then.
    """
    seconds, memory = [], []
    target = new()
    try:
        target.start()
        for _ in range(repeats):
            target.stop()
            began = time.perf_counter()
            target.start()
            seconds.append(time.perf_counter() - began)
            memory.append(anonymous_mb(target))
    finally:
        target.close()
    return seconds, memory


def embedded_start_ms(repeats: int) -> list[float]:
    """Returns the milliseconds from `Broker()` to the first response, without the import, each in its own process."""
    script = (
        "import time, asyncio, uvloop, kafka_shim.embedded, kafka_shim.server\nfrom kafka_shim import Broker\n"
        "began = time.perf_counter()\n"
        "with Broker() as broker:\n    print((time.perf_counter() - began) * 1000)\n"
    )
    command = [sys.executable, "-c", script]
    return [
        float(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()[-1])
        for _ in range(repeats)
    ]


def run(options: argparse.Namespace) -> dict[str, Any]:
    kinds: dict[str, Callable[[], Target]] = {
        "shim": lambda: make("shim"),
        "kafka": lambda: make("kafka-native", is_measured=True),
        "yardstick": Yardstick,
    }
    results: dict[str, dict[str, list[float]]] = {kind: {} for kind in kinds}
    for kind in ("shim", "kafka"):
        print(f"start-up of {kind} ...", file=sys.stderr)
        seconds, memory = start_times(kinds[kind], options.repeats)
        results[kind].update(start_s=seconds, memory_start_mb=memory)
    results["shim"]["embedded_start_ms"] = embedded_start_ms(options.repeats)
    started: dict[str, Target] = {}
    try:
        for kind, new in kinds.items():
            started[kind] = new().start()
        for number in range(options.repeats + 1):
            for kind, target in started.items():
                print(f"round {number} of {options.repeats}: {kind} ...", file=sys.stderr)
                row = measure(target, number, options.megabytes * 1_000_000, options.requests, not options.as_is)
                if number > 0:  # the first only warms up
                    for name, value in row.items():
                        results[kind].setdefault(name, []).append(value)
        for kind, target in started.items():
            results[kind]["memory_after_mb"] = [anonymous_mb(target)]
    finally:
        for target in started.values():
            target.close()
    return {
        "machine": {
            "cpus": os.cpu_count(),
            "system": platform.platform(),
            "python": sys.version.split()[0],
            "java": java_version(),
        },
        "settings": vars(options) | {"json": str(options.json)},
        "results": results,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 rounds of 200 MB instead of 5 of 1 GB")
    parser.add_argument("--repeats", type=int, help="rounds after the one that warms up")
    parser.add_argument("--megabytes", type=int, help="data of one round")
    parser.add_argument("--requests", type=int, help="single records of one round")
    parser.add_argument("--as-is", action="store_true", help="let CPUs halt and the host keep its memory")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go")
    options = parser.parse_args()
    options.repeats = options.repeats or (3 if options.quick else 5)
    options.megabytes = options.megabytes or (200 if options.quick else 1000)
    options.requests = options.requests or (1000 if options.quick else 5000)
    measure_all(options)
    print(f"figures of every round: {options.json}")
    return 0


def measure_all(options: argparse.Namespace) -> None:
    """Runs all measurements and prints table by table."""
    figures = run(options)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(figures, indent=1, default=str) + "\n")
    print(report.table(figures))
    with machine.awake(not options.as_is):
        print("transactions ...", file=sys.stderr)
        print(transactions.table(transactions.run(options.repeats, transactions.KINDS), transactions.KINDS))
        print("groups ...", file=sys.stderr)
        print(groups.table(groups.run(options.repeats, groups.KINDS), groups.KINDS))
    print("TLS and ACLs ...", file=sys.stderr)
    print(security.table(security.run(options.repeats, options.megabytes, options.requests)))
    if not options.quick:
        print("at size ...", file=sys.stderr)
        print(scale.table(scale.run(options.repeats)))


if __name__ == "__main__":
    sys.exit(main())
