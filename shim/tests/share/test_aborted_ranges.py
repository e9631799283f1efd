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
    found = without(acquired, [(first, last)])
    assert [(one.first_offset, one.last_offset) for one in found] == left
    assert {one.delivery_count for one in found} <= {3}


def test_what_several_transactions_aborted_is_taken_out_of_all_ranges() -> None:
    acquired = [AcquiredRecords(first_offset=a, last_offset=b, delivery_count=3) for a, b in ((10, 19), (30, 39))]
    found = without(acquired, [(0, 4), (11, 11), (13, 14), (18, 31), (39, 45)])
    assert [(one.first_offset, one.last_offset) for one in found] == [(10, 10), (12, 12), (15, 17), (32, 38)]


def test_very_many_aborted_batches_are_taken_out_in_one_pass() -> None:
    """Each made a new list of ranges: 5,000 between others held the event loop for 0.3 s."""
    looks: list[int] = []

    class Range(tuple[int, int]):
        __slots__ = ()

        def __getitem__(self, at: object) -> int:  # type: ignore[override]
            looks.append(0)
            return tuple.__getitem__(self, at)  # type: ignore[call-overload,no-any-return]

    gone = [Range((offset, offset)) for offset in range(0, 2000, 2)]
    left = without([AcquiredRecords(first_offset=0, last_offset=1999, delivery_count=1)], gone)
    assert [one.first_offset for one in left] == list(range(1, 2000, 2))
    assert len(looks) <= 3 * len(gone)
