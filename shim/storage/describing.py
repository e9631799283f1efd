"""The directories of `log.dirs` with their partitions and sizes, for DescribeLogDirs (Kafka:
ReplicaManager.describeLogDirs)."""

from __future__ import annotations

from kafka_shim.scheduler import Slice
from kafka_shim.storage import log_files
from kafka_shim.storage.partitions import SLICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.clock import Clock
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.future_log import FutureLog
    from kafka_shim.storage.log_dirs import LogDirs
    from kafka_shim.storage.partitions import Partitions


class DirStatus:
    """One directory for DescribeLogDirs. `partitions` are (topic, partition, size_bytes, is_offline), `futures` the
    copies of partitions that move here: (topic, partition, size_bytes, lag in offsets)."""

    __slots__ = ("directory_id", "futures", "is_cordoned", "partitions", "path", "total_bytes", "usable_bytes")

    def __init__(
        self,
        data_dir: DataDir,
        partitions: list[tuple[str, int, int, bool]],
        futures: list[tuple[str, int, int, int]],
        is_cordoned: bool,
    ) -> None:
        self.futures = futures
        self.is_cordoned = is_cordoned
        self.path = data_dir.path
        self.directory_id = data_dir.directory_id
        self.total_bytes, self.usable_bytes = data_dir.free_bytes()
        self.partitions = partitions


async def describe_dirs(
    clock: Clock, table: Partitions, log_dirs: LogDirs, moving: Iterable[FutureLog], wanted: set[Partition] | None
) -> list[DirStatus]:
    """Implements `Logs.describe_dirs`. `moving` are the copies of partitions that move. For a partition that is not
    loaded, the sizes come from the file system."""
    from asyncio import sleep

    found: dict[DataDir, list[tuple[str, int, int, bool]]] = {data_dir: [] for data_dir in log_dirs.live}
    keys = [key for key in (*table.loaded, *table.unused) if wanted is None or key in wanted]
    part = Slice(clock, SLICE)
    for key in keys:
        log = table.loaded.get(key)
        data_dir = table.unused.get(key)
        if log is not None:
            found[table.dir_of[log]].append((*key, log.size_bytes, log.is_offline))
        elif data_dir is not None:  # otherwise it was deleted in the meantime
            found[data_dir].append((*key, _stored_bytes(data_dir.partition_path(*key)), table.is_offline(key)))
        if part.is_over():
            await sleep(0)
            part.begin()
    futures: dict[DataDir, list[tuple[str, int, int, int]]] = {data_dir: [] for data_dir in log_dirs.live}
    for one in moving:
        key = (one.source.topic, one.source.partition)
        if wanted is None or key in wanted:
            futures[one.data_dir].append((*key, one.size_bytes, one.lag))
    return [
        DirStatus(data_dir, partitions, futures[data_dir], log_dirs.is_cordoned(data_dir))
        for data_dir, partitions in found.items()
    ]


def _stored_bytes(path: str) -> int:
    """Return the total size of the .log files in a partition directory, or 0 if it cannot be read."""
    try:
        return sum(log_files.list_files(path).values())
    except OSError:
        return 0
