"""Validation of the options of a topic, a broker, a group or a client metrics subscription. Pure functions.

Source: LogConfig, DynamicBrokerConfig, GroupConfig and ClientMetricsConfigs of Kafka 4.3.1.
"""

from __future__ import annotations

import re

from kafka_shim.config import (
    BROKER_OPTIONS,
    BUILT_IN,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    READ_ONLY,
    TOPIC_OPTIONS,
    UNIMPLEMENTED_SECURITY,
    ConfigError,
    base_name,
    check_cordoned,
    check_intervals,
    check_local_retention,
    check_values,
    dynamic_option,
    is_foreign_class,
    is_listener_security,
    is_per_broker,
    resolve,
)
from kafka_shim.durations import by_duration_ms
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_order import order_strings
from kafka_shim.metadata.config_entries import effective_topic_value, static_broker_value
from kafka_shim.metadata.features import CORDONED_DIRECTORIES, METADATA_VERSION
from kafka_shim.metadata.option_order import by_definition
from kafka_shim.metadata.thread_counts import check_thread_counts
from kafka_shim.patterns import compile_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.config import Option
    from kafka_shim.metadata.store import MetadataStore


_RESET = "share.auto.offset.reset"
_INTEGER = re.compile(r"[+-]?\d{1,100}")


def node_id_of(name: str) -> int:
    """Return the node id that a resource's name says, as Java's Integer.parseInt reads it: no space, no underscore.
    Raises ValueError."""
    if _INTEGER.fullmatch(name) is None or not -(2**31) <= (node_id := int(name)) < 2**31:
        raise ValueError(name)
    return node_id


def check_topic(metadata: MetadataStore, options: Mapping[str, str]) -> None:
    """Check the options of a topic. Raises INVALID_CONFIG."""
    unknown = _unknown(TOPIC_OPTIONS, options)
    if unknown is not None:
        raise invalid(f"Unknown topic config name: {unknown}")
    values = _parsed(TOPIC_OPTIONS, options)
    lags = {}
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        given = values.get(name)
        lags[name] = int(given if given is not None else effective_topic_value(metadata.config, name) or 0)
    if lags["min.compaction.lag.ms"] > lags["max.compaction.lag.ms"]:
        both = " > ".join(f"{name} ({lag})" for name, lag in lags.items())
        raise invalid(f"conflict topic config setting {both}")
    if values.get("remote.storage.enable"):
        raise invalid(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )


def check_broker(metadata: MetadataStore, options: Mapping[str, str], *, is_default: bool) -> None:
    """Check dynamic options of a broker, or of all brokers if `is_default`. Raises INVALID_REQUEST."""
    fixed = [name for name in options if name in BROKER_OPTIONS and BROKER_OPTIONS[name].update == READ_ONLY]
    if fixed:
        raise bad_request(f"Cannot update these configs dynamically: {_set(fixed)}")
    secure = [name for name in options if is_listener_security(name)]
    if secure:
        raise bad_request(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{_set(secure)}"
        )
    others = metadata.broker_options if is_default else metadata.cluster_options
    given = metadata.config.given
    try:
        # A typed value is taken from the providers that are stored beside it, as by Kafka; texts from all providers.
        typed = resolve(options)
        proposed = {**typed, **others} if is_default else {**others, **typed}
        proposed = resolve(proposed, {**given, **proposed})
    except ConfigError as err:
        raise bad_request(str(err)) from err
    given_names = by_definition(BROKER_OPTIONS, options)
    rows = {name: row for name in given_names if (row := dynamic_option(name)) is not None}
    try:
        values: dict[str, Any] = {name: row.parse(typed[name]) for name, row in rows.items()}
    except ConfigError as err:
        raise bad_request(str(err)) from err
    own = [name for name in options if is_per_broker(name)]
    if is_default and own:
        raise bad_request(
            f"Cannot update these configs at default cluster level, broker id must be specified: {_set(own)}"
        )
    unimplemented = [name for name in options if _needs_security(name, proposed[name])]
    if unimplemented:
        raise bad_request(f"These configs are not implemented: {_set(unimplemented)}")
    foreign = [name for name in options if is_foreign_class(name, proposed[name], given)]
    if foreign:
        raise bad_request(f"A class is loaded only if the options that the broker starts with name it: {_set(foreign)}")
    if "cordoned.log.dirs" in values:
        _check_cordoned(metadata, values["cordoned.log.dirs"])
    try:
        check_intervals({**given, **proposed})
        for check in metadata.check_broker_options:
            check(proposed)
        _check_values({**given, **proposed})
        check_thread_counts(given, metadata.config.dynamic, proposed)
        check_local_retention({**given, **proposed}, options)
    except ConfigError as err:
        raise bad_request(str(err)) from err


