"""Options of the type DOUBLE: what Java reads, and what it writes."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.config import TOPIC_OPTIONS, BrokerConfig, ConfigError, TopicConfig, double_text
from kafka_shim.config.doubles import parse_double

MANY = "1" * 1_000_000
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


# What Java's documentation of Double.valueOf says of a number.
JAVAS = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|"
    r"0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)


@given(st.lists(st.sampled_from([*"+-.019aefdDpP", "0x", "0X", "NaN", "Infinity"]), max_size=8))
def test_the_same_texts_are_numbers_as_in_java(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        parse_double(text)
    except ValueError:
        assert not JAVAS.fullmatch(text)
    else:
        assert JAVAS.fullmatch(text)


@pytest.mark.parametrize(
    "text",
    [f"{MANY}x", f".{MANY}x", f"{MANY}.{MANY}x", f"1e{MANY}x", f"0x{MANY}x", f"0x{MANY}.{MANY}x", f"0x1p{MANY}x"],
    ids=["decimal", "fraction", "both", "exponent", "hexadecimal", "hexadecimal fraction", "binary exponent"],
)
def test_many_digits_that_end_wrongly_are_read_once(text: str) -> None:
    """An expression that goes back in them would take hours: 29 s for the 32,767 that an option may have."""
    with pytest.raises(ValueError, match="x"):
        parse_double(text)


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
