"""Produce and consume: throughput, single records, 1 to 64 clients, compression, equal load."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict

from bench import machine
from bench.client_process import ROOT, load, make_topic
from bench.clients import Shape
from bench.cost import cpu_s
from bench.rounds import ALL, KAFKA, SHIM, Case, Side
from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from bench.rounds import Figures, Pace

GB = 1_000_000_000
CLIENTS = (1, 4, 16, 64)
SMALL_BYTES, LARGE_BYTES = 100, 100_000
# The load that both brokers carry with ease, for latency and CPU beside each other.
EQUAL_RATE, EQUAL_CLIENTS = 2000, 16
EQUAL_LARGE_RATE = 500


@contextmanager
def topics(side: Side, **wanted: int) -> Iterator[list[str]]:
    """Topics of new names with so many partitions, deleted at the end. The yardstick makes them itself, and the floor
    knows none."""
    machine.wait_for_room(side.target.data_dir)
    names = [side.next_name(word) for word in wanted]
    if side.is_broker:
        with Connection(side.target.bootstrap, timeout_s=60) as client:
            for name, partitions in zip(names, wanted.values(), strict=True):
                make_topic(client, name, partitions)
    yield names
    if side.is_broker:
        with Connection(side.target.bootstrap, timeout_s=60) as client:
            client.request(requests.make("DeleteTopics", topic_names=names, timeout_ms=60_000), 5)


def throughput(side: Side, pace: Pace) -> Figures:
    """Batches of 1 MB from one idempotent producer to 4 partitions, and the same read again."""
    with topics(side, throughput=4) as (topic,):
        wrote = _load("produce", side, topic, pace.megabytes * 1_000_000)
        read = _load("consume", side, topic, int(wrote["bytes"]))
    return {
        "produce_mb_s": wrote["bytes"] / wrote["seconds"] / 1e6,
        "produce_cpu_s_gb": wrote["cpu_s"] / wrote["bytes"] * GB,
        "consume_mb_s": read["bytes"] / read["seconds"] / 1e6,
        "consume_cpu_s_gb": read["cpu_s"] / read["bytes"] * GB,
    }


def single(side: Side, pace: Pace) -> Figures:
    """Records of 1 KB, one at a time, as many as the last step's speed makes of the seconds."""
    count = max(int(pace.seconds * side.kept.get("singles_s", 1000)), 100)
    with topics(side, single=1) as (topic,):
        each = _load("latency", side, topic, count)
    side.kept["singles_s"] = 1e6 / each["p50_us"]
    return percentiles(each) | {"cpu_us": each["cpu_s"] / count * 1e6}


def percentiles(found: Figures) -> Figures:
    return {name: found[name] for name in ("p50_us", "p99_us", "p99.9_us")}


def _load(work: str, side: Side, topic: str, amount: int) -> dict[str, float]:
    return load(work, side.target, topic, amount, bootstrap=side.bootstrap, properties=side.properties)


def begin(side: Side, topic: str, shape: Shape) -> subprocess.Popen[str]:
    """Start `bench.clients` in a process of its own."""
    command = [sys.executable, "-m", "bench.clients", side.bootstrap, topic, json.dumps(asdict(shape))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def result(process: subprocess.Popen[str]) -> Any:
    """Wait for clients and return what they found. Raises RuntimeError with the end of what they wrote."""
    found, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{process.args!r} failed:\n{errors[-2000:]}")
    return json.loads(found)


def many(side: Side, pace: Pace, **how: Any) -> Figures:
    """Clients of one shape."""
    shape = Shape(seconds=pace.seconds, **how)
    with topics(side, many=shape.partitions) as (topic,):
        before = cpu_s(side.target)
        found = result(begin(side, topic, shape))
        spent = cpu_s(side.target) - before
    return percentiles(found) | {
        "per_s": found["requests"] / found["seconds"],
        "mb_s": found["bytes"] / found["seconds"] / 1e6,
        "cpu_us": spent / found["requests"] * 1e6,
    }


def _many(name: str, kinds: tuple[str, ...] = (SHIM, KAFKA), **how: Any) -> Case:
    return Case(name, lambda side, pace: many(side, pace, **how), "p50_us", kinds=kinds)


def cases(megabytes: int) -> list[Case]:
    small: dict[str, Any] = {"record_bytes": SMALL_BYTES, "partitions": 4}
    large: dict[str, Any] = {"record_bytes": LARGE_BYTES, "partitions": 4}
    batch: dict[str, Any] = {"clients": 4, "partitions": 4, "records": 100, "record_bytes": 1000}
    equal: dict[str, Any] = {"clients": EQUAL_CLIENTS, "partitions": 4}
    return [
        Case("throughput", throughput, "produce_mb_s", is_awake=False, pages_mb=megabytes, kinds=ALL),
        Case("single", single, "p50_us", kinds=ALL),
        *(_many(f"small, {count} clients", kinds=ALL, clients=count, **small) for count in CLIENTS),
        *(_many(f"large, {count} clients", clients=count, **large) for count in CLIENTS),
        *(_many(f"batches, {codec}", compression=codec, **batch) for codec in ("none", "lz4", "zstd")),
        _many("equal load, small", rate=EQUAL_RATE, record_bytes=SMALL_BYTES, **equal),
        _many("equal load, large", rate=EQUAL_LARGE_RATE, record_bytes=LARGE_BYTES, **equal),
    ]


def answer_s(target: Any) -> float:
    """Starts a target and returns the seconds until it has answered ApiVersions."""
    began = time.perf_counter()
    target.start()
    with Connection(target.bootstrap, timeout_s=60) as client:
        client.request(requests.make("ApiVersions"), 0)
    return time.perf_counter() - began
