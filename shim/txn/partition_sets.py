"""The sets of partitions that producers add, kept for their next transactions."""

from __future__ import annotations

from kafka_shim.txn.records import CACHED_PARTITIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.txn.transaction import TopicPartition

# The transactional ids whose sets are kept: if each had its own, an idle id would take half as much memory again.
KEPT_IDS = 1024


class PartitionSets:
    """A steady producer begins each transaction with the same partitions, and adds the same: the set of the last time
    has its hash, and is found by it without a look at each partition. Owned by the coordinator."""

    __slots__ = ("_added", "_begun")

    def __init__(self) -> None:
        # By transactional id: what was asked last while a transaction was open, and when one began.
        self._added: dict[str, tuple[list[TopicPartition], frozenset[TopicPartition]]] = {}
        self._begun: dict[str, tuple[list[TopicPartition], frozenset[TopicPartition]]] = {}

    def set_of(
        self, transactional_id: str, added: list[TopicPartition], *, is_first: bool
    ) -> frozenset[TopicPartition]:
        """Returns the set of the partitions `added`. `is_first`: they begin a transaction."""
        kept_by_id = self._begun if is_first else self._added
        kept = kept_by_id.get(transactional_id)
        if kept is None or kept[0] != added:
            if kept is None and len(kept_by_id) >= KEPT_IDS:
                del kept_by_id[next(iter(kept_by_id))]
            kept = added, frozenset(added)
            if len(added) <= CACHED_PARTITIONS:
                kept_by_id[transactional_id] = kept
        return kept[1]
