"""The persisted state of a share partition, and how batches of delivery states are merged.

Sources: org.apache.kafka.coordinator.share.ShareGroupOffset, PersisterStateBatchCombiner of 4.3.1.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# A start offset that was never initialised, or that an update does not change.
UNINITIALIZED_START_OFFSET = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1
NO_LEADER_EPOCH = -1
NO_STATE_EPOCH = -1

_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


class StateBatch:
    """The delivery state (0 available, 2 acknowledged, 4 archived) and delivery count of the offsets from
    `first_offset` to `last_offset`."""

    __slots__ = ("delivery_count", "delivery_state", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, delivery_state: int, delivery_count: int) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count

    @property
    def priority(self) -> tuple[int, int]:
        """Of two overlapping batches the one with the higher priority counts."""
        return self.delivery_count, self.delivery_state

    @property
    def _order(self) -> tuple[int, int, int, int]:
        return self.first_offset, self.last_offset, self.delivery_count, self.delivery_state

    def part(self, first_offset: int, last_offset: int) -> StateBatch:
        """Returns a part of the batch."""
        return StateBatch(first_offset, last_offset, self.delivery_state, self.delivery_count)

    def __lt__(self, other: StateBatch) -> bool:
        return self._order < other._order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateBatch) and self._order == other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __repr__(self) -> str:
        return f"StateBatch({self.first_offset}, {self.last_offset}, {self.delivery_state}, {self.delivery_count})"


class ShareGroupOffset:
    """What is stored of one share partition. The value does not change; a record makes a new one."""

    __slots__ = (
        "create_timestamp_ms",
        "delivery_complete_count",
        "leader_epoch",
        "snapshot_epoch",
        "start_offset",
        "state_batches",
        "state_epoch",
        "write_timestamp_ms",
    )

    def __init__(
        self,
        snapshot_epoch: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
        create_timestamp_ms: int = 0,
        write_timestamp_ms: int = 0,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = state_batches
        self.create_timestamp_ms = create_timestamp_ms
        self.write_timestamp_ms = write_timestamp_ms


def combine(so_far: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """Returns the batches of both lists from `start_offset` on (-1: all), merged so that none overlap. `so_far` is the
    result of an earlier call. A batch that ends before it begins has no offsets, and is left out: merging would not
    come to an end with it."""
    kept = list(so_far)
    added = [batch for batch in new if batch.first_offset <= batch.last_offset]
    if start_offset != UNINITIALIZED_START_OFFSET:
        del kept[: bisect_left(kept, start_offset, key=_last_offset)]
        kept[:1] = _from(start_offset, kept[:1])
        added = _from(start_offset, added)
    if not added:
        return kept
    # Each acknowledgement comes here: only what the new batches overlap or touch is looked at.
    first_offset = min(batch.first_offset for batch in added)
    last_offset = max(batch.last_offset for batch in added)
    begin = bisect_left(kept, first_offset - 1, key=_last_offset)
    end = bisect_right(kept, last_offset + 1, key=_first_offset)
    kept[begin:end] = _merged([*kept[begin:end], *added])
    return kept


def is_combined(batches: Sequence[StateBatch]) -> bool:
    """Returns whether the batches are as `combine` returns them: in order, and none overlaps another."""
    before = -1
    for batch in batches:
        if not before < batch.first_offset <= batch.last_offset:
            return False
        before = batch.last_offset
    return True


def _from(start_offset: int, batches: Sequence[StateBatch]) -> list[StateBatch]:
    return [
        batch if batch.first_offset >= start_offset else batch.part(start_offset, batch.last_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _merged(batches: list[StateBatch]) -> list[StateBatch]:
    """Returns the batches in order, merged so that none overlap."""
    batches.sort(key=_order)
    merged: list[StateBatch] = []
    # What merging makes of two batches, to be looked at in its place. It is little; a heap of all batches would cost
    # ten times as much.
    parts: list[StateBatch] = []
    before: StateBatch | None = None
    at = 0
    while parts or at < len(batches):
        if parts and (at == len(batches) or parts[0] < batches[at]):
            after = heapq.heappop(parts)
        else:
            after = batches[at]
            at += 1
        if before is None:
            before = after
        elif after.first_offset > before.last_offset + 1:
            _add(merged, before)
            before = after
        elif after.first_offset <= before.last_offset or before.priority == after.priority:
            for part in _merge(before, after, before.priority == after.priority):
                heapq.heappush(parts, part)
            before = None
        else:
            _add(merged, before)
            before = after
    if before is not None:
        _add(merged, before)
    return merged


def _add(merged: list[StateBatch], batch: StateBatch) -> None:
    """Add a batch behind the others. What overlapped it may have left it with the state of the one before: Kafka makes
    one of both at the next change of any offset, which here does not look at them."""
    if merged and merged[-1].last_offset + 1 == batch.first_offset and merged[-1].priority == batch.priority:
        merged[-1] = batch.part(merged[-1].first_offset, batch.last_offset)
    else:
        merged.append(batch)


def _order(batch: StateBatch) -> tuple[int, int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state


def _merge(before: StateBatch, after: StateBatch, is_same: bool) -> list[StateBatch]:
    """Returns what two batches become that overlap, or that touch and have the same state. `before` is the lesser."""
    if is_same:
        return [before.part(before.first_offset, max(before.last_offset, after.last_offset))]
    if after.priority < before.priority:
        if after.last_offset > before.last_offset:
            return [before, after.part(before.last_offset + 1, after.last_offset)]
        return [before]
    parts = [after]
    if after.first_offset > before.first_offset:
        parts.append(before.part(before.first_offset, after.first_offset - 1))
    if after.last_offset < before.last_offset:
        parts.append(before.part(after.last_offset + 1, before.last_offset))
    return parts
