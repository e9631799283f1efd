"""The transactions that a compaction passes: which batches are aborted, and which markers are needed no longer (Kafka:
CleanedTransactionMetadata)."""

from __future__ import annotations

from kafka_shim.cext.records import iterate
from kafka_shim.protocol.record_frames import ControlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.batch import Batch
    from kafka_shim.storage.segments import Segment
    from kafka_shim.storage.txn_index import Aborted


class Transactions:
    """The caller passes every batch in offset order. `target` receives the transaction index entries of the abort
    markers that are kept."""

    def __init__(self, aborted: list[Aborted]) -> None:
        self._waiting = aborted
        self._next = 0
        # By producer id: the aborted transactions that have begun, and those of which a batch was seen.
        self._aborting: dict[int, Aborted] = {}
        self._seen: set[int] = set()
        self._committing: set[int] = set()
        self.target: Segment | None = None

    def _begin_to(self, offset: int) -> None:
        while self._next < len(self._waiting) and self._waiting[self._next][1] <= offset:
            entry = self._waiting[self._next]
            self._next += 1
            self._aborting.setdefault(entry[0], entry)

    def on_data(self, batch: Batch) -> bool:
        """Process a data batch. Returns whether it belongs to an aborted transaction."""
        self._begin_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id not in self._aborting:
            self._committing.add(batch.producer_id)
            return False
        self._seen.add(batch.producer_id)
        return True

    def on_marker(self, batch: Batch, content: bytes) -> bool:
        """Process a marker. Returns whether it may be removed, because no batch of its transaction was seen."""
        self._begin_to(batch.last_offset)
        kind = _control_type(batch, content)
        if kind is None:
            return True
        if kind == ControlType.ABORT:
            aborted = self._aborting.pop(batch.producer_id, None)
            if aborted is None or batch.producer_id not in self._seen:
                return True
            self._seen.discard(batch.producer_id)
            if self.target is not None:
                self.target.txn_index.append(*aborted)
            return False
        if kind == ControlType.COMMIT:
            if batch.producer_id in self._committing:
                self._committing.discard(batch.producer_id)
                return False
            return True
        return False


def _control_type(batch: Batch, content: bytes) -> int | None:
    """Return the control record type of a control batch, or None if compaction removed its record."""
    if batch.record_count == 0:
        return None
    record = next(iterate(content))
    return int.from_bytes((record.key or b"")[2:4], "big")
