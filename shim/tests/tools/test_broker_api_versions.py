"""`kafka-broker-api-versions`: what a line says of an API of a broker that is newer or older (NodeApiVersions)."""

from __future__ import annotations

import pytest

from kafka_shim.tools.broker_api_versions import _line


@pytest.mark.parametrize(
    ("low", "high", "line"),
    [
        (0, 4, "ApiVersions(18): 0 to 4 [usable: 4]"),
        (4, 9, "ApiVersions(18): 4 to 9 [usable: 4]"),
        (5, 9, "ApiVersions(18): 5 to 9 [unusable: node too new]"),
        (3, 3, "ApiVersions(18): 3 [usable: 3]"),
    ],
)
def test_a_line_says_which_version_is_usable(low: int, high: int, line: str) -> None:
    assert _line(18, low, high) == line


def test_a_line_of_an_api_that_is_not_known_and_of_one_that_is_too_old() -> None:
    assert _line(9999, 1, 2) == "UNKNOWN(9999): 1 to 2"
    assert _line(1, 0, 3) == "Fetch(1): 0 to 3 [unusable: node too old]"
