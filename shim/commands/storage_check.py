"""`kafka-shim storage check` and `storage upgrade-to-kafka`: is the directory whole, and how does Apache Kafka take it
over."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import click

from kafka_shim.commands.directories import Directory, fail, opened, reason_of, replayed
from kafka_shim.config import escaped
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.plurals import counted
from kafka_shim.storage.data_dir import META_PROPERTIES
from kafka_shim.storage.names import partition_of
from kafka_shim.storage.results import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kafka_shim.storage.check import Report

DEFAULT_DIRECTORY = "./kafka-shim-data"
# The options of a single Kafka node, besides its listeners.
OF_ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
CHECK_EXAMPLES = """\b
Examples:
  kafka-shim storage check ./kafka-shim-data
  kafka-shim storage check /data/1 /data/2 --json

The exit status is 1 if something is damaged; what the next start repairs by itself is no damage."""
UPGRADE_EXAMPLES = """\b
Examples:
  kafka-shim storage upgrade-to-kafka ./kafka-shim-data
  kafka-shim storage upgrade-to-kafka /data/1 /data/2 --config-file kafka.properties --listener 127.0.0.1:9092"""


@click.command(
    help="Read all of data directories that no broker has open: batches and their CRCs, offsets, indexes, producer "
    "snapshots, checkpoints; replay the metadata log. Changes nothing. Without a name: ./kafka-shim-data.",
    epilog=CHECK_EXAMPLES,
)
@click.argument("directories", nargs=-1, type=Directory())
@click.option("--json", "as_json", is_flag=True, help="one JSON array, an object for each directory")
def check(directories: tuple[str, ...], as_json: bool) -> None:
    reports = [_checked(name) for name in directories or (DEFAULT_DIRECTORY,)]
    if as_json:
        click.echo(json.dumps([{**asdict(one), "is_damaged": one.is_damaged} for one in reports], indent=2))
    else:
        for report in reports:
            _print(report)
    if any(report.is_damaged for report in reports):
        raise click.exceptions.Exit(1)


def _checked(directory: str) -> Report:
    from kafka_shim.storage.check import check_directory, log_bytes

    _require_data(directory)
    with _held(directory):
        try:
            # The bar is for people; it goes to stderr.
            with click.progressbar(
                length=log_bytes(directory),
                label=f"Reading {directory}",
                file=sys.stderr,
                hidden=not sys.stderr.isatty(),
            ) as bar:
                report = check_directory(directory, bar.update)
            _check_metadata(report)
        except OSError as err:
            fail(f"{err.filename or directory} cannot be read: {err.strerror}")
        return report


def _require_data(directory: str) -> None:
    """A directory that holds nothing of Kafka is a mistake, not a damage. No lock is left in it."""
    if not Path(directory).is_dir():
        fail(f"{directory} is no directory")
    entries = list(Path(directory).iterdir())
    if META_PROPERTIES not in [entry.name for entry in entries] and not any(map(_is_partition, entries)):
        fail(
            f"{directory} is no data directory: it has no {META_PROPERTIES} and no folders of partitions (name one of "
            f"log.dirs; `serve` makes ./kafka-shim-data)"
        )


def _is_partition(path: Path) -> bool:
    """Whether it is the folder of a partition, which no other program's folder with a number at its end is."""
    return partition_of(path.name) is not None and any(path.glob("*.log"))


def _check_metadata(report: Report) -> None:
    """Replay the metadata log as a start does."""
    from kafka_shim.metadata.check import first_bad_record
    from kafka_shim.storage.check import DAMAGE, Finding

    folder = Path(report.directory) / f"{CLUSTER_METADATA_TOPIC}-0"
    if folder.is_dir() and (found := first_bad_record(folder)) is not None:
        path, text = found
        report.findings.append(Finding(DAMAGE, str(path), text))


