"""Reopening of an offline partition: its files are recovered as after a crash, without a restart of the broker."""

from __future__ import annotations

import errno
import logging
import os

from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.storage import names, recovery
from kafka_shim.storage.epochs import LeaderEpochs
from kafka_shim.storage.producers import Producers
from kafka_shim.storage.regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.local_log import LocalLog
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS = 1000
LONGEST_PAUSE_MS = 60_000
COPY_BYTES = 1 << 20


def reopen(log: LocalLog, services: LogServices) -> None:
    """Reload an offline partition in place, so that references to `log` stay valid. Raises OSError, ValueError; the
    partition then stays offline as before."""
    if log.leaving is not None:
        log.leaving.settle()  # nothing may change names in the directory while it is read
    segments, epochs, producers = log.segments, log.epochs, log.producers
    end_offset, start_offset = log.log_end_offset, log.log_start_offset
    sync_round = log.sync_round
    try:
        if segments:
            segments[-1].cut_refused(end_offset)
        if log.sync_error is not None:
            for segment in segments[max(log.segment_at(log.recovery_point), 0) :]:
                _write_again(segment.path(names.LOG))
        log.segments, log.epochs = [], LeaderEpochs(log.directory)
        log.producers = Producers(log.name)
        start = recovery.Start(clean=False, start_offset=start_offset, recovery_point=log.recovery_point)
        recovery.load(log, services, start)
        _require_round(log, sync_round)
        _require_metadata(log, end_offset)
    except BaseException:
        for segment in log.segments:
            segment.abandon()
        log.segments, log.epochs, log.producers = segments, epochs, producers
        log.log_end_offset, log.log_start_offset = end_offset, start_offset
        raise
    log.producers.take_verifications(producers)
    if log.log_end_offset < end_offset:
        logger.error(
            "%s: the disk lost the records from offset %d to %d, which were acknowledged",
            log.name,
            log.log_end_offset,
            end_offset - 1,
        )
    log.came_back(sync_round)
    services.offline.discard(log)
    logger.warning("%s is online again, from offset %d to %d", log.name, log.log_start_offset, log.log_end_offset)


def _require_round(log: LocalLog, sync_round: int) -> None:
    """Raise OSError if an fsync failed since `sync_round`: the lost bytes may have been written again before it dropped
    them."""
    if log.sync_round != sync_round:
        raise OSError(errno.EIO, "an fsync failed while the partition was opened again")


def _require_metadata(log: LocalLog, end_offset: int) -> None:
    """Raise OSError if the metadata log lost records: what would be appended now refers to them, and no start would get
    past it."""
    if log.topic == CLUSTER_METADATA_TOPIC and log.log_end_offset < end_offset:
        lost = f"the records from offset {log.log_end_offset} to {end_offset - 1}"
        raise OSError(errno.EIO, f"the disk lost {lost}, whose changes are in force until a restart")


def _write_again(path: str) -> None:
    """Rewrite all bytes of a file in place. After a failed fsync the kernel marks the lost pages as clean, so a later
    fsync would succeed without writing them."""
    try:
        fd = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        position = 0
        while content := os.pread(fd, COPY_BYTES, position):
            position += os.pwrite(fd, content, position)
    finally:
        os.close(fd)
