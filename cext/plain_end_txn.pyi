"""The fast path of EndTxn: it commits the open transaction of the producer that sends it.

Served if all of this holds: no authorizer; the producer has an epoch left for its next transaction; no marker of
the id was refused or waits for a retry (`SlotBase.is_untroubled`); the partitions are few enough to be marked at once;
and `LogBase.put_own` can append PREPARE.

`serve` returns a `FollowUp`, whose call after the answer writes the markers and COMPLETE. What needs a decision there
is done by `QuickCompletion.finish_marked`.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class PlainEndTxn(PlainAppend):
    """
    - `segment`: the module whose `append` writes batches (`cext.segment`; a test may pass another).
    - `cached_batches`: as for `LogBase.put_own`.
    - `most_markers`: the handler serves transactions of more partitions.
    - `unmarked_of(partitions)`: returns the dict whose keys are the partitions without a marker.

    Of the broker it reads `authorizer`, `faults`, `clock`, `logs.services.on_marker`; `transactions._log`, a
    `TransactionLogBase`; and of `transactions.completion` the methods `finish_marked`, `not_marked` and
    `not_completed`."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        most_markers: int,
        unmarked_of: Callable[[Any], dict[tuple[str, int], None]],
    ) -> None: ...
