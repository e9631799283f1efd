"""Durations as text: PnDTnHnMn.nS as Java's Duration.parse reads it, and the units of the short form, as in 61s."""

from __future__ import annotations

import re

# What `auto.offset.reset` has before a duration.
BY_DURATION = "by_duration:"
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DAYS = r"([-+]?\d+)D"
_TIME = r"T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?"
_FORM = rf"([-+]?)P(?:{_DAYS})?(?:{_TIME})?"
# What Java counts seconds in, a signed 64-bit integer: the least and one beyond the most.
_SECONDS = -(2**63), 2**63
_NANOSECONDS_PER_S = 1_000_000_000


def iso_ms(text: str) -> int:
    """Whole milliseconds of a duration such as P1DT2H3M4.5S or -PT1H. Raises ValueError."""
    nanoseconds = _nanoseconds(text)
    return nanoseconds // 1_000_000 if nanoseconds >= 0 else -(-nanoseconds // 1_000_000)


def _nanoseconds(text: str) -> int:
    found = re.fullmatch(_FORM, text, re.ASCII | re.IGNORECASE)
    if found is None or not any(found.groups()[1:]):
        raise ValueError(f"{text!r} is not a duration of the form PnDTnHnMn.nS")
    sign, days, hours, minutes, seconds, fraction = (part or "" for part in found.groups())
    parts_s = (int(days or 0) * 86_400, int(hours or 0) * 3600, int(minutes or 0) * 60, int(seconds or 0))
    # Java adds from the right, and each number on the way has to fit.
    sums_s = [sum(parts_s[at:]) for at in range(len(parts_s))]
    nanoseconds = sum(parts_s[:3]) * _NANOSECONDS_PER_S + int(f"{seconds or 0}{fraction:0<9}")
    signed = -nanoseconds if sign == "-" else nanoseconds
    counted = (*parts_s, *sums_s, nanoseconds // _NANOSECONDS_PER_S, signed // _NANOSECONDS_PER_S)
    least_s, end_s = _SECONDS
    if min(counted) < least_s or max(counted) >= end_s:
        raise ValueError(f"{text!r} is too long a duration")
    return signed


def by_duration_ms(text: str) -> int:
    """Milliseconds of `by_duration:PT1H`: how long ago a consumer without an offset begins. Raises ValueError for any
    other text, and for a time to come."""
    nanoseconds = _nanoseconds(text.removeprefix(BY_DURATION))
    if not text.startswith(BY_DURATION) or nanoseconds < 0:
        raise ValueError(f"{text!r} is not of the form {BY_DURATION}PnDTnHnMn.nS")
    return nanoseconds // 1_000_000
