"""Features and their levels: the supported ranges, the checks of UpdateFeatures, and the record versions of each
`metadata.version`.

Source: org.apache.kafka.server.common.Feature and MetadataVersion of 4.3.1; FeatureControlManager for the checks.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

# feature -> (lowest, highest) supported level, in the order in which Kafka registers a controller.
SUPPORTED = {
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELR_VERSION: (0, 1),
}
# The highest levels that are not released yet: with `unstable.feature.versions.enable`.
UNSTABLE = {METADATA_VERSION: 31}
# The finalised levels of a new directory, in the order in which Kafka's storage tool writes them.
BOOTSTRAP_LEVELS = (
    (METADATA_VERSION, 30),
    (ELR_VERSION, 1),
    (GROUP_VERSION, 1),
    (SHARE_VERSION, 1),
    (STREAMS_VERSION, 1),
    (TRANSACTION_VERSION, 2),
)
# (feature, level) -> required levels of other features, apart from the lowest supported metadata.version.
DEPENDENCIES = {(ELR_VERSION, 1): {METADATA_VERSION: 23}}

# The levels of metadata.version that introduced what this broker writes.
SCRAM_RECORDS = 11
TRANSACTIONS = 13
DELEGATION_TOKENS = 14
CONTROLLER_REGISTRATION = 15
DIRECTORIES = 17
ELR_RECORDS = 23
CORDONED_DIRECTORIES = 30

# The levels of metadata.version that changed records. A downgrade below one of them could lose metadata.
_CHANGED_METADATA = frozenset({8, 11, 13, 14, 15, 17, 23, 30})
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def register_broker_version(metadata_version: int) -> int:
    """Return the RegisterBrokerRecord version for this level of metadata.version."""
    if metadata_version >= CORDONED_DIRECTORIES:
        return 4
    if metadata_version >= DIRECTORIES:
        return 3
    return 2 if metadata_version >= 8 else 1


def partition_record_version(metadata_version: int) -> int:
    """Return the PartitionRecord and PartitionChangeRecord version for this level of metadata.version."""
    if metadata_version >= ELR_RECORDS:
        return 2
    return 1 if metadata_version >= DIRECTORIES else 0


def supported_levels(unstable: bool) -> Mapping[str, tuple[int, int]]:
    """Return the supported levels; `unstable` is `unstable.feature.versions.enable`."""
    if not unstable:
        return SUPPORTED
    return {name: (lowest, UNSTABLE.get(name, highest)) for name, (lowest, highest) in SUPPORTED.items()}


def decide_update(
    finalised: Mapping[str, int],
    updates: Mapping[str, tuple[int, int]],
    node_id: int,
    kraft_version: int = 0,
    supported: Mapping[str, tuple[int, int]] = SUPPORTED,
) -> list[FeatureLevelRecord]:
    """Return the records of an UpdateFeatures request. `updates` maps a feature to (new level, upgrade type).

    Raises KafkaError INVALID_UPDATE_VERSION with Kafka's message for the first feature that cannot be set. Then no
    feature changes.
    """
    proposed = dict(finalised)
    proposed.update({feature: level for feature, (level, _) in updates.items()})
    records = []
    for feature, (level, upgrade_type) in updates.items():
        current = kraft_version if feature == KRAFT_VERSION else finalised.get(feature, 0)
        _check_direction(feature, level, current, upgrade_type, node_id, supported)
        if feature == METADATA_VERSION:
            _check_downgrade(level, current, upgrade_type)
        elif feature == KRAFT_VERSION:
            if level < current:
                raise _invalid(feature, level, "Can't downgrade the version of this feature.")
            # It is not a record of the metadata but of the quorum: `MetadataStore.upgrade_kraft_version`.
            continue
        else:
            _check_dependencies(feature, level, proposed)
        records.append(FeatureLevelRecord(name=feature, feature_level=level))
    return records


def _check_direction(
    feature: str, level: int, current: int, upgrade_type: int, node_id: int, supported: Mapping[str, tuple[int, int]]
) -> None:
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(feature, level, "A feature version cannot be less than 0.")
    if feature not in supported and level == 0:
        raise _invalid(feature, level, f"Feature {feature} not found.")
    lowest, highest = supported.get(feature, (0, 0))
    if not lowest <= level <= highest:
        if highest == 0:
            raise _invalid(feature, level, f"Local controller {node_id} does not support this feature.")
        raise _invalid(feature, level, f"Local controller {node_id} only supports versions {lowest}-{highest}")
    if level < current and upgrade_type == UPGRADE:
        raise _invalid(
            feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _invalid(feature, level, "Can't downgrade to a newer version.")


def _check_downgrade(level: int, current: int, upgrade_type: int) -> None:
    if level < current and any(level < step <= current for step in _CHANGED_METADATA):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if upgrade_type == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        sentence = f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, sentence)


def _check_dependencies(feature: str, level: int, proposed: Mapping[str, int]) -> None:
    for other, needed in DEPENDENCIES.get((feature, level), {}).items():
        if proposed.get(other, 0) < needed:
            raise _invalid(
                feature, level, f"{feature} could not be set to {level} because it depends on {other} level {needed}"
            )


def _invalid(feature: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {feature}. {reason}"
    )


def record_version(record: Any, metadata_version: int) -> int:
    """Return the version in which to write a record at this level of metadata.version."""
    key = record.API_KEY
    if key in (3, 5):
        return partition_record_version(metadata_version)
    if key == 0:
        return register_broker_version(metadata_version)
    if key == 17:
        # The lowest version that has the fields that are set, as in Kafka.
        if record.cordoned_log_dirs is not None:
            return 3
        if record.log_dirs:
            return 2
        return 1 if record.in_controlled_shutdown else 0
    return 0


def unsupported_level(levels: Mapping[str, int], supported: Mapping[str, tuple[int, int]]) -> str:
    """Return what is wrong with the finalised levels of a directory, or an empty string."""
    for name, level in levels.items():
        lowest, highest = supported.get(name, (0, 0))
        if not lowest <= level <= highest:
            return (
                f"{name} {level} is finalised here, this version of kafka-shim supports {lowest} to {highest}: start "
                "the Kafka that wrote it, and change the level there (kafka-features.sh) or go on with it"
            )
    return ""
