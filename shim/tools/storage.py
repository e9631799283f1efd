"""`kafka-storage.sh`: format log directories, look at them, random ids (Kafka: StorageTool, Formatter)."""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_shim.tools.feature_levels import print_dependencies, print_version_mapping
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import Parser, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    found = Parser(prog="kafka-storage", description="The Kafka storage tool.")
    commands = found.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="Get information about the Kafka log directories on this node.")
    formatting = commands.add_parser("format", help="Format the Kafka log directories on this node.")
    for one in (info, formatting):
        one.add_argument("--config", "-c", required=True, help="The Kafka configuration file to use.")
    formatting.add_argument("--cluster-id", "-t", required=True, help="The cluster ID to use.")
    formatting.add_argument("--add-scram", "-S", action="append", default=[], help="A SCRAM credential to add.")
    formatting.add_argument("--ignore-formatted", "-g", action="store_true", help="Skip formatted directories.")
    formatting.add_argument("--release-version", "-r", help="The release whose features are set.")
    formatting.add_argument("--feature", "-f", action="append", default=[], help="One feature, as feature=level.")
    quorum = formatting.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="A dynamic quorum of this node alone.")
    quorum.add_argument("--no-initial-controllers", "-N", action="store_true", help="Others have the voters.")
    quorum.add_argument("--initial-controllers", "-I", help="The voters: id@host:port:directory,...")
    mapping = commands.add_parser("version-mapping", help="The features of a release.")
    mapping.add_argument("--release-version", "-r", help="The release; default: the latest.")
    dependencies = commands.add_parser("feature-dependencies", help="What levels of features depend on.")
    dependencies.add_argument("--feature", "-f", action="append", required=True, help="feature=version")
    commands.add_parser("random-uuid", help="Print a random UUID.")
    return found


def format_directories(given: argparse.Namespace) -> int:
    from kafka_shim.commands.formatting import Quorum, Request, format_all
    from kafka_shim.config import read_properties

    if not read_properties(given.config).get("process.roles"):
        raise ToolError(
            "The kafka configuration file appears to be for a legacy cluster. Formatting is only supported for "
            "clusters in KRaft mode."
        )
    quorum = Quorum(given.standalone, given.no_initial_controllers, given.initial_controllers)
    request = Request(
        directories=(),
        config=given.config,
        cluster_id=given.cluster_id,
        node_id=None,
        ignore_formatted=given.ignore_formatted,
        release_version=given.release_version,
        features=tuple(given.feature),
        quorum=quorum,
        scram=tuple(given.add_scram),
    )
    has_new = False
    for one in format_all(request):
        if one.is_old:
            continue
        if not has_new:
            print(f"Bootstrap metadata: {bootstrap_text(one.records)}")
        has_new = True
        print(f"Formatting {one.kind} {one.path} with metadata.version {one.version}.")
    if not has_new:
        print("All of the log directories are already formatted.")
    return 0


def bootstrap_text(records: Sequence[object]) -> str:
    """The records of a new metadata log as Kafka prints them."""
    shown, version = [], 0
    for record in records:
        if type(record).__name__ != "FeatureLevelRecord":
            shown.append(f"ApiMessageAndVersion({type(record).__name__}() at version 0)")
            continue
        name, level = record.name, record.feature_level  # type: ignore[attr-defined]
        shown.append(f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)")
        if name == "metadata.version":
            version = level
    return f"BootstrapMetadata(records=[{', '.join(shown)}], metadataVersionLevel={version}, source=format command)"


def info(given: argparse.Namespace) -> int:
    from kafka_shim.config import BrokerConfig, read_properties
    from kafka_shim.storage.data_dir import META_PROPERTIES, DataDir
    from kafka_shim.storage.results import StorageError

    options = read_properties(given.config)
    config = BrokerConfig.parse(options, set(options))
    more = {config.metadata_log_dir} if config.metadata_log_dir is not None else set()
    problems, existing, metas = [], [], []
    for directory in sorted({*config.log_dirs, *more}):
        if not Path(directory).is_dir():
            what = "is not a directory" if Path(directory).exists() else "does not exist"
            problems.append(f"{directory} {what}")
            continue
        existing.append(directory)
        if not Path(directory, META_PROPERTIES).exists():
            problems.append(f"{directory} is not formatted.")
            continue
        try:
            meta = DataDir(directory).read_meta()
        except (StorageError, OSError) as err:
            problems.append(f"Error loading {directory}/{META_PROPERTIES}: {err}")
            continue
        metas.append(meta)
        for key, subject in (("cluster.id", "cluster"), ("node.id", "node")):
            if meta.get(key) != metas[0].get(key):
                problems.append(f"Mismatched {subject} IDs between storage directories.")
                break
    _print_section("Found log director", "y", "ies", existing)
    if metas:
        shown = ", ".join(f"{key}={metas[0][key]}" for key in sorted(metas[0]))
        print(f"Found metadata: {{{shown}}}\n")
    _print_section("Found problem", "", "s", problems)
    return 1 if problems else 0


def _print_section(title: str, one: str, several: str, lines: list[str]) -> None:
    if lines:
        print(f"{title}{one if len(lines) == 1 else several}:")
        print("".join(f"  {line}\n" for line in lines))


def version_mapping(given: argparse.Namespace) -> int:
    print_version_mapping(given.release_version)
    return 0


def feature_dependencies(given: argparse.Namespace) -> int:
    print_dependencies(given.feature)
    return 0


def random_uuid(given: argparse.Namespace) -> int:
    from kafka_shim.randomness import Randomness

    print(Randomness().uuid_text())
    return 0


COMMANDS = {
    "info": info,
    "format": format_directories,
    "version-mapping": version_mapping,
    "feature-dependencies": feature_dependencies,
    "random-uuid": random_uuid,
}


def main(words: Sequence[str]) -> int:
    """Run the tool. Returns the exit status; wrong words raise SystemExit."""
    from kafka_shim.config import ConfigError
    from kafka_shim.storage.results import StorageError

    given = parser().parse_args(words)
    try:
        return COMMANDS[given.command](given)
    except (ToolError, ConfigError, StorageError) as err:
        print(err, file=sys.stderr)
        return 1


if __name__ == "__main__":
    leave(main)
