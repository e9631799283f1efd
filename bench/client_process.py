"""Runs client work of the bench in its own process, and measures what it costs the broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.cost import cpu_s
from bench.load import PROPERTIES
from kafka_shim.targets import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.targets import Target
    from kafka_shim.wire_client import Connection

ROOT = Path(__file__).resolve().parent.parent
LEADER_S = 60.0


def anonymous_mb(target: Target) -> float:
    """Returns the anonymous memory in MB: what the process itself holds, without the page cache of its mappings."""
    text = Path(f"/proc/{target.pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Anonymous:")).split()[1]) / 1024


def load(
    work: str,
    target: Target,
    topic: str,
    amount: int,
    *,
    bootstrap: str = "",
    properties: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Runs one kind of client work in its own process and adds the broker's CPU. `bootstrap`: another listener than the
    target's first, to which a client with these `properties` connects."""
    before = cpu_s(target)
    command = [sys.executable, "-m", "bench.load", work, bootstrap or target.bootstrap, topic, str(amount)]
    environment = {**os.environ, PROPERTIES: json.dumps(dict(properties or {}))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{work} on {target.kind} failed:\n{done.stderr[-2000:]}")
    return {**json.loads(done.stdout), "cpu_s": cpu_s(target) - before}


def make_topic(client: Connection, name: str, partitions: int) -> None:
    """Creates a topic and waits until the broker leads each partition; Kafka responds before that. Raises RuntimeError
    if that takes over LEADER_S."""
    requests.create_topic(client, name, partitions)
    rows = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
    message = requests.make("ListOffsets", replica_id=-1, topics=[{"name": name, "partitions": rows}])
    give_up = time.monotonic() + LEADER_S
    while any(row.error_code for row in client.request(message, 5).topics[0].partitions):
        if time.monotonic() > give_up:
            raise RuntimeError(f"topic {name} has no leader after {LEADER_S:.0f} s")
        time.sleep(0.01)
