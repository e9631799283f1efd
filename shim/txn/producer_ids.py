"""Producer ids, handed out of blocks that the metadata log recorded before (A1).

A block that was recorded and not used up before a stop or a crash is lost: no id is ever handed out twice.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PRODUCER_ID = 2**63 - 1


class ProducerIds:
    """The current block. `next_block` records and answers the next (first id, count); it may raise KafkaError."""

    __slots__ = ("_end", "_next", "_next_block")

    def __init__(self, next_block: Callable[[], tuple[int, int]]) -> None:
        self._next_block = next_block
        self._next = 0
        self._end = 0

    def next(self) -> int:
        """A producer id never handed out before. Raises COORDINATOR_LOAD_IN_PROGRESS when there is none to be had."""
        if self._next >= self._end:
            first, count = self._next_block()
            if first < self._end or count <= 0 or first > MAX_PRODUCER_ID - count:
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"block of {count} producer ids from {first} cannot be used"
                )
            self._next, self._end = first, first + count
        producer_id = self._next
        self._next += 1
        return producer_id
