"""Small records beside producers of large compressed batches, and those producers alone: what a thread's work on a
batch gives to others, and to throughput. For `python -m bench.against TREE --only beside --only producers`."""

from __future__ import annotations

from bench import machine
from bench.clients import Shape
from bench.cost import cpu_s
from bench.data import GB, begin, percentiles, result, topics
from bench.rounds import SHIM, Case, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bench.rounds import Figures, Pace

CODECS = ("gzip", "zstd", "lz4", "snappy")
PRODUCERS, RATE = 2, 300
# 1 MB, as producers send with a `batch.size` of that; 24 KB is under what a thread gets.
LARGE, SMALL = {"records": 1000, "record_bytes": 1000}, {"records": 24, "record_bytes": 1000}
# By how much longer the producers work than the measurement beside them takes, for both to have begun.
LONGER_S = 1.0


def beside(side: Side, pace: Pace, **how: Any) -> Figures:
    """Small records at a steady rate beside producers that send one batch after the other."""
    with topics(side, small=1, heavy=4) as (small, heavy):
        before = cpu_s(side.target)
        producers = begin(side, heavy, Shape(seconds=pace.seconds + LONGER_S, clients=PRODUCERS, partitions=4, **how))
        found = result(begin(side, small, Shape(seconds=pace.seconds, rate=RATE)))
        produced = result(producers)
        spent = cpu_s(side.target) - before
    return percentiles(found) | {
        "producers_mb_s": produced["bytes"] / produced["seconds"] / 1e6,
        "cpu_s_gb": spent / produced["bytes"] * GB,
    }


def producers(side: Side, pace: Pace, **how: Any) -> Figures:
    """The producers alone."""
    with topics(side, heavy=4) as (heavy,):
        before = cpu_s(side.target)
        produced = result(begin(side, heavy, Shape(seconds=pace.seconds, clients=4, partitions=4, **how)))
        spent = cpu_s(side.target) - before
    return {
        "mb_s": produced["bytes"] / produced["seconds"] / 1e6,
        "cpu_s_gb": spent / produced["bytes"] * GB,
        "p50_us": produced["p50_us"],
    }


def _case(kind: str, codec: str, name: str, **how: Any) -> Case:
    work = beside if kind == "beside" else producers
    return Case(
        f"{kind} {name}, {codec}",
        lambda side, pace: work(side, pace, compression=codec, **how),
        is_awake=False,
        kinds=(SHIM,),
        states=(machine.AS_IS,),
    )


CASES = [
    *(_case("beside", codec, "1 MB", **LARGE) for codec in CODECS),
    *(_case("producers", codec, "1 MB", **LARGE) for codec in CODECS),
    *(_case("producers", codec, "24 KB", **SMALL) for codec in ("gzip", "lz4")),
]
