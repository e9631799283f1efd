"""Rules for changing options of topics, brokers, groups and client metrics: what is recorded, or refused. Pure.

Source: ConfigurationControlManager, ControllerConfigurationValidator, ConfigAdminManager and DynamicBrokerConfig of
Kafka 4.3.1; the sentences are what its clients see.
"""

from __future__ import annotations

from shim.config import ConfigError
from shim.config_table import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    PER_BROKER,
    PROMISES_SECURITY,
    READ_ONLY,
    TOPIC_OPTIONS,
)
from shim.errors import ErrorCode, KafkaError
from shim.metadata.config_entries import effective_topic_value, static_broker_value
from shim.metadata.features import ELR_VERSION
from shim.metadata.image import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_TOPIC
from shim.metadata.topics import check_name
from shim.protocol.records.clear_elr_record import ClearElrRecord
from shim.protocol.records.config_record import ConfigRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from shim.config_table import Option
    from shim.metadata.store import MetadataStore

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

TABLES: dict[int, dict[str, Option]] = {
    RESOURCE_TOPIC: TOPIC_OPTIONS,
    RESOURCE_BROKER: BROKER_OPTIONS,
    RESOURCE_CLIENT_METRICS: CLIENT_METRICS_OPTIONS,
    RESOURCE_GROUP: GROUP_OPTIONS,
}
MIN_ISR = "min.insync.replicas"
# In the metadata log a value is a string of at most this many UTF-16 units (Short.MAX_VALUE).
MAX_VALUE_LENGTH = 0x7FFF


# --- what a request asks for


def creation_configs(metadata: MetadataStore, options: Mapping[str, str | None]) -> dict[str, str]:
    """The options of a topic to be made, checked. Raises INVALID_CONFIG."""
    missing = [name for name, value in options.items() if value is None]
    if missing:
        raise _invalid(f"Null value not supported for topic configs: {','.join(missing)}")
    given = {name: value for name, value in options.items() if value is not None}
    check_topic(metadata, given)
    return given


def decide_incremental(
    metadata: MetadataStore, kind: int, name: str, changes: Sequence[tuple[str, int, str | None]]
) -> list[Any]:
    """The records of one resource of IncrementalAlterConfigs: `changes` are (option, operation, value). Raises
    KafkaError, and then nothing of the resource is changed."""
    _check_keys([(option, value, operation == DELETE) for option, operation, value in changes])
    stored = metadata.image.config_of(kind, name)
    if kind == RESOURCE_BROKER:
        _check_node(metadata, name)
        wanted = dict(stored)
        for option, operation, value in changes:
            _apply_to_broker(wanted, option, operation, value)
        check_broker(metadata, wanted, is_default=not name)
    elif kind not in TABLES:
        raise _bad_request(f"Unknown resource type {kind}")
    altered: dict[str, str | None] = {}
    for option, operation, value in changes:
        new = _operated(kind, option, stored.get(option), operation, value)
        # A record for a broker's option is written even when nothing changes: it makes brokers read files again.
        if new != stored.get(option) or kind == RESOURCE_BROKER:
            altered[option] = new
    return _decide(metadata, kind, name, stored, altered, ())


def decide_replacement(
    metadata: MetadataStore, kind: int, name: str, options: Sequence[tuple[str, str | None]]
) -> list[Any]:
    """The records of one resource of AlterConfigs: `options` replace all that is stored. Raises KafkaError."""
    _check_keys([(option, value, False) for option, value in options])
    stored = metadata.image.config_of(kind, name)
    wanted = {option: value for option, value in options if value is not None}
    if kind == RESOURCE_BROKER:
        _check_node(metadata, name)
        check_broker(metadata, wanted, is_default=not name)
    elif kind not in TABLES:
        raise _bad_request(f"Unknown resource type {kind}")
    altered: dict[str, str | None] = {
        option: value for option, value in wanted.items() if value != stored.get(option) or kind == RESOURCE_BROKER
    }
    return _decide(metadata, kind, name, stored, altered, [option for option in stored if option not in wanted])


def _decide(
    metadata: MetadataStore,
    kind: int,
    name: str,
    stored: Mapping[str, str],
    altered: Mapping[str, str | None],
    dropped: Iterable[str],
) -> list[Any]:
    with_elr = metadata.feature(ELR_VERSION) > 0
    result = dict(stored)
    for option, value in [*altered.items(), *((option, None) for option in dropped)]:
        if option == MIN_ISR and kind == RESOURCE_BROKER and with_elr:
            if name:
                raise _invalid(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
            if value is None:
                raise _invalid(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
        if value is None:
            result.pop(option, None)
        elif len(value) > MAX_VALUE_LENGTH:
            raise _invalid(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes."
            )
        else:
            result[option] = value
    _check_result(metadata, kind, name, result)
    records: list[Any] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=option, value=value)
        for option, value in altered.items()
    ]
    records += [ConfigRecord(resource_type=kind, resource_name=name, name=option, value=None) for option in dropped]
    return records + clear_elr_records(metadata, kind, name, [record.name for record in records])


