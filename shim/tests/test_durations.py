"""Durations are read as Java reads them."""

from __future__ import annotations

import pytest

from kafka_shim.durations import by_duration_ms, iso_ms


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt1h", 3_600_000),
        ("P0D", 0),
        ("-PT1S", -1000),
        ("+PT1M", 60_000),
        ("PT1H-30M", 1_800_000),
        ("-P1DT-1S", -86_399_000),
        ("PT1.S", 1000),
        ("PT1,5S", 1500),
        ("PT0.0019S", 1),
        ("PT-0.0019S", -1),
        ("PT-1M0.9999S", -59_000),
        ("P106751991167300D", 9_223_372_036_854_720_000_000),
        # The edges of Java's seconds.
        ("PT-9223372036854775808S", -9_223_372_036_854_775_808_000),
        ("P-106751991167300DT-15H-30M-8S", -9_223_372_036_854_775_808_000),
        ("-PT1M-9223372036854775808S", 9_223_372_036_854_775_748_000),
        ("-PT-9223372036854775807.1S", 9_223_372_036_854_775_807_100),
        ("PT9223372036854775807.9S", 9_223_372_036_854_775_807_900),
    ],
)
def test_a_duration_has_a_sign_for_all_and_for_each_part(text: str, wanted: int) -> None:
    assert iso_ms(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "1h", "P1Y", "PT1D", "PT1M1H", "PT.5S", "PT1.1234567890S", "PT\u0661S", "PT1S\n", "PT+S"],
)
def test_what_java_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration of the form PnDTnHnMn\.nS"):
        iso_ms(text)


@pytest.mark.parametrize(
    "text",
    [
        "P106751991167301D",
        "PT9223372036854775807S1H",
        f"P{10**400}D",
        f"P{'9' * 5000}D",
        "PT9223372036854775808S",
        "-PT-9223372036854775808S",
        "PT-9223372036854775808.1S",
        # Of these the sum would fit, but not each number on the way to it.
        "P-1DT1M9223372036854775807S",
        "-PT9223372036854775808S",
    ],
)
def test_more_seconds_than_java_counts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        iso_ms(text)


def test_consumers_begin_a_time_ago() -> None:
    assert by_duration_ms("by_duration:pt2s") == 2000
    for wrong in ("latest", "PT1H", "BY_DURATION:PT1H", "by_duration:", "by_duration:PT-1S", "by_duration:PT-0.0009S"):
        with pytest.raises(ValueError):
            by_duration_ms(wrong)
