"""What the commands on data directories share: the lock, the metadata, how they fail."""

from __future__ import annotations

import os

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import MetadataLog
    from kafka_shim.storage.data_dir import DataDir


def replayed(data_dir: DataDir, node_id: int) -> tuple[Image, MetadataLog]:
    from kafka_shim.clock import RealClock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import MetadataLog
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.storage.logs import Logs

    config = BrokerConfig(node_id=node_id, log_dirs=(data_dir.path,))
    image = Image()
    log = MetadataLog(Logs(config, RealClock(), Faults()).open_metadata_log(), node_id)
    log.replay(Replayer(image))
    return image, log


def opened(data_dir: DataDir) -> None:
    from kafka_shim.storage.results import StorageError

    try:
        data_dir.lock()
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
