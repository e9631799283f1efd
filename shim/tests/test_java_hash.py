"""Java's string hash: values taken from a JVM."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.java_hash import internal_partition, java_string_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("日本", 835047),
        ("\U0001f600", 1772899),
    ],
)
def test_hash_is_java_s(text: str, value: int) -> None:
    assert java_string_hash(text) == value


def test_the_minimum_lands_on_partition_zero() -> None:
    assert internal_partition("polygenelubricants", 50) == 0


@pytest.mark.parametrize(("text", "partition"), [("hello", 22), ("app", 1), ("", 0)])
def test_partition_is_the_absolute_value_modulo_the_count(text: str, partition: int) -> None:
    assert internal_partition(text, 50) == partition


@given(st.text(st.characters(codec=None), max_size=60), st.integers(1, 1000))
def test_hash_is_that_of_the_definition(text: str, count: int) -> None:
    """Over all characters, single surrogates too: the sum of UTF-16 units times powers of 31, modulo 2**32."""
    units = text.encode("utf-16-be", "surrogatepass")
    numbers = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    total = sum(number * 31 ** (len(numbers) - 1 - at) for at, number in enumerate(numbers)) & 0xFFFFFFFF
    value = total - 0x1_0000_0000 if total & 0x8000_0000 else total
    assert java_string_hash(text) == value
    assert internal_partition(text, count) == (0 if value == -(2**31) else abs(value) % count)