def clear_elr_records(metadata: MetadataStore, kind: int, name: str, options: Iterable[str]) -> list[ClearElrRecord]:
    """What goes with a change of `min.insync.replicas`: eligible leader replicas count anew (KIP-966)."""
    if metadata.feature(ELR_VERSION) == 0:
        return []
    topic = name if kind == RESOURCE_TOPIC else ""
    return [ClearElrRecord(topic_name=topic) for option in options if option == MIN_ISR]


# --- one operation


def _operated(kind: int, option: str, current: str | None, operation: int, value: str | None) -> str | None:
    if operation == SET:
        return value
    if operation == DELETE:
        return None
    if operation not in _OPERATIONS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    # Kafka's schema for this question knows topics and brokers only.
    row = TABLES[kind].get(option) if kind in (RESOURCE_TOPIC, RESOURCE_BROKER) else None
    if row is None or row.kind != "LIST":
        raise _invalid(f"Can't {_OPERATIONS[operation]} to key {option} because its type is not LIST.")
    text = current if current is not None else row.default
    parts = [part for part in (text or "").split(",") if part]
    for part in _split(value or ""):
        if operation == APPEND and part not in parts:
            parts.append(part)
        elif operation == SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _apply_to_broker(options: dict[str, str], option: str, operation: int, value: str | None) -> None:
    """One change as the broker sees it before it asks the controller (ConfigAdminManager.prepareIncrementalConfigs)."""
    if operation == SET:
        options[option] = value or ""
    elif operation == DELETE:
        options.pop(option, None)
    elif operation in _OPERATIONS:
        row = BROKER_OPTIONS.get(option)
        if row is None:
            raise _invalid(f"Unknown config name: {option}")
        if row.kind != "LIST":
            word = _OPERATIONS[operation].lower()
            raise _invalid(f"Config value {word} is not allowed for config key: {option}")
        options[option] = _operated(RESOURCE_BROKER, option, options.get(option), operation, value) or ""
    else:
        raise _bad_request(f"Unknown operations type {operation}")


