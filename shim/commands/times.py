"""Times and durations on the command line: read in the forms of Kafka's tools, shown as times of UTC."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import click

from kafka_shim.durations import UNITS_MS, iso_ms

_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
EPOCH, MILLISECOND = datetime.fromtimestamp(0, UTC), timedelta(milliseconds=1)


def now_ms() -> int:
    """Returns this machine's time."""
    return time.time_ns() // 1_000_000


def shown_time(timestamp_ms: int) -> str:
    """2026-01-31T12:00:00.000Z; a dash for -1, which is none, and the number where no calendar reaches."""
    if timestamp_ms < 0:
        return "-"
    try:
        text = datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):
        return str(timestamp_ms)
    return text.replace("+00:00", "Z")


def shown_duration(duration_ms: float) -> str:
    """250 ms, 12.5 s, 3 min, 2 h 5 min, 4 d 1 h."""
    if duration_ms < 1000:
        return f"{duration_ms:.0f} ms"
    if duration_ms < 120_000:
        return f"{duration_ms / 1000:.1f} s"
    minutes = int(duration_ms // 60_000)
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def read_datetime(text: str) -> int:
    """Milliseconds of `2026-01-31T12:00:00.000`, with a zone or in UTC (Kafka: Utils.getDateTime).
    Raises click.BadParameter."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time: write 2026-01-31T12:00:00.000, with Z or +01:00 behind it"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - EPOCH) // MILLISECOND


def read_duration(text: str) -> int:
    """Milliseconds of ISO 8601's P1DT2H3M4S (Java: Duration.parse), or of 250ms, 61s, 5m, 2h, 7d.
    Raises click.BadParameter."""
    short = _SHORT.fullmatch(text)
    if short is not None:
        return int(Decimal(short[1]) * UNITS_MS[short[2]])
    try:
        return iso_ms(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a duration: write P7D, PT1H30M, or 5m") from None


def read_when(text: str) -> int:
    """Milliseconds of a time, of a number of milliseconds, or of a duration ago. Raises click.BadParameter."""
    if text.isdecimal():
        return int(text)
    try:
        return now_ms() - read_duration(text)
    except click.BadParameter:
        pass
    try:
        return read_datetime(text)
    except click.BadParameter:
        raise click.BadParameter(
            f"{text!r} is neither a time (2026-01-31T12:00:00Z), nor milliseconds, nor a duration ago (5m, P1D)"
        ) from None
