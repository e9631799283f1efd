"""Bugs of the wire."""

from __future__ import annotations

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("b26-advertised-versions", "22: (0, 6)")
def an_api_is_advertised_too_high() -> None:
    from kafka_shim.api import k18_api_versions

    ranges = k18_api_versions._broker_ranges(False, False)
    next(row for row in ranges if row.api_key == 22).max_version = 6
