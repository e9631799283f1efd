"""`kafka-metadata-quorum.sh`: describe the quorum, add and remove controllers (Kafka: MetadataQuorumCommand)."""

from __future__ import annotations

import binascii
import time
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from pathlib import Path

from kafka_shim.client.requests import make
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.ports import HIGHEST_PORT, parse_port
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.tools.options import connect_to
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import Parser, ToolError, print_table, run_command
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster

TIMEOUT_MS = 60_000
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Quorum:
    """The answer to DescribeQuorum: the one partition, the nodes' listeners as `NAME://HOST:PORT`."""

    partition: Any
    endpoints: Mapping[int, list[str]]

    @property
    def leader(self) -> Any:
        """Raises ToolError if the leader is no voter."""
        for voter in self.partition.current_voters:
            if voter.replica_id == self.partition.leader_id:
                return voter
        raise ToolError("No value present")


def parser() -> argparse.ArgumentParser:
    found = Parser(prog="kafka-metadata-quorum", description="This tool describes kraft metadata quorum status.")
    bootstrap = found.add_mutually_exclusive_group(required=True)
    bootstrap.add_argument("--bootstrap-server", help="The brokers to connect to.")
    bootstrap.add_argument("--bootstrap-controller", help="The controllers to connect to.")
    found.add_argument("--command-config", help="Properties of the client, and of the controller to add.")
    commands = found.add_subparsers(dest="command", required=True)
    describing = commands.add_parser("describe", help="Describe the metadata quorum info")
    describing.add_argument("--status", action="store_true", help="A short summary of the quorum status.")
    describing.add_argument("--replication", action="store_true", help="The status of replication.")
    describing.add_argument("--human-readable", action="store_true", help="Times as ages.")
    adding = commands.add_parser("add-controller", help="Add a controller to the KRaft controller cluster")
    removing = commands.add_parser("remove-controller", help="Remove a controller from the KRaft controller cluster")
    removing.add_argument("--controller-id", "-i", type=int, required=True, help="The id of the controller.")
    removing.add_argument("--controller-directory-id", "-d", required=True, help="Its directory ID.")
    for one in (adding, removing):
        one.add_argument("--dry-run", action="store_true", help="Print what would be done, but do not do it.")
    return found


def _connect(given: argparse.Namespace) -> Cluster:
    path = given.command_config
    if path is not None and not Path(path).exists():
        raise ToolError(f"Properties file {path} does not exists!")
    return connect_to(given.bootstrap_server or given.bootstrap_controller, path, "kafka-metadata-quorum")


def _quorum(cluster: Cluster) -> Quorum:
    asked = {"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    answer = cluster.any().request(make("DescribeQuorum", topics=[asked]))
    check(answer.error_code, answer.error_message)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code, partition.error_message)
    return Quorum(partition, {node.node_id: [_endpoint(one) for one in node.listeners] for node in answer.nodes})


def _endpoint(listener: Any) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"


def describe(given: argparse.Namespace) -> None:
    if given.status and given.replication:
        raise ToolError("Only one of --status or --replication should be specified with describe sub-command")
    if not given.status and not given.replication:
        raise ToolError("One of --status or --replication must be specified with describe sub-command")
    if given.status and given.human_readable:
        raise ToolError("The option --human-readable is only supported along with --replication")
    with _connect(given) as cluster:
        cluster_id = cluster.any().request(make("DescribeCluster")).cluster_id if given.status else ""
        quorum = _quorum(cluster)
    if given.replication:
        _print_replication(quorum, given.human_readable)
    else:
        _print_status(quorum, cluster_id)


def _print_replication(quorum: Quorum, is_human: bool) -> None:
    leader = quorum.leader
    followers = [one for one in quorum.partition.current_voters if one is not leader]
    rows = [
        (
            one.replica_id,
            uuid_text(one.replica_directory_id),
            one.log_end_offset,
            leader.log_end_offset - one.log_end_offset,
            _time(one.last_fetch_timestamp, is_human),
            _time(one.last_caught_up_timestamp, is_human),
            status,
        )
        for status, replicas in (
            ("Leader", [leader]),
            ("Follower", followers),
            ("Observer", quorum.partition.observers),
        )
        for one in replicas
    ]
    print_table(
        ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"), rows
    )


def _time(timestamp_ms: int, is_human: bool) -> str:
    if timestamp_ms == -1 or not is_human:
        return str(timestamp_ms)
    now_ms = time.time_ns() // 1_000_000
    if not 0 < timestamp_ms <= now_ms:
        raise ToolError("Error while computing relative time, possible drift in system clock.")
    return f"{now_ms - timestamp_ms} ms ago"


def _print_status(quorum: Quorum, cluster_id: str) -> None:
    leader, partition = quorum.leader, quorum.partition
    last = min(partition.current_voters, key=lambda one: one.log_end_offset)
    if last is leader:
        lag_ms = 0
    elif leader.last_caught_up_timestamp >= 0 and last.last_caught_up_timestamp >= 0:
        lag_ms = leader.last_caught_up_timestamp - last.last_caught_up_timestamp
    else:
        lag_ms = -1
    for name, value in (
        ("ClusterId", cluster_id),
        ("LeaderId", partition.leader_id),
        ("LeaderEpoch", partition.leader_epoch),
        ("HighWatermark", partition.high_watermark),
        ("MaxFollowerLag", leader.log_end_offset - last.log_end_offset),
        ("MaxFollowerLagTimeMs", lag_ms),
        ("CurrentVoters", _replicas(quorum, partition.current_voters)),
        ("CurrentObservers", _replicas(quorum, partition.observers)),
    ):
        print(f"{name + ':':<23} {value}")


