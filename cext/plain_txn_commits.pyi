"""The fast path of TxnOffsetCommit, from version 5 on, which adds its partition to the transaction.

Served if all of this holds: no authorizer; the group accepts the commit; each topic and partition exists; the metadata
are at most half of the limit; the transaction coordinator has nothing to decide (`TransactionLogBase.admit_plain`); and
`LogBase.put_own` can append the records.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_commits import OffsetsApi

class TxnCommit:
    """The fields of a TxnOffsetCommit that identify the group and the member, for the rules."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...

class PlainTxnCommit(OffsetsApi):
    """
    - `segment`: the module whose `append` writes batches (`cext.segment`; a test may pass another).
    - `cached_batches`: as for `LogBase.put_own`.
    - `prepare(broker, partition of __consumer_offsets, TxnCommit)`: returns (the groups of the partition, its log,
      `offset.metadata.max.bytes`). None means that the group may refuse the commit; nothing was changed.
    - `fail`: as for `PlainCommit`.

    `groups.commit_pending` applies the records. `serve` returns what was changed as (error, whether the transaction was
    admitted): an error of the transaction coordinator if it was not, else what `fail` returned."""

    def __init__(
        self,
        segment: Any,
        cached_batches: int,
        prepare: Callable[[Any, int, TxnCommit], tuple[Any, Any, int] | None],
        fail: Callable[[Any, Any, Any, int | None, Exception], Exception],
    ) -> None: ...
