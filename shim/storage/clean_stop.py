"""The clean stop of all partitions: everything is flushed and closed, and each directory without a doubt is marked as
clean (Kafka: LogManager.shutdown)."""

from __future__ import annotations

import logging
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.flusher import Flusher
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.log_dirs import LogDirs
    from kafka_shim.storage.partitions import Partitions

logger = logging.getLogger(__name__)


def close_all(
    partitions: Partitions, metadata_log: PartitionLog | None, log_dirs: LogDirs, flusher: Flusher
) -> set[DataDir]:
    """Flush and close every partition, and stop the flusher. Blocks. Returns the directories that may be marked as
    clean."""
    logs = [*partitions.loaded.values()] if metadata_log is None else [*partitions.loaded.values(), metadata_log]
    unsynced: list[str] = []
    closed: list[PartitionLog] = []
    for log in logs:
        try:
            unsynced += log.close()
        except OSError as err:
            logger.error("%s cannot be closed, the next start recovers it: %s", log.name, err.strerror or err)  # noqa: TRY400
            log.retire()
        except Exception:  # the other partitions have their clean stop even so
            logger.exception("%s cannot be closed, the next start recovers it", log.name)
            log.retire()
        else:
            closed.append(log)
    try:
        synced = _sync(unsynced, log_dirs, flusher)
    finally:
        flusher.stop()
    whole = {log for log in closed if not log.is_offline and log.sync_error is None}
    unclean = {partitions.dir_of.get(log, log_dirs.metadata_dir) for log in logs if log not in whole}
    # A partition that was not loaded is as clean as at the start, unless an attempt to load it failed, or it got the
    # copy of a move then, which nobody closed.
    unclean.update(
        data_dir
        for partition, data_dir in partitions.unused.items()
        if not data_dir.was_clean or partition in partitions.not_loaded or partition in partitions.damaged
    )
    for log in whole if synced else ():
        log.closed()
    return set(log_dirs.live) - unclean if synced else set()


def attempt(step: Callable[[], object]) -> None:
    """Take a step of the stop. What fails there, as for lack of memory, ends none of the rest, as in Kafka."""
    try:
        step()
    except Exception:
        log_failed_step()


def log_failed_step() -> None:
    """Log the exception that is being handled, of a step of a stop."""
    with suppress(MemoryError):
        logger.exception("a step of the stop failed, the next start recovers what it left")


def _sync(paths: list[str], log_dirs: LogDirs, flusher: Flusher) -> bool:
    if not paths:
        return True
    try:
        flusher.sync_all(paths, [data_dir.path for data_dir in log_dirs.every]).result()
    except OSError:
        logger.exception("the data directories cannot be synced, the next start will recover them")
        return False
    return True
