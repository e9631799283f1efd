"""Options of the type DOUBLE: what Java reads, and what it writes."""

from __future__ import annotations

import math

import pytest

from kafka_shim.config import TOPIC_OPTIONS, BrokerConfig, ConfigError, TopicConfig, double_text

RATIO = TOPIC_OPTIONS["min.cleanable.dirty.ratio"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0.5f", 0.5), ("0.5D", 0.5), (".5", 0.5), ("1.", 1.0), ("+1e-1", 0.1), (" 0.5\t", 0.5), ("1e-400", 0.0)],
        *[("0x1p-1", 0.5), ("0X.8P0d", 0.5), ("0x1.p-2", 0.25)],
    ],
)
def test_a_number_is_read_as_java_does(text: str, value: float) -> None:
    assert RATIO.parse(text) == value
    assert TopicConfig(BrokerConfig(), {RATIO.name: text}).min_cleanable_dirty_ratio == value


@pytest.mark.parametrize("text", ["nan", "inf", "infinity", "0_1", "0x1", "0x.p1", ".", "", "e5", "0.5ff", "\u0660"])
def test_what_java_does_not_take_for_a_number_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        RATIO.parse(text)


@pytest.mark.parametrize(("text", "told"), [("1e20", "1.0E20"), ("0x1p9999", "Infinity"), ("-Infinity", "-Infinity")])
def test_a_number_out_of_range_is_told_as_java_writes_it(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {told} for configuration"):
        RATIO.parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0.5, "0.5"), (0.0, "0.0"), (-0.0, "-0.0"), (0.001, "0.001"), (9999999.0, "9999999.0"), (-100.0, "-100.0")],
        *[(1e7, "1.0E7"), (12345678.9, "1.23456789E7"), (0.0005, "5.0E-4"), (1.5e-5, "1.5E-5"), (-2e22, "-2.0E22")],
        (1.7976931348623157e308, "1.7976931348623157E308"),
        *[(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")],
    ],
)
def test_a_number_is_written_as_java_does(value: float, text: str) -> None:
    assert double_text(value) == text
