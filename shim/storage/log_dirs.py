"""The directories of `log.dirs` together: their locks, their common cluster id, and which of them are usable (Kafka:
LogManager, MetaPropertiesEnsemble)."""

from __future__ import annotations

import logging
import os
from functools import partial

from kafka_shim.storage.data_dir import DataDir
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.results import StorageError, what_to_do

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.config import BrokerConfig
    from kafka_shim.randomness import Randomness

# The value of `cordoned.log.dirs` that means every directory.
CORDONED_ALL = "*"

logger = logging.getLogger(__name__)


class LogDirs:
    """The data directories. Owned by `Logs`, which opens them first and unlocks them last."""

    def __init__(self, config: BrokerConfig, random: Randomness) -> None:
        self._config = config
        self._random = random
        # The usable directories, and the paths of those that failed at this start.
        self.live: list[DataDir] = [DataDir(path) for path in config.log_dirs]
        self.failed: list[str] = []
        # The directory of the metadata log where it is none of `log.dirs`: it holds no other partition.
        path = self._metadata_path()
        self._apart = None if any(one.path == path for one in self.live) else DataDir(path)

    def is_cordoned(self, data_dir: DataDir) -> bool:
        """Whether the directory takes no new partitions (`cordoned.log.dirs`, KIP-1066)."""
        cordoned = self._config.cordoned_log_dirs
        return bool(cordoned) and (CORDONED_ALL in cordoned or data_dir.path in map(os.path.abspath, cordoned))

    @property
    def every(self) -> list[DataDir]:
        """The usable directories, with that of the metadata log."""
        return self.live if self._apart is None else [*self.live, self._apart]

    def open(self, cluster_id: str | None = None) -> str:
        """Lock every directory of `log.dirs`, and `metadata.log.dir`, and read its `meta.properties`; an empty
        directory gets one with `cluster_id` (default: random). Returns the cluster id. An unusable directory is
        moved to `failed`, as in Kafka. Raises StorageError if the directory of the metadata log is unusable, or
        if a directory is in use by another process or belongs to another cluster or node."""
        self._check_unlocked()
        locked = []
        try:
            for data_dir in list(self.every):
                if self.usable_after(data_dir, data_dir.lock):
                    locked.append(data_dir)  # noqa: PERF401 the locked ones must be known if one raises
            found = self._load_identity(cluster_id)
            for data_dir in list(self.every):
                self.usable_after(data_dir, data_dir.read_state)
        except BaseException:
            for data_dir in locked:
                data_dir.unlock()
            raise
        return found

    def usable_after(self, data_dir: DataDir, step: Callable[[], object]) -> bool:
        """Run one step of the start in a directory. Returns False and excludes the directory if the step raises
        OSError. Raises StorageError if it is the metadata directory, if no directory of `log.dirs` is left (Kafka
        halts), or if the process lacks descriptors or memory."""
        try:
            step()
        except OSError as err:
            if err.errno in OUT_OF_RESOURCES:
                raise StorageError(
                    f"{data_dir.path}: {err.strerror}: raise the limit of open files (ulimit -n)"
                ) from err
            reason = f"the data directory {data_dir.path} cannot be used: {_said(data_dir, err)}"
            if data_dir.path == self._metadata_path():
                raise StorageError(f"{reason}{what_to_do(err)}") from err
            data_dir.unlock()
            self.live.remove(data_dir)
            self.failed.append(data_dir.path)
            if not self.live:
                raise StorageError(f"none of log.dirs can be used: {reason}{what_to_do(err)}") from err
            logger.error("%s; going on without it", reason)  # noqa: TRY400 the reason says it all
            return False
        return True

    def _check_unlocked(self) -> None:
        """Refuse a directory that is not Kafka's before the file of the lock is left in it."""
        self._check([one for one in self.every if os.path.isdir(one.path) and not one.has_lock_file()])

    def _check(self, data_dirs: list[DataDir]) -> None:
        """Read `meta.properties` of each directory. Raises StorageError if a folder in one is not Kafka's."""
        read = [data_dir for data_dir in data_dirs if self.usable_after(data_dir, data_dir.read_meta)]
        for data_dir in read:
            # Kafka parses the folder names in `log.dirs` alone.
            holds_partitions = data_dir is not self._apart
            check = partial(data_dir.check_identity, holds_partitions=holds_partitions)
            if self.usable_after(data_dir, check) and holds_partitions:
                self.usable_after(data_dir, data_dir.scan)

    def _load_identity(self, wanted: str | None) -> str:
        self._check(list(self.every))  # before anything is written
        metas = [(data_dir, data_dir.meta) for data_dir in self.every]
        found = {meta["cluster.id"]: data_dir for data_dir, meta in metas if "cluster.id" in meta}
        if len(found) > 1:
            raise StorageError(
                "the data directories belong to different clusters: "
                + ", ".join(f"{data_dir.path} to {cluster}" for cluster, data_dir in found.items())
            )
        cluster_id = next(iter(found), None) or wanted or self._random.uuid_text()
        if wanted is not None and wanted != cluster_id:
            raise StorageError(f"{found[cluster_id].path} belongs to the cluster {cluster_id}, not to {wanted}")
        own_id = self._config.node_id
        for data_dir, meta in metas:
            node_id = meta.get("node.id", str(own_id))
            if node_id != str(own_id):
                raise StorageError(
                    f"{data_dir.path} belongs to node {node_id}, this is node {own_id}: set node.id={node_id}"
                )
        # Only when all belong together: a refused start must not mark a new directory.
        for data_dir, meta in metas:
            if "cluster.id" not in meta or not data_dir.directory_id:
                self.usable_after(
                    data_dir, partial(data_dir.write_meta, cluster_id, self._config.node_id, self._random)
                )
        return cluster_id

    @property
    def metadata_dir(self) -> DataDir:
        """The directory of the metadata log: `metadata.log.dir`, or the first of `log.dirs`."""
        path = self._metadata_path()
        return next(data_dir for data_dir in self.every if data_dir.path == path)

    def _metadata_path(self) -> str:
        config = self._config
        return os.path.abspath(config.log_dirs[0] if config.metadata_log_dir is None else config.metadata_log_dir)


def _said(data_dir: DataDir, error: OSError) -> str:
    """Return why, with the file in the directory that it is about."""
    said = error.strerror or str(error)
    if not isinstance(error.filename, str) or not error.filename.startswith(f"{data_dir.path}/"):
        return said
    return f"{error.filename.removeprefix(data_dir.path)[1:]}: {said}"
