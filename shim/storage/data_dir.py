"""One directory of `log.dirs`: its lock, `meta.properties`, clean-shutdown file and checkpoints (Kafka: LogManager,
MetaProperties)."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import re
from contextlib import suppress

from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.plurals import counted
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.checkpoint import CheckpointError, Partition
from kafka_shim.storage.regular_files import open_regular, read_file
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kafka_shim.randomness import Randomness

logger = logging.getLogger(__name__)

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
META_VERSION = "1"
TOPIC_ID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")

# (device, inode) of the lock files that this process holds -> descriptors.
_LOCKED: dict[tuple[int, int], list[int]] = {}


class DataDir:
    """One data directory. `Logs` locks it first at the start and unlocks it last at the stop."""

    def __init__(self, path: str) -> None:
        try:
            self.path = os.path.abspath(path)
        except FileNotFoundError as err:
            raise StorageError(
                f"the data directory {path} cannot be used: the working directory does not exist any more; start in "
                "another, or name the data directory by its whole path"
            ) from err
        self.directory_id = ""
        self.meta: dict[str, str] = {}
        # What is wrong with `meta.properties`; empty if nothing is.
        self.meta_fault = ""
        # Whether the last stop was clean, and the checkpoints read at the start.
        self.was_clean = False
        self.recovery_points: dict[Partition, int] = {}
        self.start_offsets: dict[Partition, int] = {}
        # The offset below which each compacted partition is clean.
        self.cleaner_offsets: dict[Partition, int] = {}
        # File name of an offset checkpoint -> the partitions that it may contain.
        self._entries: dict[str, frozenset[Partition]] = {}
        # The live partitions, loaded or not.
        self.partitions: set[Partition] = set()
        # Directories `-future` that the scan found: copies of partitions that were moving here. More than one of a
        # partition, if a start of a move failed.
        self.futures: dict[Partition, list[str]] = {}
        self._lock_fd = -1
        self._lock_key = (0, 0)

    # --- lock and identity

    def lock(self, *, reads_only: bool = False) -> None:
        """Create the directory if it is missing, and lock it. `reads_only`: the caller changes nothing, so that a
        directory that may not be written to will do. Raises OSError if it cannot be used, StorageError if somebody else
        holds the lock."""
        try:
            os.makedirs(self.path, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path) from None
        kind = fcntl.LOCK_EX
        try:
            self._lock_fd = open_regular(f"{self.path}/{LOCK}", os.O_RDWR | os.O_CREAT)
        except OSError as err:
            if not reads_only or err.errno not in (errno.EROFS, errno.EACCES):
                raise
            if not self.has_lock_file():
                return  # no broker has it open: each makes the file first
            # A broker may have it open by another mount, or as another user. Its lock excludes this one, too.
            kind = fcntl.LOCK_SH
            self._lock_fd = open_regular(f"{self.path}/{LOCK}", os.O_RDONLY)
        stat = os.fstat(self._lock_fd)
        self._lock_key = (stat.st_dev, stat.st_ino)
        try:
            # The lock is a POSIX lock like the JVM's: it belongs to the process, and closing any descriptor of the file
            # releases it. So a second broker in this process must be detected without it.
            if self._lock_key in _LOCKED:
                raise BlockingIOError
            fcntl.lockf(self._lock_fd, kind | fcntl.LOCK_NB)
        except OSError as err:
            if self._lock_key in _LOCKED:
                _LOCKED[self._lock_key].append(self._lock_fd)  # closed together with the lock's own
            else:
                os.close(self._lock_fd)
            self._lock_fd = -1
            raise StorageError(
                f"the data directory {self.path} is in use by {self._holder()}: stop that first, or name another "
                "directory"
            ) from err
        _LOCKED[self._lock_key] = [self._lock_fd]

    def has_lock_file(self) -> bool:
        """Whether a start was here before, or a command."""
        return os.path.exists(f"{self.path}/{LOCK}")

    def _holder(self) -> str:
        """Who has the lock, as far as Linux tells."""
        if self._lock_key in _LOCKED:
            return f"a broker of this process (pid {os.getpid()})"
        device, inode = self._lock_key
        wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
        try:
            with open("/proc/locks", encoding="utf-8") as file:
                # 1: POSIX  ADVISORY  WRITE 1234 08:01:5678 0 EOF
                held = [line.split() for line in file]
        except OSError:
            held = []
        pids = [one[4] for one in held if len(one) > 5 and one[1] == "POSIX" and one[5] == wanted]
        return f"another process (pid {pids[0]})" if pids else "another process"

    def unlock(self) -> None:
        """Release the lock. Does nothing if the directory is not locked."""
        if self._lock_fd >= 0:
            for fd in _LOCKED.pop(self._lock_key):
                os.close(fd)
            self._lock_fd = -1

    def read_meta(self) -> dict[str, str]:
        """Read `meta.properties` into `meta` and return it; empty if there is no file. Raises OSError, or StorageError
        for an unknown version."""
        try:
            lines = read_file(f"{self.path}/{META_PROPERTIES}").decode().splitlines()
        except FileNotFoundError:
            self.meta_fault = "is missing"
            return {}
        except UnicodeDecodeError:
            lines = []
        pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
        self.meta = meta = {key.strip(): value.strip() for key, _, value in pairs}
        if meta.get("version", META_VERSION) != META_VERSION:
            raise StorageError(
                f"{self.path}/{META_PROPERTIES} has version {meta['version']}, expected {META_VERSION}: it is not of "
                "Kafka 4.3.1 in KRaft mode; name another directory with --data-dir or log.dirs"
            )
        self.directory_id = meta.get("directory.id", "")
        node_id = meta.get("node.id", "0")
        if "cluster.id" not in meta:
            self.meta_fault = "is damaged: it names no cluster.id"
        elif not (node_id.isascii() and node_id.isdecimal()):
            self.meta_fault = f"is damaged: its node.id is {node_id!r}"
        else:
            self.meta_fault = ""
        return meta

    @property
    def node_id(self) -> int | None:
        """The node of `meta.properties`, None if it names none. Call `read_meta` first."""
        named = "node.id" in self.meta and not self.meta_fault
        return int(self.meta["node.id"]) if named else None

    def check_identity(self, *, holds_partitions: bool = True) -> None:
        """Raise StorageError if `meta.properties` is missing or damaged and the directory contains partitions, because
        a new cluster id would not match them. A directory with `holds_partitions=False` may contain the metadata log
        alone: its other folders are not looked at. Call `read_meta` first. Raises OSError."""
        if not self.meta_fault:
            return
        held = [f"{topic}-{partition}" for topic, partition in self.scan()[0]] if holds_partitions else []
        metadata = self.partition_path(CLUSTER_METADATA_TOPIC, 0)
        if os.path.isdir(metadata):
            held.insert(0, os.path.basename(metadata))
        if held:
            raise StorageError(
                f"{self.path}/{META_PROPERTIES} {self.meta_fault}, and the directory holds "
                f"{counted(len(held), 'partition')} ({', '.join(held[:3])}; every folder NAME-NUMBER counts as one, as "
                f"in Kafka): restore the file, have "
                f"`kafka-shim storage mend` write a new one, or move away what is not Kafka's"
            )

    def write_meta(self, cluster_id: str, node_id: int, random: Randomness) -> None:
        """Write `meta.properties`, with a new directory id if there is none (KIP-858). Raises OSError."""
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
        """Read the clean-shutdown file and the checkpoints, then remove the clean-shutdown file: from here on the
        directory is not clean. Raises OSError."""
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
            # Kafka continues without it too. A recovery point of 0 means a full scan.
            logger.warning("a checkpoint is ignored: %s", err)
            return {}
        self._entries[name] = frozenset(offsets)
        return offsets

    def write_offsets(self, name: str, offsets: Mapping[Partition, int], *, sync: bool) -> None:
        """Replace one of the offset checkpoints. Raises OSError."""
        written = frozenset(offsets)
        # Until the file is replaced, it may have the old or the new entries.
        self._entries[name] = self._entries.get(name, frozenset()) | written
        checkpoint.write_offsets(f"{self.path}/{name}", offsets, sync=sync)
        self._entries[name] = written

    def has_entry(self, name: str, partition: Partition) -> bool:
        """Whether this checkpoint file may contain an entry for the partition."""
        return partition in self._entries.get(name, ())

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean-shutdown file, as the last write of a clean stop. Raises OSError."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        checkpoint.replace_file(f"{self.path}/{CLEAN_SHUTDOWN}", content, sync=True)

    # --- partitions

    def scan(self) -> tuple[list[Partition], list[str]]:
        """Return the live partitions, and the paths of deleted partition directories that are not removed yet. Raises
        StorageError if a folder is not Kafka's, and OSError."""
        live, deleted = [], []
        self.futures = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                name = entry.name
                if not entry.is_dir():
                    continue
                if names.is_foreign(name):
                    raise StorageError(
                        f"the data directory {self.path} contains a folder {name}, which has not the form "
                        f"TOPIC-PARTITION: Kafka refuses to start on it too, move the folder away or give log.dirs a "
                        f"directory of its own"
                    )
                if names.is_retired(name, names.DELETE_DIR):
                    deleted.append(f"{self.path}/{name}")
                    continue
                if names.is_retired(name, names.FUTURE_DIR):
                    moved = names.partition_of(name.rpartition(".")[0])
                    if moved is not None:
                        self.futures.setdefault(moved, []).append(f"{self.path}/{name}")
                    continue
                partition = names.partition_of(name)
                if partition is not None and partition[0] != CLUSTER_METADATA_TOPIC:
                    live.append(partition)
        return live, deleted

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the directory path of a live partition."""
        return f"{self.path}/{topic}-{partition}"

    def make_partition(self, topic: str, partition: int, topic_id: bytes) -> str:
        """Create a partition's directory with its `partition.metadata`. Returns the path. Raises OSError."""
        path = self.partition_path(topic, partition)
        os.makedirs(path, exist_ok=True)
        write_topic_id(path, topic_id)
        return path

    def free_bytes(self) -> tuple[int, int]:
        """Return (total, usable) bytes of the file system, or (-1, -1) if they cannot be read."""
        try:
            stat = os.statvfs(self.path)
        except OSError:
            return -1, -1
        return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize


def write_topic_id(directory: str, topic_id: bytes) -> None:
    """Write `partition.metadata` as Kafka does. Raises OSError."""
    content = f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()
    checkpoint.replace_file(f"{directory}/{PARTITION_METADATA}", content, sync=False)


def read_topic_id(directory: str) -> str | None:
    """Return the topic id in a partition directory's `partition.metadata` as text, or None if there is none, or what
    stands there is no topic id: a damaged file does not make the data another topic's. Raises OSError if the file
    exists but cannot be read."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        lines: Iterable[str] = read_file(path).decode().splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        lines = ()
    for line in lines:
        key, _, value = line.partition(":")
        if key == "topic_id" and TOPIC_ID_TEXT.fullmatch(value.strip()):
            return value.strip()
    logger.warning("%s is damaged: the topic id is taken from the metadata", path)
    return None


def remove_tree(path: str) -> Iterator[None]:
    """Remove a directory with all that is in it, as far as it can be removed, a file in each step."""
    with suppress(OSError):
        if os.path.islink(path):
            os.unlink(path)  # and nothing of what it leads to
            return
        with os.scandir(path) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from remove_tree(entry.path)
            else:
                with suppress(OSError):
                    os.unlink(entry.path)
            yield
        os.rmdir(path)
