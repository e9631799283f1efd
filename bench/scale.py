"""What grows with use: memory after long traffic, the price of an idle partition, latency beside many partitions, and
the CRC. Budgets are absolute here, so only the shim runs.
"""

from __future__ import annotations

from dataclasses import replace

from bench.client_process import anonymous_mb, load, make_topic
from bench.data import single
from bench.machine import QUIET
from bench.micro_cext import measure
from bench.rounds import SHIM, Case, Side
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.targets import make
from kafka_shim.targets.requests import make as request
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bench.rounds import Figures, Pace

SOAK_TOPICS, SOAK_TOPIC_BYTES, SMALL_TOPIC_BYTES = 4, 1_000_000_000, 50_000_000
FEW, MANY, TOPIC_PARTITIONS = 10, 10_000, 500
RATIO_ROUNDS = 3
CRC_BYTES = 64 << 10


def soak(side: Side, pace: Pace) -> Figures:
    """Anonymous memory after 4 GB were written and read."""
    topic_bytes = SMALL_TOPIC_BYTES if pace.is_small else SOAK_TOPIC_BYTES
    with make("shim") as target:
        for number in range(SOAK_TOPICS):
            topic = f"soak-{number}"
            with Connection(target.bootstrap) as client:
                make_topic(client, topic, 4)
            wrote = load("produce", target, topic, topic_bytes)
            load("consume", target, topic, int(wrote["bytes"]))
        return {"memory_mb": anonymous_mb(target)}


def idle_partitions(side: Side, pace: Pace) -> Figures:
    """Memory of MANY partitions, and the latency beside them: of one broker with FEW and one with MANY, in turn."""
    many_count = MANY // 10 if pace.is_small else MANY
    with make("shim") as few, make("shim") as many:
        with Connection(few.bootstrap) as client:
            make_topic(client, "few", FEW)
        with Connection(many.bootstrap, timeout_s=120) as client:
            make_topic(client, "first", FEW)
            before_mb = anonymous_mb(many)
            for number in range(many_count // TOPIC_PARTITIONS):
                name = {"name": f"many-{number}", "num_partitions": TOPIC_PARTITIONS, "replication_factor": 1}
                client.request(request("CreateTopics", topics=[name], timeout_ms=60_000), 7)
        each_kb = (anonymous_mb(many) - before_mb) * 1024 / many_count
        beside_few, beside_many = Side("few", few), Side("many", many)
        ratios = []
        for number in range(RATIO_ROUNDS + 1):
            figures = [single(side, replace(pace, seconds=pace.seconds / 2)) for side in (beside_few, beside_many)]
            if number:  # the first warms up
                ratios.append(figures[1]["p50_us"] / figures[0]["p50_us"])
    return {"each_kb": each_kb, "p50_ratio": sorted(ratios)[len(ratios) // 2]}


def crc(side: Side, pace: Pace) -> Figures:
    """Against the PyPI package `crc32c` on 64 KiB."""
    from crc32c import crc32c as other

    data = bytes(range(256)) * (CRC_BYTES // 256)
    return {"ratio": measure(lambda: other(data)) / measure(lambda: crc32c(data))}


CASES = (
    Case("soak", soak, kinds=(SHIM,), states=(QUIET,)),
    Case("idle partitions", idle_partitions, kinds=(SHIM,), states=(QUIET,)),
    Case("crc", crc, kinds=(SHIM,), states=(QUIET,)),
)
