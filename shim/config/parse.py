"""Parses texts into a `BrokerConfig`: those of a start, and options stored by AlterConfigs."""

from __future__ import annotations

from kafka_shim.config import providers
from kafka_shim.config.consistency import assignor_names, check_start
from kafka_shim.config.defaults import BrokerDefaults, ConfigError
from kafka_shim.config.listener import base_name
from kafka_shim.config.table import (
    AUTHORIZER_OPTIONS,
    BROKER_OPTIONS,
    BUILT_IN,
    LISTENER_OPTIONS,
    SYNONYMS,
    nearest,
    refusal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from typing import Any

    from kafka_shim.config.broker import BrokerConfig

# Options of other programs that read the same file, or of plug-ins. Kafka passes them on unchecked.
_FOREIGN_PREFIXES = ("metrics.", "confluent.", "rlmm.config.", "rsm.config.")


def parse_broker(config: BrokerConfig, options: Mapping[str, str], from_file: Container[str] = ()) -> None:
    """Set what `options` say. Raises ConfigError; `BrokerConfig.parse` says when."""
    values: dict[str, Any] = {}
    idle: list[str] = []
    options = providers.resolve(options)
    for name, text in options.items():
        if providers.is_of_providers(name):
            continue
        known = base_name(name)
        option = BROKER_OPTIONS.get(known)
        if option is None:
            if name in AUTHORIZER_OPTIONS:
                if not options.get("authorizer.class.name", "").strip():
                    idle.append(name)
                continue
            if name.startswith(_FOREIGN_PREFIXES):
                idle.append(name)
                continue
            unknown = f"{name} is not an option of Kafka{nearest(name, BROKER_OPTIONS)}"
            if known != name:
                unknown = f"{name}: {known} is not an option of a listener{nearest(known, LISTENER_OPTIONS)}"
            if name not in from_file:
                raise ConfigError(unknown)
            # Kafka ignores it too: such a file may serve other programs, or another version.
            config.warnings.append(f"{unknown} It is ignored" if unknown.endswith("?") else f"{unknown}: it is ignored")
            continue
        value = option.parse(text)
        if known != name and known in LISTENER_OPTIONS:
            continue
        if option.is_default(text.strip()) and known == name:
            values[name] = value
            continue
        if text.strip() == BUILT_IN.get(known):
            continue
        missing = refusal(known)
        if missing is not None:
            raise ConfigError(f"{name.removesuffix(known)}{missing}; leave it out")
        if option.idle_reason or known != name:
            idle.append(name)
        else:
            values[name] = value
    check_start(options)
    config.given = dict(options)
    if idle:
        config.warnings.append(f"without effect here: {', '.join(sorted(idle))}")
    _warn_of_other_voters(config, options)
    _apply(config, values)


def _warn_of_other_voters(config: BrokerConfig, options: Mapping[str, str]) -> None:
    """Clients of a compose file with three nodes would find what they wrote to one of them on no other."""
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        nodes = [one.strip() for one in options.get(name, "").split(",") if one.strip()]
        if len(nodes) > 1:
            config.warnings.append(
                f"{name} names {len(nodes)} nodes, but this broker joins no others: it is a cluster of its own, so "
                "give clients its address alone"
            )


def check_cordoned(cordoned: Sequence[str], log_dirs: Sequence[str]) -> None:
    """Raise ConfigError if `cordoned.log.dirs` names what is not in `log.dirs` (KafkaConfig:
    validateCordonedLogDirs)."""
    if "*" in cordoned:
        if len(cordoned) > 1:
            raise ConfigError("When cordoned.log.dirs is set to *, it must not contain other values")
        return
    missing = [path for path in cordoned if path not in log_dirs]
    if missing:
        raise ConfigError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
            + ", ".join(missing)
        )


def apply_dynamic(config: BrokerConfig, options: Mapping[str, str]) -> None:
    """Replace the dynamic options of `config`. An option that `options` no longer has gets the given value or the
    default."""
    changed = {name for name in (*config.dynamic, *options) if _is_read(name)} - _OF_THE_START
    texts = {**config.given, **options}
    for name in changed:
        config.__dict__.pop(name.replace(".", "_"), None)
    # A dynamic option may override a static synonym that has another unit.
    behind = {name for group in SYNONYMS.values() if group[0][0] in changed for name, _ in group}
    _apply(config, {name: BROKER_OPTIONS[name].parse(texts[name]) for name in changed | behind if name in texts})
    config.dynamic = dict(options)  # last: where memory ended before, all this is done again


# Attributes that stay what the start gave: `DynamicListeners` compares with them what is stored.
_OF_THE_START = frozenset({"listeners", "listener.security.protocol.map"})


def _is_read(name: str) -> bool:
    option = BROKER_OPTIONS.get(name)
    return option is not None and not option.idle_reason


def _apply(config: BrokerConfig, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        attribute = name.replace(".", "_")
        if hasattr(BrokerDefaults, attribute) and attribute not in _RESOLVED_ATTRIBUTES:
            default = getattr(BrokerDefaults, attribute)
            # Lists of addresses stay text, because `kafka_shim.listeners` parses them.
            setattr(
                config,
                attribute,
                ",".join(value) if isinstance(value, tuple) and not isinstance(default, tuple) else value,
            )
    for synonyms in SYNONYMS.values():
        attribute = synonyms[0][0].replace(".", "_")
        for name, factor in synonyms:
            value = values.get(name)
            if value is not None:
                setattr(config, attribute, value * factor if factor > 1 else value)
                break
    directories = values.get("log.dirs") or values.get("log.dir")
    if directories:
        config.log_dirs = tuple(directories)
    if "cordoned.log.dirs" in values:
        check_cordoned(config.cordoned_log_dirs, config.log_dirs)
    if config.log_retention_ms < 0:
        config.log_retention_ms = -1  # in Kafka any negative hours or minutes mean no limit
    if values.get("broker.id", -1) >= 0 and "node.id" not in values:
        config.node_id = values["broker.id"]
    if "group.consumer.assignors" in values:
        config.group_consumer_assignors = assignor_names(values["group.consumer.assignors"])
    if "controller.listener.names" in values:
        config.controller_listener_names = tuple(name.upper() for name in values["controller.listener.names"])


_RESOLVED_ATTRIBUTES = frozenset(
    name.replace(".", "_") for synonyms in SYNONYMS.values() if len(synonyms) > 1 for name, _ in synonyms
) | {"log_dirs", "controller_listener_names"}
