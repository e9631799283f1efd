"""What kafka-storage and kafka-features say of features without asking a broker (Kafka: Feature, MetadataVersion)."""

from __future__ import annotations

from kafka_shim.metadata.features import DEPENDENCIES, KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from kafka_shim.metadata.formatter import FIRST_LEVEL, VERSIONS, effective_levels, version_name
from kafka_shim.tools.subcommands import ToolError, feature_level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The metadata.version, 3.9-IV0, from which kraft.version is 1 by default.
KRAFT_SINCE = 21
# The order of Kafka's Feature.
NAMES = (
    KRAFT_VERSION,
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)


def levels_of_release(release: str | None) -> dict[str, int]:
    """The level of each feature at a release, with the unstable ones; None is the newest stable release. Raises
    ConfigError."""
    levels = effective_levels({}, release, release is not None, is_dynamic=True)
    levels[KRAFT_VERSION] = int(levels[METADATA_VERSION] >= KRAFT_SINCE)
    return levels


def print_version_mapping(release: str | None) -> None:
    """Raises ConfigError for a release that is unknown."""
    levels = levels_of_release(release)
    own = levels[METADATA_VERSION]
    print(f"metadata.version={own} ({release or version_name(own)})")
    for name in NAMES:
        print(f"{name}={levels[name]}")


def print_dependencies(texts: Iterable[str]) -> None:
    """`texts` are NAME=LEVEL. Raises ToolError for one that is unknown."""
    for text in texts:
        name, level = feature_level(text)
        shown = f"{name}={level}"
        if name == METADATA_VERSION:
            if not FIRST_LEVEL <= level < FIRST_LEVEL + len(VERSIONS):
                raise ToolError(f"Unknown metadata.version {level}")
            shown = f"{shown} ({version_name(level)})"
        elif name not in NAMES:
            raise ToolError(f"Unknown feature: {name}")
        elif not SUPPORTED[name][0] <= level <= SUPPORTED[name][1]:
            raise ToolError(f"No feature:{name} with feature level {level}")
        needed = {} if name == METADATA_VERSION else DEPENDENCIES.get((name, level), {})
        print(f"{shown} requires:" if needed else f"{shown} has no dependencies.")
        for other, wanted in needed.items():
            suffix = f" ({version_name(wanted)})" if other == METADATA_VERSION else ""
            print(f"    {other}={wanted}{suffix}")