def _replicas(quorum: Quorum, replicas: Iterable[Any]) -> str:
    shown = []
    for one in replicas:
        parts = [f'"id": {one.replica_id}']
        if one.replica_directory_id != ZERO_UUID:
            parts.append(f'"directoryId": "{uuid_text(one.replica_directory_id)}"')
        endpoints = ", ".join(f'"{endpoint}"' for endpoint in quorum.endpoints.get(one.replica_id, ()))
        if endpoints:
            parts.append(f'"endpoints": [{endpoints}]')
        shown.append("{" + ", ".join(parts) + "}")
    return f"[{', '.join(shown)}]"


def add_controller(given: argparse.Namespace) -> None:
    from kafka_shim.config import read_properties

    if given.command_config is None:
        raise ToolError(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    with _connect(given) as cluster:
        options = read_properties(given.command_config)
        node_id = _node_id(options)
        directory_id = _directory_id(options)
        listeners = _listeners(options)
        if not given.dry_run:
            asked = make(
                "AddRaftVoter",
                cluster_id=None,
                timeout_ms=TIMEOUT_MS,
                voter_id=node_id,
                voter_directory_id=directory_id,
                listeners=[dict(zip(("name", "host", "port"), one, strict=True)) for one in listeners],
            )
            answer = cluster.any().request(asked)
            check(answer.error_code, answer.error_message)
    shown = ", ".join(
        f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}" for name, host, port in listeners
    )
    print(
        f"{'DRY RUN of adding' if given.dry_run else 'Added'} controller {node_id} with directory id "
        f"{uuid_text(directory_id)} and endpoints: {shown}"
    )


def _node_id(options: Mapping[str, str]) -> int:
    hint = "Is this a valid controller configuration file?"
    if "node.id" not in options:
        raise ToolError(f"node.id not found in configuration file. {hint}")
    try:
        node_id = int(options["node.id"])
    except ValueError:
        raise ToolError(f'For input string: "{options["node.id"]}"') from None
    if node_id < 0:
        raise ToolError(f"node.id was negative in configuration file. {hint}")
    if "controller" not in options.get("process.roles", ""):
        raise ToolError(f"process.roles did not contain 'controller' in configuration file. {hint}")
    return node_id


def _directory_id(options: Mapping[str, str]) -> bytes:
    from kafka_shim.config import read_properties

    directory = options.get("metadata.log.dir") or options.get("log.dirs", "").strip().split(",")[0]
    if not directory:
        raise ToolError(
            "Neither metadata.log.dir nor log.dirs were found. Is this a valid controller configuration file?"
        )
    path = Path(directory, "meta.properties")
    if not path.exists():
        raise ToolError(f"Unable to read meta.properties from {directory}")
    text = read_properties(str(path)).get("directory.id")
    if text is None:
        raise ToolError(f"No directory id found in {directory}")
    return _uuid(text, "directory.id")


def _listeners(options: Mapping[str, str]) -> list[tuple[str, str, int]]:
    known = {}
    for key in ("listeners", "advertised.listeners"):
        for text in filter(None, (one.strip() for one in options.get(key, "").split(","))):
            name, _, address = text.partition("://")
            host, _, number = address.rpartition(":")
            port = parse_port(number)
            if port is None or port > HIGHEST_PORT:
                raise ToolError(f"Unable to parse {text} to a broker endpoint")
            known[name.upper()] = name.upper(), host.strip("[]") or "localhost", port
    names = options.get("controller.listener.names")
    if names is None:
        raise ToolError("controller.listener.names was not found. Is this a valid controller configuration file?")
    found = []
    for name in (one.strip().upper() for one in names.split(",")):
        if name not in known:
            raise ToolError(f"Cannot find information about controller listener name: {name}")
        found.append(known[name])
    return found


def remove_controller(given: argparse.Namespace) -> None:
    with _connect(given) as cluster:
        if given.controller_id < 0:
            raise ToolError(f"Invalid negative --controller-id: {given.controller_id}")
        directory_id = _uuid(given.controller_directory_id, "--controller-directory-id")
        if not given.dry_run:
            asked = make(
                "RemoveRaftVoter",
                cluster_id=None,
                voter_id=given.controller_id,
                voter_directory_id=directory_id,
            )
            answer = cluster.any().request(asked)
            check(answer.error_code, answer.error_message)
    print(
        f"{'DRY RUN of removing ' if given.dry_run else 'Removed '} KRaft controller {given.controller_id} with "
        f"directory id {uuid_text(directory_id)}"
    )


def _uuid(text: str, name: str) -> bytes:
    try:
        found = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != ID_BYTES:
        raise ToolError(f"Failed to parse {name}: {text} is not a base64 UUID of {ID_BYTES} bytes")
    return found


COMMANDS = {"describe": describe, "add-controller": add_controller, "remove-controller": remove_controller}


def main(words: Sequence[str]) -> int:
    """Run the tool. Returns the exit status; wrong words raise SystemExit."""
    return run_command(parser(), COMMANDS, words)


if __name__ == "__main__":
    leave(main)
