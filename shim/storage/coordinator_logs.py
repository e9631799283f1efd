"""The logs of internal topics as their coordinators read them: which has records, and what a corrupt batch costs."""

from __future__ import annotations

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.records import iterate
from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from logging import Logger

    from typing_extensions import Buffer

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.records import Record
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs


def find_records(logs: Logs, topic: str, partition: int) -> PartitionLog | None:
    """Returns the log of a partition, or None if it is empty. Raises NOT_COORDINATOR if it does not exist, as nobody
    looked up a coordinator yet, if it is offline or cannot be loaded now."""
    try:
        log = logs.get(topic, partition)
    except KafkaError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error
    return None if log.log_end_offset == log.log_start_offset else log


def records_of(log: PartitionLog, buffer: Buffer, batch: Batch, logger: Logger) -> Iterator[Record]:
    """Yields the records of what `PartitionLog.batches` yields. The rest of a corrupt batch is skipped with a warning,
    so that it costs what it holds and nothing else."""
    try:
        yield from iterate(buffer)
    except BatchError as error:
        logger.warning("skipping a batch of %s-%d at %d: %s", log.topic, log.partition, batch.base_offset, error)