@contextmanager
def _held(directory: str) -> Iterator[Any]:
    """The directory, locked: no broker has it open."""
    from kafka_shim.storage.data_dir import DataDir

    data_dir = DataDir(directory)
    opened(data_dir, reads_only=True)
    try:
        yield data_dir
    finally:
        data_dir.unlock()


def _print(report: Report) -> None:
    click.echo(
        f"{report.directory}: {counted(report.partitions, 'partition')}, {counted(report.segments, 'segment')}, "
        f"{counted(report.batches, 'batch', 'batches')}, {counted(report.read_bytes, 'byte')}; "
        f"the last stop was {'clean' if report.was_clean else 'not clean'}"
    )
    for finding in report.findings:
        click.echo(f"{finding.severity}: {finding.path}: {finding.text}")
    damages = sum(one.severity == "damage" for one in report.findings)
    click.echo(f"{damages} damaged" if damages else "whole")


@click.command(
    name="upgrade-to-kafka",
    help="Check the data directories of a node and write the server.properties with which Apache Kafka goes on with "
    "them. Name all of log.dirs.",
    epilog=UPGRADE_EXAMPLES,
)
@click.argument("directories", nargs=-1, type=Directory())
@click.option("--config-file", default="./server.properties", show_default=True, metavar="FILE", help="what is written")
@click.option("--listener", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT", help="for clients")
@click.option("--controller-listener", default="127.0.0.1:9093", show_default=True, metavar="HOST:PORT")
@click.option("--force", is_flag=True, help="replace FILE if it exists")
@click.option("--json", "as_json", is_flag=True, help="one JSON object: the properties and the commands")
def upgrade_to_kafka(
    directories: tuple[str, ...],
    config_file: str,
    listener: str,
    controller_listener: str,
    force: bool,
    as_json: bool,
) -> None:
    directories = directories or (DEFAULT_DIRECTORY,)
    path = Path(config_file)
    if path.exists() and not force:
        fail(f"{config_file} exists: --force replaces it, --config-file FILE names another")
    lost = [one for name in directories if "," in (one := str(Path(name).resolve())) or one != one.strip()]
    if lost:
        fail(f"log.dirs cannot name {lost[0]!r}, which has a comma or ends with a space: rename it first")
    reports = [_checked(name) for name in directories]
    damaged = [report.directory for report in reports if report.is_damaged]
    if damaged:
        fail(f"{', '.join(damaged)} is damaged: `kafka-shim storage check` says where")
    properties, acls = _properties(directories, listener, controller_listener)
    is_clean = all(report.was_clean for report in reports)
    notes = _notes(directories, acls, is_clean=is_clean)
    content = "".join(f"{name}={escaped(value)}\n" for name, value in properties.items())
    try:
        path.write_text(content)
    except OSError as err:
        fail(f"{config_file} cannot be written: {err.strerror}")
    commands = [f"bin/kafka-server-start.sh {shlex.quote(os.fspath(path.resolve()))}"]
    if as_json:
        found = {
            "configFile": str(path),
            "properties": properties,
            "notes": notes,
            "commands": commands,
            "wasClean": is_clean,
        }
        click.echo(json.dumps(found, indent=2))
        return
    stop = "clean" if is_clean else "not clean: Kafka recovers the logs at its start"
    click.echo(f"Wrote {config_file}. The last stop was {stop}.")
    for note in notes:
        click.echo(note)
    click.echo("Start Apache Kafka 4.3.1 or newer, in its folder:")
    for command in commands:
        click.echo(f"  {command}")


def _notes(directories: tuple[str, ...], acls: int, *, is_clean: bool) -> list[str]:
    """What to do before Kafka is started, beside the file that was written. `acls` is how many are stored."""
    notes = ["The broker's own options are not in it: add those of its configuration file and of -o, TLS and SASL too."]
    if acls:
        notes.append(
            f"{counted(acls, 'ACL')} {'is' if acls == 1 else 'are'} stored: until authorizer.class.name and super.users"
            " are in the file, Kafka lets every client do everything."
        )
    if not is_clean:
        notes.append(
            "Serve the directory once more and stop the broker with SIGTERM first: a transaction that was being ended"
            " when it was killed may stay open for ever, as Kafka does not write its markers at such a start."
        )
    elif prepared := sum(map(_prepared, directories)):
        notes.append(
            f"{counted(prepared, 'transaction')} {'is' if prepared == 1 else 'are'} being ended, and may stay open for"
            " ever, as Kafka does not write their markers at its start: first serve the directory until `kafka-shim"
            " transactions list` shows none that is PrepareCommit or PrepareAbort; `transactions force-terminate`"
            " ends one that stays so."
        )
    return notes


def _prepared(directory: str) -> int:
    """How many transactions of a whole directory have an end that is decided and not complete. What a start skips
    counts for none."""
    from struct import error as StructError

    from kafka_shim.cext.batch import BatchError, scan_all
    from kafka_shim.cext.records import iterate
    from kafka_shim.storage.regular_files import read_file
    from kafka_shim.txn.records import decode_key, decode_value

    newest: dict[str, bool] = {}
    for folder in Path(directory).glob(f"{TRANSACTION_STATE_TOPIC}-*"):
        for path in sorted(folder.glob("*.log")) if partition_of(folder.name) is not None else ():
            content = read_file(os.fspath(path))
            for batch in scan_all(content):
                with suppress(BatchError):
                    for record in iterate(content, batch.position, batch.position + batch.size_bytes):
                        if batch.is_control or record.key is None:
                            continue
                        with suppress(ValueError, StructError):
                            name, value = decode_key(record.key), record.value
                            newest[name] = value is not None and decode_value(name, value).is_prepared
    return sum(newest.values())


def _properties(directories: tuple[str, ...], listener: str, controller_listener: str) -> tuple[dict[str, str], int]:
    """The options of one combined node on these directories, and how many ACLs are stored there."""
    from kafka_shim.metadata.features import METADATA_VERSION, SUPPORTED

    metas = {}
    found, metadata_directory = None, directories[0]
    try:
        for directory in directories:
            with _held(directory) as data_dir:
                metas[directory] = data_dir.read_meta()
                if Path(data_dir.partition_path(CLUSTER_METADATA_TOPIC, 0)).is_dir():
                    found = replayed(data_dir, data_dir.node_id or 1)
                    metadata_directory = directory
    except (StorageError, OSError) as err:
        fail(reason_of(err))
    if len({(meta.get("cluster.id"), meta.get("node.id")) for meta in metas.values()}) != 1:
        fail("the directories belong to different nodes")
    unnamed = [directory for directory, meta in metas.items() if "node.id" not in meta]
    if unnamed:
        fail(f"{unnamed[0]}/{META_PROPERTIES} has no node.id: add the line node.id=NUMBER with the broker's own")
    if found is None:
        fail(f"none of the directories has {CLUSTER_METADATA_TOPIC}-0: name all of log.dirs")
    image, log = found
    level = image.features.get(METADATA_VERSION, 0)
    if level > SUPPORTED[METADATA_VERSION][1]:
        fail(f"metadata.version {level} is not of a released Kafka: run `kafka-features downgrade` first")
    node_id = next(iter(metas.values()))["node.id"]
    # A dynamic quorum has its voters in the log.
    quorum = (
        {"controller.quorum.bootstrap.servers": controller_listener}
        if log.voters
        else {"controller.quorum.voters": f"{node_id}@{controller_listener}"}
    )
    properties = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        **quorum,
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller_listener}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": ",".join(str(Path(directory).resolve()) for directory in directories),
        **OF_ONE_NODE,
    }
    if metadata_directory != directories[0]:
        properties["metadata.log.dir"] = str(Path(metadata_directory).resolve())
    return properties, len(image.acls)
