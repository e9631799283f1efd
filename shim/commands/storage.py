"""`kafka-shim storage`: format a data directory before its first start, show its contents, repair its identity; to
read all of it and to hand it to Apache Kafka are in storage_check.py."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kafka_shim.commands.directories import Directory, fail, opened, reason_of, replayed
from kafka_shim.commands.storage_check import check, upgrade_to_kafka
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.plurals import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kafka_shim.storage.data_dir import DataDir

# As of the option node.id: with any other a directory cannot be served.
NODE_ID = click.IntRange(0, (1 << 31) - 1)


@click.group(
    name="storage", help="Prepare a data directory, say what is in one, check it, mend it, hand it to Apache Kafka."
)
def group() -> None:
    pass


group.add_command(check)
group.add_command(upgrade_to_kafka)


@group.command(
    name="format", help="Make empty directories the data directories of a node. Optional: serve does it too."
)
@click.argument("directories", nargs=-1, type=Directory())
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    help="a server.properties: its directories, node id, controller listener and quorum",
)
@click.option("--cluster-id", "-t", metavar="ID", help="a base64 uuid  [default: a random one]")
@click.option("--node-id", type=NODE_ID, help="[default: what --config says, else 1]")
@click.option("--ignore-formatted", "-g", is_flag=True, help="a formatted directory is no error")
@click.option(
    "--release-version", "-r", metavar="RELEASE", help="the release whose features it gets, such as 3.9  [default: 4.3]"
)
@click.option("--feature", "-f", "features", multiple=True, metavar="NAME=LEVEL", help="one feature; repeatable")
@click.option("--standalone", "-s", is_flag=True, help="a dynamic quorum of this node alone; needs --config")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="a dynamic quorum that others have the voters of")
@click.option("--initial-controllers", "-I", metavar="ID@HOST:PORT:DIRECTORY,...", help="the voters; needs --config")
@click.option(
    "--add-scram",
    "-S",
    "scram",
    multiple=True,
    metavar="MECHANISM=[name=USER,password=WORD]",
    help="a SCRAM user, with salt, iterations and saltedpassword where you want; repeatable",
)
def format_directories(
    directories: tuple[str, ...],
    config: str | None,
    cluster_id: str | None,
    node_id: int | None,
    ignore_formatted: bool,
    release_version: str | None,
    features: tuple[str, ...],
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    scram: tuple[str, ...],
) -> None:
    from kafka_shim.commands.formatting import Quorum, Request, format_all
    from kafka_shim.config import ConfigError
    from kafka_shim.storage.results import StorageError

    _check_cluster_id(cluster_id)
    if standalone + no_initial_controllers + (initial_controllers is not None) > 1:
        raise click.UsageError("--standalone, --no-initial-controllers and --initial-controllers exclude each other")
    quorum = Quorum(standalone, no_initial_controllers, initial_controllers)
    request = Request(
        directories, config, cluster_id, node_id, ignore_formatted, release_version, features, quorum, scram
    )

    def done() -> Iterator[str]:
        try:
            yield from map(str, format_all(request, _warn))
        except (ConfigError, StorageError, OSError) as err:
            fail(reason_of(err))

    for line in done():  # an error of the output is none of the directories
        click.echo(line)


def _warn(line: str) -> None:
    click.echo(f"warning: {line}", err=True)


@group.command(
    help="Print identity, features and topics of a data directory that no broker has open; default: ./kafka-shim-data."
)
@click.argument("directory", default="./kafka-shim-data", type=Directory())
@click.option("--json", "as_json", is_flag=True, help="one JSON object")
def info(directory: str, as_json: bool) -> None:
    from kafka_shim.metadata.bootstrap import FILE_NAME
    from kafka_shim.storage.data_dir import META_PROPERTIES, DataDir
    from kafka_shim.storage.results import StorageError

    if not (Path(directory) / META_PROPERTIES).exists():
        fail(f"{directory} is not a data directory: it has no {META_PROPERTIES}")
    data_dir = DataDir(directory)
    opened(data_dir, reads_only=True)
    try:
        found = _described(data_dir)
    except (StorageError, OSError) as err:
        fail(reason_of(err))
    finally:
        data_dir.unlock()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for key in IDENTITY:
        click.echo(f"{key}: {found[key]}")
    is_new = "metadata" not in found and (Path(directory) / FILE_NAME).exists()
    unclean = "no broker has started on it yet" if is_new else "no"
    click.echo(f"stopped cleanly: {'yes' if found['stoppedCleanly'] else unclean}")
    if "metadata" in found:
        log = found["metadata"]
        click.echo(f"metadata log: {counted(log['records'], 'record')}, epoch {log['epoch']}")
        from kafka_shim.metadata.features import METADATA_VERSION
        from kafka_shim.metadata.formatter import FIRST_LEVEL, VERSIONS

        names = {(METADATA_VERSION, level): f" ({name})" for level, name in enumerate(VERSIONS, FIRST_LEVEL)}
        for feature, level in found["features"].items():
            click.echo(f"feature {feature}: {level}{names.get((feature, level), '')}")
        for topic, partitions in found["topics"].items():
            click.echo(f"topic {topic}: {counted(partitions, 'partition')}")


IDENTITY = ("cluster.id", "node.id", "directory.id", "version")


def _described(data_dir: DataDir) -> dict[str, Any]:
    """What a locked directory holds, for JSON."""
    from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN

    meta = data_dir.read_meta()
    found: dict[str, Any] = {key: meta.get(key, "") for key in IDENTITY}
    found["stoppedCleanly"] = (Path(data_dir.path) / CLEAN_SHUTDOWN).exists()
    if (Path(data_dir.path) / f"{CLUSTER_METADATA_TOPIC}-0").is_dir():
        image, log = replayed(data_dir, data_dir.node_id or 1)
        found["metadata"] = {"records": log.next_offset, "epoch": log.epoch}
        found["features"] = dict(sorted(image.features.items()))
        topics = sorted(image.topics.values(), key=lambda one: one.name)
        found["topics"] = {topic.name: len(topic.partitions) for topic in topics}
    return found


@group.command(
    help="Write the missing or damaged meta.properties of data directories that hold partitions. Name all of log.dirs."
)
@click.argument("directories", nargs=-1, required=True, type=Directory())
@click.option(
    "--cluster-id", "-t", metavar="ID", help="the id it had  [default: what another of them says, else a random one]"
)
@click.option("--node-id", type=NODE_ID, help="[default: what another of them or the metadata log says]")
def mend(directories: tuple[str, ...], cluster_id: str | None, node_id: int | None) -> None:
    from kafka_shim.randomness import Randomness
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.results import StorageError

    _check_cluster_id(cluster_id)
    random = Randomness()
    found = []
    try:
        for name in directories:
            if not Path(name).is_dir():  # the lock would make it
                fail(f"{name} is no directory")
            data_dir = DataDir(name)
            opened(data_dir)
            found.append(data_dir)
            data_dir.read_meta()
        whole = [data_dir for data_dir in found if not data_dir.meta_fault]
        known = {data_dir.meta["cluster.id"] for data_dir in found if "cluster.id" in data_dir.meta}
        cluster_id = cluster_id or next(iter(known), None)
        if known - {cluster_id}:
            fail(f"the directories belong to the cluster {known.pop()}, not to {cluster_id}")
        registered = _registered(found)
        nodes = {data_dir.node_id for data_dir in whole if data_dir.node_id is not None} or set(registered)
        if node_id is None:
            if len(nodes) != 1:
                fail("no file has the node id: give it with --node-id")
            (node_id,) = nodes
        if cluster_id is None:
            cluster_id = random.uuid_text()
            click.echo(f"No file has the old cluster id: the new one is {cluster_id} (set it with --cluster-id).")
        lost = [one for one in registered.get(node_id, ()) if one not in {data_dir.directory_id for data_dir in whole}]
        broken = [data_dir for data_dir in found if data_dir.meta_fault]
        for data_dir in broken:
            if not data_dir.directory_id and len(lost) == len(broken) == 1:
                data_dir.directory_id = lost[0]
            data_dir.write_meta(cluster_id, node_id, random)
            click.echo(f"Mended {data_dir.path}: node {node_id} of cluster {cluster_id}.")
        if not broken:
            click.echo("Nothing to mend.")
    except (StorageError, OSError) as err:
        fail(reason_of(err))
    finally:
        for data_dir in found:
            data_dir.unlock()


def _registered(directories: list[DataDir]) -> dict[int, list[str]]:
    """Returns the directory ids of each node in the metadata log."""
    from kafka_shim.uuids import uuid_text

    for data_dir in directories:
        if Path(data_dir.partition_path(CLUSTER_METADATA_TOPIC, 0)).is_dir():
            image, _ = replayed(data_dir, 1)
            return {node: [uuid_text(one) for one in broker.log_dirs] for node, broker in image.brokers.items()}
    return {}


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
