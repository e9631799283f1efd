"""Appends to one log as Produce makes them: in its pass over the partitions, or in all steps."""

from __future__ import annotations

from kafka_shim.cext.log_base import Appended, Verification
from kafka_shim.cext.many_logs import PartitionBatch
from kafka_shim.protocol.messages.produce_response import PartitionProduceResponse
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.plain_log import append_each
from kafka_shim.storage.results import Buffer


def append_as_client(
    log: PartitionLog, records: Buffer, *, now_ms: int, version: int, verification: Verification | None = None
) -> Appended:
    """Append one batch from a client, as `api.produce_append` does. Raises what the answer says."""
    if not log._services.faults.armed and (appended := append_plain(log, records, now_ms, verification)) is not None:
        return appended
    return log.append_checked(records, now_ms=now_ms, version=version, verification=verification)


def append_plain(
    log: PartitionLog, records: Buffer, now_ms: int, verification: Verification | None = None
) -> Appended | None:
    """Append the batch in the pass over the partitions. None if there is something to decide."""
    from kafka_shim.api.produce_append import made

    part = PartitionBatch(PartitionProduceResponse(index=log.partition), records)
    part.log, part.verification = log, verification
    left, size_bytes = append_each(made, [part], now_ms)
    if part.error is not None:
        raise part.error
    if left:
        return None
    answer = part.answer
    return Appended(
        answer.base_offset,
        log.log_end_offset - 1,
        answer.log_append_time_ms,
        answer.log_start_offset,
        size_bytes=size_bytes,
    )


def start_verification(
    log: PartitionLog, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool
) -> Verification | None:
    """The guard of a transactional batch, as `txn.admission.admit` has it of the partition, or None if the transaction
    is open there. `supports_epoch_bump` is True for Produce v12 and above. Raises INVALID_PRODUCER_EPOCH."""
    now_ms = log._services.clock.now_ms()
    return log.producers.verify(producer_id, base_sequence, producer_epoch, supports_epoch_bump, now_ms)
