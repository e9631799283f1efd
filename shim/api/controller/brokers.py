"""What the APIs that brokers send to their controller share: the check of the broker's epoch (Kafka:
ClusterControlManager.checkBrokerEpoch).
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context


def check_broker_epoch(context: Context, broker_id: int, broker_epoch: int) -> None:
    """Raises KafkaError STALE_BROKER_EPOCH unless the broker is registered with this epoch."""
    registered = context.broker.metadata.image.brokers.get(broker_id)
    if registered is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if registered.broker_epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {registered.broker_epoch}, but got broker epoch {broker_epoch}",
        )
