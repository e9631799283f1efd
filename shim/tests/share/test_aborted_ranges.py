"""Ranges of acquired records without those of an aborted transaction."""

from __future__ import annotations

import pytest

from kafka_shim.protocol.messages.share_fetch_response import AcquiredRecords
from kafka_shim.share.share_partition_aborted import without


@pytest.mark.parametrize(
    ("first", "last", "left"),
    [
        (0, 9, [(10, 19), (30, 39)]),
        (20, 29, [(10, 19), (30, 39)]),
        (10, 19, [(30, 39)]),
        (12, 14, [(10, 11), (15, 19), (30, 39)]),
        (19, 30, [(10, 18), (31, 39)]),
        (0, 99, []),
    ],
)
def test_what_was_aborted_is_taken_out_and_the_rest_stays(first: int, last: int, left: list[tuple[int, int]]) -> None:
    acquired = [AcquiredRecords(first_offset=a, last_offset=b, delivery_count=3) for a, b in ((10, 19), (30, 39))]
    found = without(acquired, first, last)
    assert [(one.first_offset, one.last_offset) for one in found] == left
    assert {one.delivery_count for one in found} <= {3}
