"""The initial features and voters of a data directory, from the options of Kafka's storage tool (Kafka: Formatter,
MetadataVersion, DynamicVoters).
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from kafka_shim.config import ConfigError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.metadata.features import (
    DEPENDENCIES,
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
    UNSTABLE,
)
from kafka_shim.metadata.log import snapshot_bytes
from kafka_shim.protocol.record_frames import ControlType, encode_control
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.kraft_version_record import KRaftVersionRecord
from kafka_shim.protocol.records.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.names import METADATA_SNAPSHOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The names of the levels of metadata.version, from level 7 on.
FIRST_LEVEL = 7
VERSIONS = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1"),
    *("3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0"),
    *("4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0"),
)
# feature -> (metadata.version, level): the level that a directory gets from this release on.
_DEFAULTS = {
    ELR_VERSION: (26, 1),
    GROUP_VERSION: (22, 1),
    SHARE_VERSION: (28, 1),
    STREAMS_VERSION: (29, 1),
    TRANSACTION_VERSION: (24, 2),
}
SCRAM_LEVEL = 11


@dataclass(frozen=True, slots=True)
class DynamicVoter:
    """One voter of `--initial-controllers`."""

    node_id: int
    host: str
    port: int
    directory_id: str

    @classmethod
    def parse(cls, text: str) -> DynamicVoter:
        """Return the voter of `ID@HOST:PORT:DIRECTORY`, IPv6 in brackets. Raises ConfigError with Kafka's message."""
        number, at, rest = text.strip().partition("@")
        if not at:
            raise ConfigError("No @ found in dynamic voter string.")
        if not number:
            raise ConfigError("Invalid @ at beginning of dynamic voter string.")
        node_id = _integer(number, "Failed to parse node id in dynamic voter string.")
        if node_id < 0:
            raise ConfigError(f"Invalid negative node id {node_id} in dynamic voter string.")
        if not rest:
            raise ConfigError("No hostname found after node id.")
        if rest.startswith("["):
            host, bracket, rest = rest[1:].partition("]")
            if not bracket:
                raise ConfigError("Hostname began with left bracket, but no right bracket was found.")
        else:
            host, colon, rest = rest.partition(":")
            if not colon:
                raise ConfigError("No colon following hostname could be found.")
            rest = ":" + rest
        if not rest.startswith(":"):
            raise ConfigError("Port section must start with a colon.")
        port_text, colon, directory_id = rest[1:].partition(":")
        if not colon:
            raise ConfigError("No colon following port could be found.")
        port = _integer(port_text, "Failed to parse port in dynamic voter string.")
        if not 0 <= port <= 65535:
            raise ConfigError(f"Invalid port {port} in dynamic voter string.")
        if len(_uuid(directory_id)) != 16:
            raise ConfigError("Failed to parse directory ID in dynamic voter string.")
        return cls(node_id, host, port, directory_id)


def parse_voters(text: str) -> dict[int, DynamicVoter]:
    """Return the voters of `--initial-controllers` by node id. Raises ConfigError with Kafka's message."""
    voters: dict[int, DynamicVoter] = {}
    for part in text.strip().split(","):
        if part:
            voter = DynamicVoter.parse(part)
            if voter.node_id in voters:
                raise ConfigError(f"Node id {voter.node_id} was specified more than once.")
            voters[voter.node_id] = voter
    if not voters:
        raise ConfigError("No voters given.")
    return dict(sorted(voters.items()))


def parse_features(texts: Iterable[str]) -> dict[str, int]:
    """Return the levels of `--feature NAME=LEVEL`. Raises ConfigError with Kafka's message."""
    levels = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals:
            raise ConfigError(f"Can't parse feature=level string {text}: equals sign not found.")
        levels[name.strip()] = _integer(
            level.strip(), f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        )
    return levels


def version_name(level: int) -> str:
    """Return Kafka's name of a level of metadata.version, such as 4.3-IV0."""
    return VERSIONS[level - FIRST_LEVEL]


def release_level(text: str, unstable: bool) -> int:
    """Return the metadata.version of `--release-version`, such as 3.9, 3.9.1 or 3.7-IV2. Raises ConfigError."""
    newest = _newest(unstable)
    key = ".".join(text.split(".")[:2])
    names = {name: level for level, name in enumerate(VERSIONS, FIRST_LEVEL) if level <= newest}
    stable = SUPPORTED[METADATA_VERSION][1]
    releases = {name.partition("-")[0]: level for name, level in names.items() if level <= stable}
    level = {**names, **releases}.get(key)
    if level is None:
        raise ConfigError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(names)}")
    return level


