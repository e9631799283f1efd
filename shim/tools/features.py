"""`kafka-features.sh`: describe, upgrade, downgrade and disable features (Kafka: FeatureCommand)."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.metadata.features import METADATA_VERSION, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from kafka_shim.metadata.formatter import FIRST_LEVEL, VERSIONS, release_level, version_name
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.feature_levels import NAMES, levels_of_release, print_dependencies, print_version_mapping
from kafka_shim.tools.options import connect_to
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import Parser, ToolError, feature_level, run_command
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from kafka_shim.client.cluster import Cluster

TIMEOUT_MS = 60_000


def parser() -> argparse.ArgumentParser:
    found = Parser(prog="kafka-features", description="This tool manages feature flags in Kafka.")
    bootstrap = found.add_mutually_exclusive_group()
    bootstrap.add_argument("--bootstrap-server", help="The brokers to connect to.")
    bootstrap.add_argument("--bootstrap-controller", help="The controllers to connect to.")
    found.add_argument("--command-config", help="Properties of the client.")
    commands = found.add_subparsers(dest="command", required=True)
    describing = commands.add_parser("describe", help="Describes the current active feature flags.")
    describing.add_argument("--node-id", type=int, help="The node to ask.")
    for name in ("upgrade", "downgrade"):
        one = commands.add_parser(name, help=f"{name.capitalize()} one or more feature flags.")
        one.add_argument("--metadata", help="DEPRECATED -- The level of the metadata, as 4.0-IV0.")
        one.add_argument("--release-version", help="The release to whose levels all features go.")
        one.add_argument("--feature", action="append", help="A feature and its level, as metadata.version=25.")
    disabling = commands.add_parser("disable", help="Disable one or more feature flags.")
    disabling.add_argument("--feature", action="append", help="A feature flag to disable.")
    for name in ("upgrade", "downgrade", "disable"):
        one = commands.choices[name]
        if name != "upgrade":
            one.add_argument("--unsafe", action="store_true", help="Even if it may destroy metadata.")
        one.add_argument("--dry-run", action="store_true", help="Validate, but change nothing.")
    mapping = commands.add_parser("version-mapping", help="The features of a release.")
    mapping.add_argument("--release-version", help="The release; default: the latest.")
    dependencies = commands.add_parser("feature-dependencies", help="What levels of features depend on.")
    dependencies.add_argument("--feature", action="append", required=True, help="feature=version")
    return found


def _connect(given: argparse.Namespace) -> Cluster:
    address = given.bootstrap_server or given.bootstrap_controller
    if not address:
        raise ToolError("You must specify either --bootstrap-controller or --bootstrap-server.")
    return connect_to(address, given.command_config, "kafka-features")


def describe(given: argparse.Namespace) -> None:
    with _connect(given) as cluster:
        if given.node_id is not None and given.node_id < 0:
            raise ToolError(f"Invalid node id {given.node_id}: must be non-negative.")
        connection = cluster.any() if given.node_id is None else cluster.to(given.node_id)
        asked = make("ApiVersions", client_software_name="kafka-shim", client_software_version="1")
        answer = connection.request(asked)
        check(answer.error_code)
    finalised = {one.name: one.max_version_level for one in answer.finalized_features}
    epoch = answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else "-"
    for one in sorted(answer.supported_features, key=lambda each: each.name):
        cells = (
            f"Feature: {one.name:<40}",
            f"SupportedMinVersion: {_level(one.name, one.min_version):<15}",
            f"SupportedMaxVersion: {_level(one.name, one.max_version):<15}",
            f"FinalizedVersionLevel: {_level(one.name, finalised.get(one.name, 0)):<15}",
            f"Epoch: {epoch}",
        )
        print("  ".join(cells))


def _level(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    return version_name(level) if 0 <= level - FIRST_LEVEL < len(VERSIONS) else f"UNKNOWN {level}"


def upgrade(given: argparse.Namespace) -> None:
    _change(given, "upgrade", UPGRADE)


def downgrade(given: argparse.Namespace) -> None:
    _change(given, "downgrade", UNSAFE_DOWNGRADE if given.unsafe else SAFE_DOWNGRADE)


def disable(given: argparse.Namespace) -> None:
    levels: dict[str, int] = {}
    for name in given.feature or ():
        _add(levels, name, 0)
    _update(given, "disable", levels, UNSAFE_DOWNGRADE if given.unsafe else SAFE_DOWNGRADE)


def _change(given: argparse.Namespace, action: str, kind: int) -> None:
    levels: dict[str, int] = {}
    if given.release_version is not None:
        if given.metadata is not None or given.feature is not None:
            raise ToolError("Can not specify `release-version` with other feature flags.")
        found = levels_of_release(given.release_version)
        levels[METADATA_VERSION] = found[METADATA_VERSION]
        # A request to upgrade a feature to 0 would be refused.
        levels.update({name: found[name] for name in NAMES if kind != UPGRADE or found[name] > 0})
    else:
        if given.metadata is not None:
            print(" `metadata` flag is deprecated and may be removed in a future release.")
            levels[METADATA_VERSION] = release_level(given.metadata, unstable=True)
        for text in given.feature or ():
            name, level = feature_level(text)
            if level < 1 and kind == UPGRADE:
                raise ToolError(
                    "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided "
                    f"maxVersionLevel:{level} is < 1."
                )
            _add(levels, name, level)
    _update(given, action, levels, kind)


def _add(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise ToolError(f"Feature {name} was specified more than once.")
    levels[name] = level


def _update(given: argparse.Namespace, action: str, levels: dict[str, int], kind: int) -> None:
    with _connect(given) as cluster:
        if not levels:
            raise ToolError(f"You must specify at least one feature to {action}")
        updates = [
            {"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level in levels.items()
        ]
        asked = make("UpdateFeatures", timeout_ms=TIMEOUT_MS, feature_updates=updates, validate_only=given.dry_run)
        answer = cluster.any().request(asked)
    # Since v2 one error is for all.
    errors = {name: (answer.error_code, answer.error_message) for name in levels}
    if not answer.error_code:
        errors |= {one.feature: (one.error_code, one.error_message) for one in answer.results}
    failed = 0
    for name, (code, reason) in sorted(errors.items()):
        if code:
            failed += 1
            goal = f"disable {name}" if action == "disable" else f"{action} {name} to {levels[name]}"
            said = message_of(RequestError(code, reason))
            print(f"{'Can not' if given.dry_run else 'Could not'} {goal}. {said}")
        else:
            done = "disabled." if action == "disable" else f"{action}d to {levels[name]}."
            print(f"{name} {'can be' if given.dry_run else 'was'} {done}")
    if failed:
        raise ToolError(f"{failed} out of {len(levels)} operation(s) failed.")


def version_mapping(given: argparse.Namespace) -> None:
    print_version_mapping(given.release_version)


def feature_dependencies(given: argparse.Namespace) -> None:
    print_dependencies(given.feature)


COMMANDS = {
    "describe": describe,
    "upgrade": upgrade,
    "downgrade": downgrade,
    "disable": disable,
    "version-mapping": version_mapping,
    "feature-dependencies": feature_dependencies,
}


def main(words: Sequence[str]) -> int:
    """Run the tool. Returns the exit status; wrong words raise SystemExit."""
    return run_command(parser(), COMMANDS, words)


if __name__ == "__main__":
    leave(main)
