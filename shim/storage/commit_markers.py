"""The commit markers of one transaction, in one pass over its partitions."""

from __future__ import annotations

from kafka_shim.cext import many_logs
from kafka_shim.cext import segment as cext_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.errors import KafkaError
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.logs import Logs


def commit_each(
    logs: Logs,
    unmarked: dict[Partition, None],
    producer: tuple[int, int],
    coordinator_epoch: int,
    transaction_version: int,
    now_ms: int,
) -> dict[Partition, KafkaError]:
    """Append the marker of a commit of this (producer id, epoch), as `PartitionLog.append_marker`, to each partition of
    `unmarked` where there is nothing to decide, and take it out of `unmarked`. Returns those whose append failed, which
    stay there. No fault may be armed. Raises what a hook of `Logs.on_marker` does."""
    services = logs.services
    _, batch = services.marker_of(*producer, coordinator_epoch, True, now_ms)
    loaded, put, hooks = logs.partitions.loaded, cext_segment.append, services.on_marker
    return many_logs.commit_each(
        loaded, unmarked, put, batch, *producer, coordinator_epoch, transaction_version, now_ms, hooks
    )
