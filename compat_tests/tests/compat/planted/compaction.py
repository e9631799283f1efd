"""Bugs of compaction."""

from __future__ import annotations

from typing import Any

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("h1-compaction-keeps-what-it-must", "the tombstone: None where [None] is right")
def tombstones_go_at_once() -> None:
    from kafka_shim.storage import compaction

    survey, copy_kept = compaction.survey, compaction.copy_kept
    compaction.survey = lambda offsets, records, batch, keep: survey(offsets, records, batch, False)
    compaction.copy_kept = lambda offsets, records, batch, keep, time: copy_kept(offsets, records, batch, False, time)


@caught_by("h1-compaction-keeps-what-it-must", "the newest value of a: [b'a1'] where [b'a2'] is right")
def an_older_value_comes_back() -> None:
    from kafka_shim.storage.compaction import Transactions

    right = Transactions.on_data

    def third_is_aborted(transactions: Transactions, batch: Any) -> bool:
        return right(transactions, batch) or batch.base_offset == 2

    Transactions.on_data = third_is_aborted  # type: ignore[method-assign]


@caught_by("h2-a-marker-stays-while-its-data-does", "markers: [] where [1, 3] is right")
def markers_go_before_their_data() -> None:
    from kafka_shim.storage.compaction import Transactions

    right = Transactions.on_marker

    def may_go(transactions: Transactions, batch: Any, content: bytes) -> bool:
        right(transactions, batch, content)
        return True

    Transactions.on_marker = may_go  # type: ignore[method-assign]
