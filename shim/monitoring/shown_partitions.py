"""Which partitions have series of their own."""

from __future__ import annotations

from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.monitoring.families import MOST_PARTITIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.storage.log import PartitionLog


class ShownPartitions:
    """Those that were written to before others, of both those of clients' topics before internal ones, of equals those
    that were used first: the first transaction uses all of `__transaction_state`, as many as are shown.

    What was written and deleted since counts as well: a series does not end with the retention.
    """

    def __init__(self) -> None:
        # In this order: clients' and internal ones that were written to, clients' and internal ones that were not.
        self._kinds: tuple[list[PartitionLog], ...] = ([], [], [], [])

    def look_at(self, logs: Sequence[PartitionLog]) -> None:
        """Choose among the next of all partitions, in the order of their first use."""
        kinds = self._kinds
        if len(kinds[0]) >= MOST_PARTITIONS:
            return
        for log in logs:
            kind = kinds[2 * (not log.log_end_offset) + (log.topic in INTERNAL_TOPICS)]
            if len(kind) < MOST_PARTITIONS:
                kind.append(log)

    def chosen(self) -> list[PartitionLog]:
        """Returns those that are shown."""
        return [log for kind in self._kinds for log in kind][:MOST_PARTITIONS]
