"""EndTxn from the frame of a request to that of its answer (docs/adr/0049-from-frame-to-frame.md).

An EndTxn is served if it commits the open transaction of the very producer that asks, which has an epoch left for the
next one, of an id without trouble; if there are no more partitions than are marked at once, and PREPARE may be appended
without a look at anything else (`LogEnd.put_own`). What follows the answer, the markers and COMPLETE, is a call of what
`serve` returns; where anything is left to decide, `QuickCompletion.finish_marked` does it.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class PlainEndTxn(PlainAppend):
    """`segment` is the module whose `append` writes; `cached_batches`: as for `LogEnd.put_own`. `most_markers`: a
    transaction of more partitions is the handler's. `unmarked_of` makes the dict of the partitions without a marker.

    Of the broker it asks: `authorizer`, `faults`, `clock`, `logs.services.on_marker`; `transactions._log`, a
    `TransactionLogEnd`; and of `transactions.completion` the methods `finish_marked`, `not_marked`, `not_completed`."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        most_markers: int,
        unmarked_of: Callable[[Any], dict[tuple[str, int], None]],
    ) -> None: ...
