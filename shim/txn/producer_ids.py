"""Assigns producer ids from blocks that are recorded in the metadata log first (A1).

The rest of a recorded block is lost at a stop or a crash. No id is assigned twice: a client gets one only when its
block is on the disk, and those that the coordinator finds in its own records at a start are reserved again.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.outcome import Flush

MAX_PRODUCER_ID = 2**63 - 1


class ProducerIds:
    """The current block. `next_block` records and returns the next (first id, count, the fsync that must finish before
    one of the ids is returned to a client). It may raise KafkaError."""

    __slots__ = ("_end", "_first_pending", "_flush", "_next", "_next_block")

    def __init__(self, next_block: Callable[[], tuple[int, int, Flush | None]]) -> None:
        self._next_block = next_block
        self._next = 0
        self._end = 0
        # The fsync of the current block, until it is done. Every response with an id from `_first_pending` on waits for
        # it, not only the first.
        self._flush: Flush | None = None
        self._first_pending = 0

    def loaded(self, flush: Flush | None) -> None:
        """Ids that an earlier run of the broker assigned were read. An answer with one of them waits for this fsync,
        because that run may have ended before the fsync of the id's block."""
        self._flush, self._first_pending = flush, 0

    def next(self, flushes: list[Flush]) -> int:
        """Returns a new producer id. The fsync that must finish before the response is added to `flushes`. Raises
        COORDINATOR_LOAD_IN_PROGRESS if no id is available. A block whose fsync failed is given up: the next block
        begins after it, so none of its ids is returned again."""
        if self._has_failed() or self._next >= self._end:
            self._take_block()
        if self._flush is not None:
            flushes.append(self._flush)
        producer_id = self._next
        self._next += 1
        return producer_id

    def pending(self, producer_id: int, flushes: list[Flush]) -> None:
        """Add to `flushes` the fsync that must finish before a client gets this id, which was assigned earlier, again.
        If it failed, another block is recorded, behind the first, for its fsync. Raises as `next`."""
        if self._flush is None or producer_id < self._first_pending:
            return
        if self._has_failed():
            self._take_block()
        if self._flush is not None:
            flushes.append(self._flush)

    def _has_failed(self) -> bool:
        """Returns whether the fsync failed. One that succeeded is forgotten."""
        if self._flush is None or not self._flush.done():
            return False
        if self._flush.exception() is not None:
            return True
        self._flush = None
        return False

    def _take_block(self) -> None:
        first, count, flush = self._next_block()
        if first < self._end or count <= 0 or first > MAX_PRODUCER_ID - count:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"block of {count} producer ids from {first} cannot be used"
            )
        if self._flush is None:
            self._first_pending = first  # else the blocks before are not on the disk before this one is
        self._next, self._end = first, first + count
        self._flush = None if flush is not None and flush.done() and flush.exception() is None else flush
