"""`kafka-shim storage`: format a data directory ahead of its first start, and say what is in one."""

from __future__ import annotations

import time
from pathlib import Path

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


@click.group(name="storage", help="Prepare a data directory, and say what is in one.")
def group() -> None:
    pass


@group.command(
    name="format", help="Make empty directories the data directories of a node. Optional: serve does it too."
)
@click.argument("directories", nargs=-1, required=True)
@click.option("--cluster-id", "-t", help="a base64 uuid  [default: a random one]")
@click.option("--node-id", type=int, default=1, show_default=True)
@click.option("--ignore-formatted", is_flag=True, help="a formatted directory is no error")
def format_directories(
    directories: tuple[str, ...], cluster_id: str | None, node_id: int, ignore_formatted: bool
) -> None:
    from kafka_shim.metadata.bootstrap import write_checkpoint
    from kafka_shim.storage.data_dir import DataDir, random_uuid_text

    _check_cluster_id(cluster_id)
    cluster_id = cluster_id or random_uuid_text()
    for name in directories:
        data_dir = DataDir(name)
        _opened(data_dir)
        try:
            if data_dir.read_meta():
                if not ignore_formatted:
                    _fail(f"{data_dir.path} is formatted already")
                click.echo(f"{data_dir.path} is formatted already.")
                continue
            data_dir.write_meta(cluster_id, node_id)
            # Kafka looks for it in the directory of the metadata log; in the others it does no harm.
            write_checkpoint(Path(data_dir.path), time.time_ns() // 1_000_000)
            click.echo(f"Formatted {data_dir.path} for node {node_id} of cluster {cluster_id}.")
        finally:
            data_dir.unlock()


@group.command(help="Print identity, features and topics of a data directory that no broker has open.")
@click.argument("directory", default="./kafka-shim-data")
def info(directory: str) -> None:
    from kafka_shim.clock import RealClock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.log import MetadataLog
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN, META_PROPERTIES, DataDir
    from kafka_shim.storage.logs import Logs
    from kafka_shim.storage.results import StorageError

    if not (Path(directory) / META_PROPERTIES).exists():
        _fail(f"{directory} is not a data directory: it has no {META_PROPERTIES}")
    data_dir = DataDir(directory)
    _opened(data_dir)
    try:
        meta = data_dir.read_meta()
        for key in ("cluster.id", "node.id", "directory.id", "version"):
            click.echo(f"{key}: {meta.get(key, '')}")
        click.echo(f"stopped cleanly: {'yes' if (Path(directory) / CLEAN_SHUTDOWN).exists() else 'no'}")
        if (Path(directory) / "__cluster_metadata-0").is_dir():
            config = BrokerConfig(node_id=int(meta.get("node.id", "1")), log_dirs=(directory,))
            image = Image()
            log = MetadataLog(Logs(config, RealClock(), Faults()).open_metadata_log(), config.node_id)
            log.replay(Replayer(image))
            click.echo(f"metadata log: {log.next_offset} records, epoch {log.epoch}")
            for feature, level in sorted(image.features.items()):
                click.echo(f"feature {feature}: {level}")
            for topic in sorted(image.topics.values(), key=lambda one: one.name):
                click.echo(f"topic {topic.name}: {len(topic.partitions)} partitions")
    except StorageError as err:
        _fail(str(err))
    finally:
        data_dir.unlock()


def _opened(data_dir: object) -> None:
    from kafka_shim.storage.results import StorageError

    try:
        data_dir.lock()  # type: ignore[attr-defined]
    except (StorageError, OSError) as err:
        _fail(str(err))


def _check_cluster_id(cluster_id: str | None) -> None:
    from base64 import urlsafe_b64decode

    if cluster_id is None:
        return
    try:
        right = len(urlsafe_b64decode(cluster_id + "==")) == 16
    except ValueError:
        right = False
    if not right or len(cluster_id) != 22:
        raise click.BadParameter(f"{cluster_id!r} is not a uuid of 22 base64 characters", param_hint="--cluster-id")


def _fail(reason: str) -> NoReturn:
    click.echo(f"error: {reason}", err=True)
    raise click.exceptions.Exit(1)