def _split(text: str) -> list[str]:
    """Java's String.split(","): empty strings at the end do not count, but "" is one."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


# --- checks


def _check_keys(changes: Sequence[tuple[str, str | None, bool]]) -> None:
    if len({option for option, _, _ in changes}) != len(changes):
        raise _bad_request("Error due to duplicate config keys")
    missing = [option for option, value, may_be_null in changes if value is None and not may_be_null]
    if missing:
        raise _bad_request(f"Null value not supported for : {', '.join(missing)}")


def _check_node(metadata: MetadataStore, name: str) -> None:
    if not name:
        return
    try:
        node_id = int(name)
    except ValueError:
        raise _bad_request(f"Node id must be an integer, but it is: {name}") from None
    if node_id != metadata.node_id:
        raise _bad_request(f"Unexpected broker id, expected {metadata.node_id}, but received {name}")


def _check_result(metadata: MetadataStore, kind: int, name: str, options: Mapping[str, str]) -> None:
    if kind == RESOURCE_TOPIC:
        if not name:
            raise _bad_request("Default topic resources are not allowed.")
        check_name(name)
        check_topic(metadata, options)
        if name not in metadata.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == RESOURCE_CLIENT_METRICS:
        check_client_metrics(name, options)
    elif kind == RESOURCE_GROUP:
        check_group(metadata, name, options)


def check_topic(metadata: MetadataStore, options: Mapping[str, str]) -> None:
    """Raises INVALID_CONFIG unless a topic may have these options."""
    unknown = next((name for name in options if name not in TOPIC_OPTIONS), None)
    if unknown is not None:
        raise _invalid(f"Unknown topic config name: {unknown}")
    values = _parsed(TOPIC_OPTIONS, options)
    lags = {}
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        lags[name] = int(values.get(name) or effective_topic_value(metadata.config, name) or 0)
    if lags["min.compaction.lag.ms"] > lags["max.compaction.lag.ms"]:
        both = " > ".join(f"{name} ({lag})" for name, lag in lags.items())
        raise _invalid(f"conflict topic config setting {both}")
    if values.get("remote.storage.enable"):
        raise _invalid(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )


def check_broker(metadata: MetadataStore, options: Mapping[str, str], *, is_default: bool) -> None:
    """Raises INVALID_REQUEST unless these options may be changed while a broker runs; `is_default`: of all brokers."""
    known = {name: BROKER_OPTIONS[name] for name in options if name in BROKER_OPTIONS}
    fixed = [name for name, row in known.items() if row.update == READ_ONLY]
    if fixed:
        raise _bad_request(f"Cannot update these configs dynamically: {_set(fixed)}")
    secure = [name for name, row in known.items() if row.update == PER_BROKER and _is_security(name)]
    if secure:
        raise _bad_request(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{_set(secure)}"
        )
    try:
        values: dict[str, Any] = {name: row.parse(options[name]) for name, row in known.items()}
    except ConfigError as err:
        raise _bad_request(str(err)) from err
    own = [name for name, row in known.items() if row.update == PER_BROKER]
    if is_default and own:
        raise _bad_request(
            f"Cannot update these configs at default cluster level, broker id must be specified: {_set(own)}"
        )
    promised = [name for name in options if name.startswith("listener.name.") or name in PROMISES_SECURITY]
    if promised:
        raise _bad_request(f"These configs promise security that is not implemented yet: {_set(promised)}")
    cordoned = values.get("cordoned.log.dirs", ())
    strange = [path for path in cordoned if path not in metadata.config.log_dirs]
    if strange:
        raise _bad_request(
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing "
            f"entries : {', '.join(strange)}"
        )
    if cordoned:
        raise _bad_request("cordoned.log.dirs is not implemented yet")
    bound = [name for name in known if name in ("listeners", "listener.security.protocol.map")]
    if bound:
        raise _bad_request(f"These configs cannot be changed while this broker runs: {_set(bound)}")


def _is_security(name: str) -> bool:
    return name.startswith(("ssl.", "sasl.", "principal.builder", "connections.max.reauth"))


def check_client_metrics(name: str, options: Mapping[str, str]) -> None:
    """Raises INVALID_REQUEST or INVALID_CONFIG unless a metrics subscription may have these options."""
    if not name:
        raise _bad_request("Subscription name can't be empty")
    unknown = next((option for option in options if option not in CLIENT_METRICS_OPTIONS), None)
    if unknown is not None:
        raise _bad_request(f"Unknown client metrics configuration: {unknown}")
    values = _parsed(CLIENT_METRICS_OPTIONS, options)
    interval_ms = values.get("interval.ms")
    if interval_ms is not None and not 100 <= interval_ms <= 3_600_000:
        raise _bad_request(
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )
    for pattern in values.get("match", ()):
        selector, equals, _ = pattern.partition("=")
        if not equals:
            raise _invalid(f"Illegal client matching pattern: {pattern}")
        if selector.strip() not in _SELECTORS:
            raise _invalid(f"Illegal client matching pattern: {pattern}")


# ClientMetricsConfigs.ClientMatchingParams
_SELECTORS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

# option of a group -> (broker option that is the least, one that is the most), the empty string for none
_GROUP_BOUNDS = {
    "consumer.heartbeat.interval.ms": (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "consumer.session.timeout.ms": ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    "consumer.assignment.interval.ms": (
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    "share.heartbeat.interval.ms": ("group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    "share.session.timeout.ms": ("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
    "share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.delivery.count.limit": ("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
    "share.partition.max.record.locks": (
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    "share.assignment.interval.ms": (
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    "streams.heartbeat.interval.ms": (
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    "streams.session.timeout.ms": ("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    "streams.num.standby.replicas": ("", "group.streams.max.standby.replicas"),
    "streams.assignment.interval.ms": (
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
}


def check_group(metadata: MetadataStore, name: str, options: Mapping[str, str]) -> None:
    """Raises INVALID_REQUEST or INVALID_CONFIG unless a group may have these options."""
    if not name:
        raise _bad_request("Default group resources are not allowed.")
    unknown = next((option for option in options if option not in GROUP_OPTIONS), None)
    if unknown is not None:
        raise _invalid(f"Unknown group config name: {unknown}")
    values = _parsed(GROUP_OPTIONS, options)
    reset = values.get("share.auto.offset.reset", "latest")
    if reset not in ("latest", "earliest") and not _is_duration(reset):
        name = "share.auto.offset.reset"
        raise _invalid(
            f"Invalid value {reset} for configuration {name}: Invalid value `{reset}` for configuration {name}. The "
            "value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
    for option, (least, most) in _GROUP_BOUNDS.items():
        if option not in values:
            continue
        if least and values[option] < int(static_broker_value(metadata.config, least) or 0):
            raise _invalid(f"{option} must be greater than or equal to {least}")
        if most and values[option] > int(static_broker_value(metadata.config, most) or 0):
            raise _invalid(f"{option} must be less than or equal to {most}")
    for family in ("consumer", "share", "streams"):
        timeout, interval = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
        if _group_value(metadata, values, timeout) <= _group_value(metadata, values, interval):
            raise _invalid(f"{timeout} must be greater than {interval}")


def _is_duration(text: str) -> bool:
    """`by_duration:` and a duration of ISO 8601 that is not negative."""
    import re

    form = r"by_duration:P(?=\d|T\d)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
    return re.fullmatch(form, text, re.IGNORECASE) is not None


def _group_value(metadata: MetadataStore, values: Mapping[str, Any], option: str) -> int:
    return int(values.get(option) or static_broker_value(metadata.config, f"group.{option}") or 0)


def _parsed(table: Mapping[str, Option], options: Mapping[str, str]) -> dict[str, Any]:
    try:
        return {name: table[name].parse(text) for name, text in options.items()}
    except ConfigError as err:
        raise _invalid(str(err)) from err


def _set(names: Iterable[str]) -> str:
    """As Java prints a set."""
    return f"[{', '.join(names)}]"


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _bad_request(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