def _check_values(options: Mapping[str, str]) -> None:
    try:
        check_values(options)
    except ConfigError as err:
        raise bad_request(f"requirement failed: {err}") from err


def _check_cordoned(metadata: MetadataStore, cordoned: Sequence[str]) -> None:
    try:
        check_cordoned(cordoned, metadata.config.log_dirs)
    except ConfigError as err:
        raise bad_request(f"requirement failed: {err}") from err
    if metadata.feature(METADATA_VERSION) < CORDONED_DIRECTORIES:
        raise invalid(
            "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
        )


def _needs_security(name: str, text: str) -> bool:
    """Whether the option, of all listeners or of one, needs something that is not built. It would be stored without
    effect."""
    option = base_name(name)
    row = BROKER_OPTIONS.get(option)
    if option not in UNIMPLEMENTED_SECURITY or text.strip() == BUILT_IN.get(option):
        return False
    return row is None or text.strip() != (row.default or "")


def check_client_metrics(name: str, options: Mapping[str, str]) -> None:
    """Check the options of a client metrics subscription. Raises INVALID_REQUEST or INVALID_CONFIG."""
    if not name:
        raise bad_request("Subscription name can't be empty")
    unknown = _unknown(CLIENT_METRICS_OPTIONS, options)
    if unknown is not None:
        raise bad_request(f"Unknown client metrics configuration: {unknown}")
    values = _parsed(CLIENT_METRICS_OPTIONS, options)
    interval_ms = values.get("interval.ms")
    if interval_ms is not None and not 100 <= interval_ms <= 3_600_000:
        raise bad_request(
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )
    for pattern in values.get("match", ()):
        # As Java splits: empty parts at the end do not count.
        selector, *rest = pattern.rstrip("=").split("=")
        if len(rest) != 1 or selector.strip() not in _SELECTORS:
            raise invalid(f"Illegal client matching pattern: {pattern}")
        try:
            compile_pattern(rest[0].strip(), "match")
        except KafkaError as err:
            raise invalid(f"Illegal client matching pattern: {pattern} ({err.message})") from err


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

# group option -> (broker option with its minimum, broker option with its maximum); an empty string means no limit
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
    """Check the options of a group. Raises INVALID_REQUEST or INVALID_CONFIG."""
    if not name:
        raise bad_request("Default group resources are not allowed.")
    # Kafka looks for it among the options given and the defaults of all.
    unknown = _unknown(GROUP_OPTIONS, dict.fromkeys((*GROUP_OPTIONS, *options)))
    if unknown is not None:
        raise invalid(f"Unknown group config name: {unknown}")
    values = _parsed(GROUP_OPTIONS, options)
    for option, (least, most) in _GROUP_BOUNDS.items():
        if option not in values:
            continue
        if least and values[option] < int(static_broker_value(metadata.config, least) or 0):
            raise invalid(f"{option} must be greater than or equal to {least}")
        if most and values[option] > int(static_broker_value(metadata.config, most) or 0):
            raise invalid(f"{option} must be less than or equal to {most}")
    for family in ("consumer", "share", "streams"):
        timeout, interval = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
        if _group_value(metadata, values, timeout) <= _group_value(metadata, values, interval):
            raise invalid(f"{timeout} must be greater than {interval}")


def _group_value(metadata: MetadataStore, values: Mapping[str, Any], option: str) -> int:
    return int(values.get(option) or static_broker_value(metadata.config, f"group.{option}") or 0)


def _unknown(table: Mapping[str, Option], options: Iterable[str]) -> str | None:
    """Return the option that Kafka names of those that it does not know."""
    return next((name for name in order_strings(options) if name not in table), None)


def _parsed(table: Mapping[str, Option], options: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    try:
        for name in by_definition(table, options):
            values[name] = table[name].parse(options[name])
            if name == _RESET:
                _check_reset(values[name])
    except ConfigError as err:
        raise invalid(str(err)) from err
    return values


def _check_reset(value: str) -> None:
    if value in ("latest", "earliest"):
        return
    try:
        by_duration_ms(value)
    except ValueError:
        raise ConfigError(
            f"Invalid value {value} for configuration {_RESET}: Invalid value `{value}` for configuration {_RESET}. "
            "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        ) from None


def _set(names: Iterable[str]) -> str:
    """Format names as Java prints a HashSet."""
    return f"[{', '.join(order_strings(names))}]"


def invalid(reason: str) -> KafkaError:
    """Return an INVALID_CONFIG error with this message."""
    return KafkaError(ErrorCode.INVALID_CONFIG, reason)


def bad_request(reason: str) -> KafkaError:
    """Return an INVALID_REQUEST error with this message."""
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
