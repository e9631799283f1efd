"""Blocks of producer ids (Kafka: ProducerIdControlManager)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord

PRODUCER_ID_BLOCK = 1000
MAX_PRODUCER_ID = 2**63 - 1


def next_block(first: int, node_id: int, broker_epoch: int) -> tuple[int, ProducerIdsRecord]:
    """Return the first id of the block that begins at `first`, and the record that reserves it. Raises KafkaError
    COORDINATOR_LOAD_IN_PROGRESS if no whole block is left below 2**63 (A1)."""
    if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK:
        reason = f"no block of {PRODUCER_ID_BLOCK} producer ids is left after {first}"
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason)
    return first, ProducerIdsRecord(
        broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK
    )