def effective_levels(
    given: Mapping[str, int], release: str | None, unstable: bool, *, is_dynamic: bool
) -> dict[str, int]:
    """Return the level of every feature, in the order of their names with metadata.version first. `given`: those of
    `--feature`. `is_dynamic`: the quorum is a dynamic one (kraft.version 1). Raises ConfigError with Kafka's
    message."""
    level = _newest(unstable)
    if METADATA_VERSION in given:
        if release is not None:
            raise ConfigError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
        level = given[METADATA_VERSION]
        if not FIRST_LEVEL <= level < FIRST_LEVEL + len(VERSIONS):
            raise ConfigError(f"No MetadataVersion with feature level {level}")
        if level > _newest(unstable):
            raise ConfigError(f"metadata.version {version_name(level)} is not yet stable.")
    elif release is not None:
        level = release_level(release, unstable)
    names = sorted(SUPPORTED.keys() - {METADATA_VERSION})
    unknown = next((name for name in given if name not in SUPPORTED), None)
    if unknown is not None:
        raise ConfigError(f"Unsupported feature: {unknown}. Supported features are: {', '.join(names)}")
    levels = {METADATA_VERSION: level}
    for name in names:
        if name == KRAFT_VERSION:
            levels[name] = _kraft_level(given.get(name), is_dynamic)
        else:
            since, default = _DEFAULTS[name]
            levels[name] = given.get(name, default if level >= since else 0)
    for name in names:
        _check_level(name, levels)
    return levels


def _kraft_level(given: int | None, is_dynamic: bool) -> int:
    if given is None:
        return int(is_dynamic)
    if given == 0 and is_dynamic:
        raise ConfigError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags --standalone, "
            "--initial-controllers, or --no-initial-controllers is used. For dynamic controllers support, try removing "
            "the --feature flag for kraft.version."
        )
    if given != 0 and not is_dynamic:
        raise ConfigError(
            f"Cannot set kraft.version to {given} unless controller.quorum.voters is empty and one of the flags "
            "--standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers "
            "support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    return given


def _check_level(name: str, levels: Mapping[str, int]) -> None:
    level = levels[name]
    lowest, highest = SUPPORTED[name]
    if not lowest <= level <= highest:
        raise ConfigError(f"No feature:{name} with feature level {level}")
    for other, needed in DEPENDENCIES.get((name, level), {}).items():
        if levels[other] < needed:
            raise ConfigError(f"{name} could not be set to {level} because it depends on {other} level {needed}")


def feature_records(levels: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """Return the records of these levels for `bootstrap.checkpoint`. kraft.version is none of the metadata."""
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if name != KRAFT_VERSION and level > 0
    ]


def write_quorum_snapshot(
    directory: str, voters: Mapping[int, DynamicVoter], listener: str, kraft_version: int, now_ms: int
) -> None:
    """Write the snapshot at offset 0 with the voters of a dynamic quorum. `listener`: the controller's. Raises
    OSError."""
    lowest, highest = SUPPORTED[KRAFT_VERSION]
    record = VotersRecord(
        voters=[
            Voter(
                voter_id=voter.node_id,
                voter_directory_id=_uuid(voter.directory_id),
                endpoints=[Endpoint(name=listener.upper(), host=_java_host(voter.host), port=voter.port)],
                kraft_version_feature=KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest),
            )
            for voter in voters.values()
        ]
    )
    controls = (
        encode_control(ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=kraft_version)),
        encode_control(ControlType.KRAFT_VOTERS, record),
    )
    folder = Path(directory) / f"{CLUSTER_METADATA_TOPIC}-0"
    folder.mkdir(exist_ok=True)
    path = folder / f"{0:020d}-{0:010d}{METADATA_SNAPSHOT}"
    replace_file(str(path), snapshot_bytes([], now_ms, now_ms, controls=controls), sync=True)


def _java_host(host: str) -> str:
    """Return the host as Java's InetSocketAddress prints it: an IPv6 address is not shortened."""
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def _newest(unstable: bool) -> int:
    return UNSTABLE[METADATA_VERSION] if unstable else SUPPORTED[METADATA_VERSION][1]


def _integer(text: str, message: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(message) from None


def _uuid(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        return b""
