"""The work of `kafka-shim storage format`, as Kafka's storage tool does it (StorageTool, Formatter)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from kafka_shim.config import BrokerConfig, ConfigError, read_properties
from kafka_shim.listeners import listeners_of
from kafka_shim.metadata.bootstrap import write_checkpoint
from kafka_shim.metadata.features import KRAFT_VERSION, METADATA_VERSION
from kafka_shim.metadata.formatter import (
    SCRAM_LEVEL,
    DynamicVoter,
    effective_levels,
    feature_records,
    parse_features,
    parse_voters,
    version_name,
    write_quorum_snapshot,
)
from kafka_shim.randomness import Randomness
from kafka_shim.storage.data_dir import DataDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

VOTERS = "controller.quorum.voters"


@dataclass(frozen=True, slots=True)
class Quorum:
    """Of the three options at most one is given."""

    standalone: bool
    no_initial_controllers: bool
    initial_controllers: str | None

    def __bool__(self) -> bool:
        return self.standalone or self.no_initial_controllers or self.initial_controllers is not None


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the command line."""

    directories: tuple[str, ...]
    config: str | None
    cluster_id: str | None
    node_id: int | None
    ignore_formatted: bool
    release_version: str | None
    features: tuple[str, ...]
    quorum: Quorum
    scram: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Formatted:
    """One directory: what it is now, or that it was formatted already."""

    path: str
    node_id: int
    cluster_id: str
    version: str
    # Of Kafka's tool: data directory, metadata directory, dynamic metadata directory and its voter's.
    kind: str
    records: Sequence[Any]
    is_old: bool = False

    def __str__(self) -> str:
        if self.is_old:
            return f"{self.path} is formatted already."
        return (
            f"Formatted {self.path} for node {self.node_id} of cluster {self.cluster_id} with metadata.version "
            f"{self.version}."
        )


def format_all(request: Request, warn: Callable[[str], None] | None = None) -> Iterator[Formatted]:
    """Format the directories. Yields one after the other. `warn` is called for options that are ignored. Raises
    ConfigError, StorageError, OSError."""
    random = Randomness()
    config = _config(request)
    if warn is not None:
        for warning in config.warnings:
            warn(f"{request.config}: {warning}")
    directories = request.directories or _directories(config)
    if request.config is None and not request.directories:
        raise ConfigError("name the directories to format, or a --config that does")
    node_id = config.node_id if request.node_id is None else request.node_id
    voters = _voters(request, config, node_id, random)
    unstable = config.unstable_feature_versions_enable
    levels = effective_levels(
        parse_features(request.features), request.release_version, unstable, is_dynamic=bool(request.quorum)
    )
    records: list[Any] = [*feature_records(levels), *_scram_records(request, levels[METADATA_VERSION], random)]
    metadata_directory = config.metadata_log_dir or directories[0]
    opened: list[DataDir] = []
    try:
        for name in directories:
            data_dir = DataDir(name)
            data_dir.lock()
            opened.append(data_dir)
        cluster_id = _check(opened, request, node_id) or random.uuid_text()
        now_ms = time.time_ns() // 1_000_000
        version = version_name(levels[METADATA_VERSION])
        for name, data_dir in zip(directories, opened, strict=True):
            kind = _kind(request.quorum, node_id, voters) if name == metadata_directory else "data directory"
            result = Formatted(data_dir.path, node_id, cluster_id, version, kind, records, bool(data_dir.meta))
            if result.is_old:
                yield result
                continue
            quorum_voters = voters if name == metadata_directory else {}
            if node_id in quorum_voters:
                data_dir.directory_id = quorum_voters[node_id].directory_id
            # Kafka looks for it in the directory of the metadata log; in the others it is harmless.
            write_checkpoint(Path(data_dir.path), now_ms, records)
            if quorum_voters:
                listener = config.controller_listener_names[0]
                write_quorum_snapshot(data_dir.path, quorum_voters, listener, levels[KRAFT_VERSION], now_ms)
            data_dir.write_meta(cluster_id, node_id, random)
            yield result
    finally:
        for data_dir in opened:
            data_dir.unlock()


def _kind(quorum: Quorum, node_id: int, voters: Mapping[int, DynamicVoter]) -> str:
    if not quorum.standalone and quorum.initial_controllers is None:
        return "metadata directory"
    return "dynamic metadata voter directory" if node_id in voters else "dynamic metadata directory"


def _config(request: Request) -> BrokerConfig:
    if request.config is None:
        return BrokerConfig()
    given = read_properties(request.config)
    return BrokerConfig.parse(given, set(given))


def _directories(config: BrokerConfig) -> tuple[str, ...]:
    more = {config.metadata_log_dir} if config.metadata_log_dir is not None else set()
    return tuple(sorted({*config.log_dirs, *more}))


def _voters(request: Request, config: BrokerConfig, node_id: int, random: Randomness) -> dict[int, DynamicVoter]:
    """Returns the voters of a dynamic quorum, or none. Raises ConfigError with Kafka's message."""
    quorum = request.quorum
    has_static_voters = bool(config.given.get(VOTERS, "").strip())
    if has_static_voters and (quorum.standalone or quorum.initial_controllers is not None):
        raise ConfigError(
            f"You cannot specify {VOTERS} and format the node with --initial-controllers or --standalone. If you want "
            f"to use dynamic quorum, please remove {VOTERS} and specify controller.quorum.bootstrap.servers instead."
        )
    is_controller = "controller" in config.given.get("process.roles", "")
    if is_controller and not has_static_voters and not quorum:
        raise ConfigError(
            f"Because {VOTERS} is not set on this controller, you must specify one of the following: --standalone, "
            "--initial-controllers, or --no-initial-controllers."
        )
    if not (quorum.standalone or quorum.initial_controllers is not None):
        return {}
    if not config.controller_listener_names:
        raise ConfigError("a dynamic quorum needs the controller's listener: controller.listener.names in --config")
    if quorum.initial_controllers is not None:
        return parse_voters(quorum.initial_controllers)
    _, controllers = listeners_of(config)
    if not controllers:
        raise ConfigError("No controller listeners found.")
    first = controllers[0]
    host = first.advertised_host or "localhost"
    voter = DynamicVoter(node_id, host, first.advertised_port or first.port, random.uuid_text())
    return {node_id: voter}


def _scram_records(request: Request, metadata_version: int, random: Randomness) -> list[Any]:
    if not request.scram:
        return []
    if metadata_version < SCRAM_LEVEL:
        raise ConfigError(f"SCRAM is only supported in metadata.version {version_name(SCRAM_LEVEL)} or later.")
    from kafka_shim.security.scram_arguments import parse_add_scram

    return [parse_add_scram(text, random) for text in request.scram]


def _check(opened: list[DataDir], request: Request, node_id: int) -> str | None:
    """Returns the cluster id, given or of a formatted directory. Raises ConfigError if a directory is formatted
    already, unless that is no error, or for another node or cluster."""
    cluster_id = request.cluster_id
    for data_dir in opened:
        meta = data_dir.read_meta()
        if not meta:
            continue
        if not request.ignore_formatted:
            raise ConfigError(
                f"Log directory {data_dir.path} is already formatted. Use --ignore-formatted to ignore this directory "
                "and format the others."
            )
        cluster_id = cluster_id or meta.get("cluster.id")
        for key, wanted in (("cluster.id", cluster_id), ("node.id", str(node_id))):
            if meta.get(key, wanted) != wanted:
                raise ConfigError(
                    f"Invalid {key} in: {data_dir.path}/meta.properties. Expected {wanted}, but read {meta[key]}"
                )
    return cluster_id
