"""One directory of `log.dirs`: its lock, identity, clean-shutdown mark and checkpoints (Kafka: LogManager,
MetaProperties)."""

from __future__ import annotations

import fcntl
import json
import logging
import os

from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.checkpoint import CheckpointError, Partition
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_shim.randomness import Randomness

logger = logging.getLogger(__name__)

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
META_VERSION = "1"

# (device, inode) of the lock files that this process holds -> descriptors.
_LOCKED: dict[tuple[int, int], list[int]] = {}


class DataDir:
    """Opened (locked) by `Logs`, closed last at the stop."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.directory_id = ""
        self.meta: dict[str, str] = {}
        # What is wrong with `meta.properties`, empty for nothing.
        self.meta_fault = ""
        # Of the life before: whether it ended cleanly, and its checkpoints.
        self.was_clean = False
        self.recovery_points: dict[Partition, int] = {}
        self.start_offsets: dict[Partition, int] = {}
        # How far each compacted partition is clean.
        self.cleaner_offsets: dict[Partition, int] = {}
        # What the files of `read_state` and `write_offsets` hold entries for, by their names.
        self._entries: dict[str, frozenset[Partition]] = {}
        # Live partitions by name, loaded or not.
        self.partitions: set[Partition] = set()
        self._lock_fd = -1
        self._lock_key = (0, 0)

    # --- lock and identity

    def lock(self) -> None:
        """Make the directory when it is missing, and keep every other process out. Raises OSError when it cannot be
        used, StorageError when another broker has it."""
        os.makedirs(self.path, exist_ok=True)
        self._lock_fd = os.open(f"{self.path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        stat = os.fstat(self._lock_fd)
        self._lock_key = (stat.st_dev, stat.st_ino)
        try:
            # The lock of the JVM is per process, and closing any descriptor of the file gives it up: a second broker of
            # this process must not get that far.
            if self._lock_key in _LOCKED:
                raise BlockingIOError
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            if self._lock_key in _LOCKED:
                _LOCKED[self._lock_key].append(self._lock_fd)  # closed together with the lock's own
            else:
                os.close(self._lock_fd)
            self._lock_fd = -1
            raise StorageError(f"the data directory {self.path} is in use by another broker") from err
        _LOCKED[self._lock_key] = [self._lock_fd]

    def unlock(self) -> None:
        """Let others in. Twice is no error."""
        if self._lock_fd >= 0:
            for fd in _LOCKED.pop(self._lock_key):
                os.close(fd)
            self._lock_fd = -1

    def read_meta(self) -> dict[str, str]:
        """Read `meta.properties` into `meta`; empty when there is none. Raises OSError, StorageError for another
        version."""
        try:
            with open(f"{self.path}/{META_PROPERTIES}", encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            self.meta_fault = "is missing"
            return {}
        except UnicodeDecodeError:
            lines = []
        pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
        self.meta = meta = {key.strip(): value.strip() for key, _, value in pairs}
        if meta.get("version", META_VERSION) != META_VERSION:
            raise StorageError(f"{self.path}/{META_PROPERTIES} has version {meta['version']}, expected {META_VERSION}")
        self.directory_id = meta.get("directory.id", "")
        self.meta_fault = "" if "cluster.id" in meta else "is damaged: it names no cluster.id"
        return meta

    def check_identity(self) -> None:
        """Raises StorageError when `meta.properties`, read before, is missing or damaged and there are partitions: a
        fresh identity would make another cluster of them."""
        if not self.meta_fault:
            return
        live, _ = self.scan()
        if live or os.path.isdir(self.partition_path(CLUSTER_METADATA_TOPIC, 0)):
            raise StorageError(
                f"{self.path}/{META_PROPERTIES} {self.meta_fault}, and the directory holds partitions: restore the "
                f"file, or have `kafka-shim storage mend` write it anew"
            )

    def write_meta(self, cluster_id: str, node_id: int, random: Randomness) -> None:
        """Make the directory a broker's: write `meta.properties`, with a fresh directory id (KIP-858). OSError."""
        self.directory_id = self.directory_id or random.uuid_text()
        lines = [
            "#",
            f"node.id={node_id}",
            f"directory.id={self.directory_id}",
            f"version={META_VERSION}",
            f"cluster.id={cluster_id}",
        ]
        content = "".join(f"{line}\n" for line in lines).encode()
        checkpoint.replace_file(f"{self.path}/{META_PROPERTIES}", content, sync=True)

    # --- clean stop and checkpoints

    def read_state(self) -> None:
        """Read the mark and the checkpoints, and remove the mark: from here on the directory is not clean. Raises
        OSError."""
        mark = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.was_clean = os.path.exists(mark)
        self.recovery_points = self._read(checkpoint.RECOVERY_POINTS)
        self.start_offsets = self._read(checkpoint.LOG_START_OFFSETS)
        self.cleaner_offsets = self._read(checkpoint.CLEANER_OFFSETS)
        if self.was_clean:
            os.unlink(mark)

    def _read(self, name: str) -> dict[Partition, int]:
        try:
            offsets = checkpoint.read_offsets(f"{self.path}/{name}")
        except CheckpointError as err:
            # Kafka goes on without it too: recovery points of 0 mean a full scan.
            logger.warning("a checkpoint is ignored: %s", err)
            return {}
        self._entries[name] = frozenset(offsets)
        return offsets

    def write_offsets(self, name: str, offsets: Mapping[Partition, int], *, sync: bool) -> None:
        """Replace one of the offset checkpoints. Raises OSError."""
        written = frozenset(offsets)
        # Until the file is replaced it may be the old or the new one.
        self._entries[name] = self._entries.get(name, frozenset()) | written
        checkpoint.write_offsets(f"{self.path}/{name}", offsets, sync=sync)
        self._entries[name] = written

    def has_entry(self, name: str, partition: Partition) -> bool:
        """Whether this checkpoint's file may hold an entry for the partition."""
        return partition in self._entries.get(name, ())

    def mark_clean(self, broker_epoch: int) -> None:
        """The last write of a clean stop."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        checkpoint.replace_file(f"{self.path}/{CLEAN_SHUTDOWN}", content, sync=True)

    def last_broker_epoch(self) -> int:
        """What the mark of the last clean stop says, -1 without one. Read it before `read_state` removes it."""
        try:
            with open(f"{self.path}/{CLEAN_SHUTDOWN}", encoding="utf-8") as file:
                return int(json.load(file)["brokerEpoch"])
        except (OSError, ValueError, KeyError, TypeError):
            return -1

    # --- partitions

    def scan(self) -> tuple[list[Partition], list[str]]:
        """The live partitions, and the directories of deleted ones that still wait to be removed."""
        live, deleted = [], []
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(names.DELETE_DIR):
                    deleted.append(f"{self.path}/{name}")
                    continue
                partition = names.partition_of(name)
                if partition is not None and partition[0] != CLUSTER_METADATA_TOPIC and entry.is_dir():
                    live.append(partition)
        return live, deleted

    def partition_path(self, topic: str, partition: int) -> str:
        """Where a live partition is."""
        return f"{self.path}/{topic}-{partition}"

    def make_partition(self, topic: str, partition: int, topic_id: bytes) -> str:
        """Make a partition's directory with its `partition.metadata`; answers the path. Raises OSError."""
        path = self.partition_path(topic, partition)
        os.makedirs(path, exist_ok=True)
        write_topic_id(path, topic_id)
        return path

    def free_bytes(self) -> tuple[int, int]:
        """(total, usable) bytes of the file system, -1 when it cannot be asked."""
        try:
            stat = os.statvfs(self.path)
        except OSError:
            return -1, -1
        return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize


def write_topic_id(directory: str, topic_id: bytes) -> None:
    """`partition.metadata`, as Kafka writes it."""
    content = f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()
    checkpoint.replace_file(f"{directory}/{PARTITION_METADATA}", content, sync=False)


def read_topic_id(directory: str) -> str | None:
    """The topic id of a partition's directory as text; None when no file says it. Raises OSError: a file that cannot be
    read now is not a missing one."""
    try:
        with open(f"{directory}/{PARTITION_METADATA}", encoding="utf-8") as file:
            lines: Iterable[str] = file.read().splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key == "topic_id":
            return value.strip()
    return None
