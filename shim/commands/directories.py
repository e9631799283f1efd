"""What the commands on data directories share: the lock, the metadata, how they fail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import click

from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import MetadataLog
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log import PartitionLog


class Directory(click.Path):
    """The name of a directory. An empty one, as of a variable that is not set, would be the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a directory has a name, not ''", param, ctx)
        return super().convert(value, param, ctx)


def replayed(data_dir: DataDir, node_id: int) -> tuple[Image, MetadataLog]:
    """Read the metadata of a locked directory, and change nothing. Raises StorageError, OSError."""
    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import MetadataLog
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.metadata.stored_log import StoredLog
    from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN

    folder = Path(data_dir.partition_path(CLUSTER_METADATA_TOPIC, 0))
    image = Image()
    stored = StoredLog(folder, is_whole=(Path(data_dir.path) / CLEAN_SHUTDOWN).exists())
    log = MetadataLog(cast("PartitionLog", stored), node_id)  # a replay reads alone
    log.replay(Replayer(image))
    return image, log


def opened(data_dir: DataDir, *, reads_only: bool = False) -> None:
    """Lock a directory, or end with a line that says who has it open. `reads_only`: as of `DataDir.lock`."""
    from kafka_shim.storage.results import StorageError

    try:
        data_dir.lock(reads_only=reads_only)
    except (StorageError, OSError) as err:
        fail(reason_of(err))


def reason_of(error: Exception) -> str:
    """Return what a line says of an error: of a file its name and why, without the number that Python puts there."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}"
    return str(error)


def fail(reason: str) -> NoReturn:
    click.echo(f"error: {reason}", err=True)
    raise click.exceptions.Exit(1)
