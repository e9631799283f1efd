"""Blocks of producer ids (Kafka: ProducerIdControlManager)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord

PRODUCER_ID_BLOCK = 1000
MAX_PRODUCER_ID = 2**63 - 1
# More ids than are assigned while the fsync of a block is under way, so than those whose blocks a power cut can lose.
MOST_LOST_IDS = 1_000_000


def next_block(first: int, node_id: int, broker_epoch: int) -> tuple[int, ProducerIdsRecord]:
    """Return the first id of the block that begins at `first`, and the record that reserves it. Raises KafkaError
    COORDINATOR_LOAD_IN_PROGRESS if no whole block is left below 2**63 (A1)."""
    if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK:
        reason = f"no block of {PRODUCER_ID_BLOCK} producer ids is left after {first}"
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason)
    return first, ProducerIdsRecord(
        broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK
    )


def reserved(end: int) -> ProducerIdsRecord:
    """Return the record that reserves all ids below `end`, for no broker."""
    return ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=min(end, MAX_PRODUCER_ID))
