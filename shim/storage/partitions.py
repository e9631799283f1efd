"""The table of a broker's partitions: which are loaded, which are only known by their directory, which are offline."""

from __future__ import annotations

from kafka_shim.storage.open_files import OUT_OF_RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.config import TopicConfig
    from kafka_shim.errors import KafkaError
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log import PartitionLog

    Lookup = Callable[[str, int], tuple[bytes, TopicConfig, int] | None]


class Deleted:
    """What a deleted partition leaves: a directory, which gets the path `retired`, and whose files go after `delay_ms`.

    `end_offset` is the metadata log's after the deletion: once that is on the disk, a power cut cannot bring the topic
    back, without its records. 0 where nobody waits for it."""

    __slots__ = ("data_dir", "delay_ms", "end_offset", "log", "retired")

    def __init__(
        self, data_dir: DataDir, log: PartitionLog | None, delay_ms: int, retired: str, end_offset: int
    ) -> None:
        self.data_dir = data_dir
        self.log = log
        self.delay_ms = delay_ms
        self.retired = retired
        self.end_offset = end_offset


# The most partitions that a task handles before it yields to the event loop (`scheduler.Slice`).
SLICE = 20
MANY = 500


class Partitions:
    """The partitions by (topic, partition). `Logs` owns it; its parts read and change it. Event-loop thread only."""

    __slots__ = (
        "_added",
        "absent",
        "after_many",
        "damaged",
        "dir_of",
        "loaded",
        "lookup",
        "not_loaded",
        "to_create",
        "to_retire",
        "unused",
    )

    def __init__(self) -> None:
        # Returns (topic id, config, leader epoch) of a partition in the metadata; None until the start.
        self.lookup: Lookup | None = None
        # Loaded partitions, online or not, and the directory of each.
        self.loaded: dict[Partition, PartitionLog] = {}
        self.dir_of: dict[PartitionLog, DataDir] = {}
        # Partitions that were not used since the start, with their directory.
        self.unused: dict[Partition, DataDir] = {}
        # Those of `unused` that could not be loaded at their last use, with the error.
        self.not_loaded: dict[Partition, OSError] = {}
        # Those of `unused` whose files may be damaged: they are loaded as after a crash, which rebuilds indexes.
        self.damaged: set[Partition] = set()
        # Partitions whose directory is created later. The value is the error of the last attempt to create it, or None
        # before the first attempt.
        self.to_create: dict[Partition, KafkaError | None] = {}
        # Deleted partitions whose directory is renamed later.
        self.to_retire: dict[Partition, Deleted] = {}
        # Partitions that exist in the metadata but in none of the usable directories.
        self.absent: set[Partition] = set()
        # Called whenever `MANY` more were loaded: what they hold stays in memory.
        self.after_many: Callable[[], object] | None = None
        self._added = 0

    def add(self, key: Partition, log: PartitionLog, data_dir: DataDir) -> None:
        """A partition is loaded."""
        self.loaded[key] = log
        self.dir_of[log] = data_dir
        self._added += 1
        if self.after_many is not None and not self._added % MANY:
            self.after_many()

    def names(self) -> list[Partition]:
        """Return every partition in the usable directories, online or not."""
        return [*self.loaded, *self.unused, *self.to_create]

    def has(self, key: Partition) -> bool:
        """Whether the partition exists, online or not, or in a failed directory."""
        return key in self.loaded or key in self.unused or key in self.to_create or key in self.absent

    @property
    def unloadable_count(self) -> int:
        """How many partitions could not be loaded because of an I/O error."""
        return sum(err.errno not in OUT_OF_RESOURCES for err in self.not_loaded.values())

    def is_offline(self, key: Partition) -> bool:
        """Whether the partition is offline because of an I/O error or because its directory failed at the start."""
        log = self.loaded.get(key)
        if log is not None:
            return log.is_offline
        failed = self.not_loaded.get(key)
        return key in self.absent or (failed is not None and failed.errno not in OUT_OF_RESOURCES)

    def is_unread(self, key: Partition) -> bool:
        """Whether the last attempt to load the partition failed because the process lacked descriptors or memory."""
        failed = self.not_loaded.get(key)
        return failed is not None and failed.errno in OUT_OF_RESOURCES
