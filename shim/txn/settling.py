"""What a clean stop completes of transactions before their coordinator stops.

Apache Kafka leaves out the markers of a transaction that it finds prepared at its start, as its partitions have no
leader then (TransactionMarkerChannelManager), so a directory that it goes on with should have none.
"""

from __future__ import annotations

import asyncio
import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.txn.coordinator import TransactionCoordinator

logger = logging.getLogger("kafka_shim.txn")


async def settle(coordinator: TransactionCoordinator, patience_s: float) -> None:
    """Begin no more ends, try failed markers once more, and await the completions under way, for so long at most. Says
    how many transactions stay prepared: what a disk refuses stays so."""
    coordinator.scheduler.stop()
    completion = coordinator.completion
    completion.retries.at_once()
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + patience_s
    # One may begin meanwhile; one that is done stays there if memory ended as it was to be watched.
    while (begun := [task for task in completion.tasks if not task.done()]) and (left_s := ends_s - loop.time()) > 0:
        await asyncio.wait(begun, timeout=left_s)
    if left := sum(txn.is_prepared for txn in coordinator.transactions()):
        logger.warning("transactions that stay prepared until the next start: %d", left)
