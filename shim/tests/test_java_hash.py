"""Java's string hash: values taken from a JVM."""

from __future__ import annotations

import pytest

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
