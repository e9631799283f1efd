"""The fast path of Produce: acks 1 or all, plain batches of loaded partitions, no authorizer.

A batch is plain if it may be appended by `LogEnd.append_data`, or decompresses to one that may, and to no more than
`max.message.bytes` and what needs no thread (`validation.takes_long`). What the request says is read where it lies, and
the response is written in one piece. `shim/tests/api/test_plain_produce.py` compares answers, states and files with
those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class PlainProduce(PlainAppend):
    """`segment` is the module whose `append` writes batches (`cext.segment`; a test may put another in its place).
    Partitions of `others`, topics by name, are not served. At most MOST_PARTITIONS of a request in all. `admit(broker,
    transactional id, producer id, producer epoch, (log, base sequence) of each transactional batch, version)` is asked
    unless the transaction is open in all partitions, and returns what `txn.admission.admit` does.

    What happened already is a tuple, which is what `admit` returned if it refused one or wants an fsync before the
    append; or, if something was left to decide after the first append, a list with an entry for each partition of the
    request in its order: (base offset, log start offset) of an append, its guard or None where the handler must decide,
    or an exception, the error of that partition."""

    def __init__(
        self,
        segment: Any,
        others: frozenset[str],
        cached_batches: int,
        admit: Callable[[Any, str, int, int, list[tuple[Any, int]], int], tuple[list[Any], Any]],
    ) -> None: ...

MOST_PARTITIONS: int
