"""TxnOffsetCommit from the frame of a request to that of its answer (docs/adr/0049-from-frame-to-frame.md).

A TxnOffsetCommit is served from the version on whose partitions are added to the transaction (5), if nothing of it is
refused: the group allows it, each topic and partition is there, no metadata is near the limit; if the coordinator of
transactions has nothing to decide (`TransactionLogEnd.admit_plain`), and the records may be appended without a look at
anything else (`LogEnd.put_own`).
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_commits import OffsetsApi

class TxnCommit:
    """What the rules ask of a request."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...

class PlainTxnCommit(OffsetsApi):
    """`segment` is the module whose `append` writes; `cached_batches`: as for `LogEnd.put_own`.

    `prepare(broker, partition, commit)` returns the groups of this partition of `__consumer_offsets`, its log, and the
    most bytes of metadata; or None, and has done nothing, if the group may refuse the commit or an offset of it.
    `groups.commit_pending` applies the records. `fail` is that of `PlainCommit`.

    If `serve` returns a tuple, what has happened, it is an error and whether the transaction was admitted: if not, the
    error is that of the coordinator of transactions, else what `fail` returned."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        prepare: Callable[[Any, int, TxnCommit], tuple[Any, Any, int] | None],
        fail: Callable[[Any, Any, Any, int | None, Exception], Exception],
    ) -> None: ...
