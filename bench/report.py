"""The table of the bench: each budget with both brokers' figures, the ratio, and whether it is met."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True)
class Row:
    """One row of the table. `ratio` compares the shim to Kafka. `limit` is a minimum with `at_least`, else a maximum.
    `absolute` applies the limit to the figure itself.
    """

    name: str
    title: str
    unit: str
    limit: float
    at_least: bool = False
    absolute: bool = False


ROWS = (
    Row("produce_mb_s", "produce, 1 KB records, 4 partitions, idempotent, acks=all", "MB/s", 1.5, at_least=True),
    Row("produce_cpu_s_gb", "  broker CPU", "s/GB", 0.25),
    Row("consume_mb_s", "consume the same", "MB/s", 1.3, at_least=True),
    Row("consume_cpu_s_gb", "  broker CPU", "s/GB", 0.5),
    Row("single_p50_us", "one record, acks=all, one at a time: p50", "us", 0.3),
    Row("single_p99_us", "  p99", "us", 0.2),
    Row("single_cpu_us", "  broker CPU each", "us", 0.12),
    Row("start_s", "start to first answer", "s", 0.08),
    Row("embedded_start_ms", "  embedded, after import", "ms", 50, absolute=True),
    Row("memory_start_mb", "anonymous memory after start", "MB", 50, absolute=True),
    Row("memory_after_mb", "  after the bench", "MB", 80, absolute=True),
)


def ratio(shim: list[float], kafka: list[float]) -> float | None:
    """Returns the median of the rounds' ratios, or the ratio of the medians if the rounds are not pairs."""
    if not shim or not kafka or 0 in kafka:
        return None
    if len(shim) == len(kafka):
        return statistics.median(mine / theirs for mine, theirs in zip(shim, kafka, strict=True))
    return statistics.median(shim) / statistics.median(kafka)


def verdict(row: Row, mine: list[float], theirs: list[float]) -> tuple[str, str]:
    """Returns (ratio as text, inside or outside)."""
    value = statistics.median(mine) if row.absolute else ratio(mine, theirs)
    quotient = ratio(mine, theirs)
    shown = "" if quotient is None else f"{quotient:.2f}x"
    if value is None:
        return shown, ""
    inside = value >= row.limit if row.at_least else value <= row.limit
    return shown, "inside" if inside else "OUTSIDE"


def table(figures: Mapping[str, Any]) -> str:
    """Markdown, wide enough to read in a terminal."""
    results = figures["results"]
    lines = [
        f"| {'what':64} | {'Kafka 4.3.1':>12} | {'yardstick':>10} | {'shim':>10} | {'ratio':>7} | {'budget':>9} "
        f"| {'':8} |",
        f"| {'-' * 64} | {'-' * 11}: | {'-' * 9}: | {'-' * 9}: | {'-' * 6}: | {'-' * 8}: | {'-' * 8} |",
    ]
    for row in ROWS:
        values = {kind: results[kind].get(row.name, []) for kind in ("kafka", "yardstick", "shim")}
        cells = {kind: number(statistics.median(found)) if found else "" for kind, found in values.items()}
        shown, where = verdict(row, values["shim"], values["kafka"]) if values["shim"] else ("", "")
        sign = ">=" if row.at_least else "<="
        budget = f"{sign} {row.limit:g}" + ("" if row.absolute else "x")
        title = f"{row.title} [{row.unit}]"
        lines.append(
            f"| {title:64} | {cells['kafka']:>12} | {cells['yardstick']:>10} | {cells['shim']:>10} | {shown:>7} "
            f"| {budget:>9} | {where:8} |"
        )
    machine = figures["machine"]
    settings = figures["settings"]
    kept = "left as they are" if settings["as_is"] else "kept awake for single records"
    lines.append(
        f"medians of {settings['repeats']} rounds of {settings['megabytes']} MB after one that warms up, "
        f"on {machine['cpus']} CPUs, {kept}, shared by broker and client; "
        f"{machine['system']}, Python {machine['python']}, {machine['java']}"
    )
    return "\n".join(lines)


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
