"""The fast path of Produce: acks 1 or all, plain batches, loaded partitions, no authorizer.

A batch is plain if `LogBase.append_data` may append it. A compressed batch is plain if it decompresses to such a batch,
to at most `max.message.bytes`, and to so little that no thread is needed (`validation.takes_long`).
`shim/tests/api/test_plain_produce.py` compares answers, states and files with those of the handler.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.plain_api import PlainAppend

class PlainProduce(PlainAppend):
    """Serves requests of at most MOST_PARTITIONS partitions.

    - `segment`: the module whose `append` writes batches (`cext.segment`; a test may pass another).
    - `others`: names of topics whose partitions the handler serves.
    - `cached_batches`: how many batches of a producer are kept to recognise duplicates.
    - `admit(broker, transactional id, producer id, producer epoch, [(log, base sequence)], version)`: called with the
      transactional batches unless the transaction is open in all of their partitions. Returns what
      `txn.admission.admit` returns.

    `serve` returns what was changed as one of these:

    - a tuple: what `admit` returned, if it refused a batch or wants an fsync before the append;
    - a list, if a batch after the first append is left to the handler. It has an entry for each partition, in the
      order of the request: (base offset, log start offset) of an append; the guard or None, if the handler has to
      append; or an exception, the error of the partition."""

    def __init__(
        self,
        segment: Any,
        others: frozenset[str],
        cached_batches: int,
        admit: Callable[[Any, str, int, int, list[tuple[Any, int]], int], tuple[list[Any], Any]],
    ) -> None: ...

MOST_PARTITIONS: int
