"""The removal of transactional ids that were not used for `transactional.id.expiration.ms` (B7), in slices: there may
be very many."""

from __future__ import annotations

from kafka_shim.scheduler import Slice
from kafka_shim.txn.log import TOMBSTONES_PER_BATCH
from kafka_shim.txn.state import is_expired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.clock import Clock
    from kafka_shim.txn.log import Slot, TransactionLog

# Ids that one slice looks at, at most.
MOST_LOOKED_AT_AT_ONCE = 500


def remove_expired(log: TransactionLog, clock: Clock, expiration_ms: int) -> Iterator[None]:
    """Write tombstones for the ids that have expired when it is their turn. Yields between slices."""
    part = Slice(clock, MOST_LOOKED_AT_AT_ONCE)
    by_partition: dict[int, list[Slot]] = {}
    for slot in list(log.slots.values()):
        if _has_expired(slot, clock.now_ms(), expiration_ms):
            by_partition.setdefault(slot.partition, []).append(slot)
        if part.is_over():
            yield
            part.begin()
    for slots in by_partition.values():
        for start in range(0, len(slots), TOMBSTONES_PER_BATCH):
            now_ms = clock.now_ms()
            # Somebody may have used or removed it since.
            log.remove(
                [
                    slot.transaction.transactional_id
                    for slot in slots[start : start + TOMBSTONES_PER_BATCH]
                    if slot.transaction is not None
                    and log.slots.get(slot.transaction.transactional_id) is slot
                    and _has_expired(slot, now_ms, expiration_ms)
                ],
                now_ms,
            )
            if part.is_over():
                yield
                part.begin()


def _has_expired(slot: Slot, now_ms: int, expiration_ms: int) -> bool:
    txn = slot.transaction
    return txn is not None and not slot.pending and is_expired(txn, now_ms, expiration_ms)
