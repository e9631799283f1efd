"""Changes of the options of topics, brokers, groups and client metrics: validates them and returns the records to
commit. Pure functions.

Source: ConfigurationControlManager, ControllerConfigurationValidator, ConfigAdminManager and DynamicBrokerConfig of
Kafka 4.3.1. Error messages are those that Kafka's clients see.
"""

from __future__ import annotations

from kafka_shim.config import BROKER_OPTIONS, usable
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.config_checks import (
    bad_request,
    check_broker,
    check_client_metrics,
    check_group,
    check_topic,
    invalid,
    node_id_of,
)
from kafka_shim.metadata.dynamic_config import CORDONED, MIN_ISR
from kafka_shim.metadata.features import ELR_VERSION
from kafka_shim.metadata.idle_options import TABLES
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_TOPIC
from kafka_shim.metadata.topics import check_name
from kafka_shim.protocol.records.clear_elr_record import ClearElrRecord
from kafka_shim.protocol.records.config_record import ConfigRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.metadata.store import MetadataStore

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

# The longest value in the metadata log, in UTF-16 units (Short.MAX_VALUE).
MAX_VALUE_LENGTH = 0x7FFF


# --- requests


def creation_configs(metadata: MetadataStore, topic: str, options: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Check the options of a new topic and return them. Of one that comes twice the last value counts. Raises
    INVALID_CONFIG, also if another value is null, and what a policy raises."""
    missing = [name for name, value in options if value is None]
    if missing:
        raise invalid(f"Null value not supported for topic configs: {','.join(missing)}")
    given = {name: value for name, value in options if value is not None}
    check_topic(metadata, given)
    if metadata.policies is not None:
        metadata.policies.check_options_of_new_topic(topic, given)
    return given


def decide_incremental(
    metadata: MetadataStore,
    kind: int,
    name: str,
    changes: Sequence[tuple[str, int, str | None]],
    *,
    is_controller: bool = False,
) -> list[Any]:
    """Return the records for one resource of IncrementalAlterConfigs. `changes` are (option, operation, value).
    `is_controller`: asked of the controller, which checks of a broker's options only what no broker may have. Raises
    KafkaError if any change is invalid; then no option of the resource is changed. The keys were checked."""
    stored = metadata.image.config_of(kind, name)
    if kind == RESOURCE_BROKER and is_controller:
        _check_broker_name(metadata, name)
    elif kind == RESOURCE_BROKER:
        _check_node(metadata, name)
        # What is stored and has no effect (a controller stores it) is no reason to refuse other changes.
        wanted, _ = usable(stored, metadata.config.given, is_default=not name)
        for option, operation, value in changes:
            _apply_to_broker(wanted, option, operation, value)
        check_broker(metadata, wanted, is_default=not name)
    elif kind not in TABLES:
        raise bad_request(f"Unknown resource type {kind}")
    altered: dict[str, str | None] = {}
    for option, operation, value in changes:
        new = _operated(kind, option, stored.get(option), operation, value)
        # A broker option is recorded even if its value does not change, because this makes brokers reload files.
        if new != stored.get(option) or kind == RESOURCE_BROKER:
            altered[option] = new
    if is_controller:
        _check_cordoned(kind, stored, altered)
    return _decide(metadata, kind, name, stored, altered, ())


def decide_replacement(
    metadata: MetadataStore,
    kind: int,
    name: str,
    options: Sequence[tuple[str, str | None]],
    *,
    is_controller: bool = False,
) -> list[Any]:
    """Return the records for one resource of AlterConfigs. `options` replace all stored options. `is_controller` as for
    `decide_incremental`. Raises KafkaError. The keys were checked."""
    stored = metadata.image.config_of(kind, name)
    wanted = {option: value for option, value in options if value is not None}
    if kind == RESOURCE_BROKER and is_controller:
        _check_broker_name(metadata, name)
    elif kind == RESOURCE_BROKER:
        _check_node(metadata, name)
        check_broker(metadata, wanted, is_default=not name)
    elif kind not in TABLES:
        raise bad_request(f"Unknown resource type {kind}")
    altered: dict[str, str | None] = {
        option: value for option, value in wanted.items() if value != stored.get(option) or kind == RESOURCE_BROKER
    }
    if is_controller:
        _check_cordoned(kind, stored, altered)
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
                raise invalid(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
            if value is None:
                raise invalid(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
        if value is None:
            result.pop(option, None)
        elif len(value) > MAX_VALUE_LENGTH:
            raise invalid(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes."
            )
        else:
            result[option] = value
    _check_result(metadata, kind, name, result)
    if metadata.policies is not None:
        metadata.policies.check_options(kind, name, altered)
    records: list[Any] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=option, value=value)
        for option, value in altered.items()
    ]
    records += [ConfigRecord(resource_type=kind, resource_name=name, name=option, value=None) for option in dropped]
    return records + clear_elr_records(metadata, kind, name, [record.name for record in records])


def clear_elr_records(metadata: MetadataStore, kind: int, name: str, options: Iterable[str]) -> list[ClearElrRecord]:
    """Return the records that clear eligible leader replicas when `min.insync.replicas` changes (KIP-966)."""
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
    # Kafka's schema for list operations contains only topic and broker options.
    row = TABLES[kind].get(option) if kind in (RESOURCE_TOPIC, RESOURCE_BROKER) else None
    if row is None or row.kind != "LIST":
        raise invalid(f"Can't {_OPERATIONS[operation]} to key {option} because its type is not LIST.")
    text = current if current is not None else row.default
    parts = [part for part in (text or "").split(",") if part]
    for part in _split(value or ""):
        if operation == APPEND and part not in parts:
            parts.append(part)
        elif operation == SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _apply_to_broker(options: dict[str, str], option: str, operation: int, value: str | None) -> None:
    """Apply one change as the broker does before it forwards the request to the controller
    (ConfigAdminManager.prepareIncrementalConfigs)."""
    if operation == SET:
        options[option] = value or ""
    elif operation == DELETE:
        options.pop(option, None)
    elif operation in _OPERATIONS:
        row = BROKER_OPTIONS.get(option)
        if row is None:
            raise invalid(f"Unknown config name: {option}")
        if row.kind != "LIST":
            word = _OPERATIONS[operation].lower()
            raise invalid(f"Config value {word} is not allowed for config key: {option}")
        if row.is_required and option not in options:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, which has no default to begin with
        options[option] = _operated(RESOURCE_BROKER, option, options.get(option), operation, value) or ""
    else:
        raise bad_request(f"Unknown operations type {operation}")


def _split(text: str) -> list[str]:
    """Split as Java's String.split(","): empty strings at the end are removed, but "" gives one empty string."""
    parts = text.split(",")
    while text and parts and not parts[-1]:
        parts.pop()
    return parts


# --- checks


def check_keys(changes: Sequence[tuple[str, str | None, bool]]) -> None:
    """Check what a request says of one resource, (option, value, whether it may be null) each: no option comes twice,
    and none is null. Raises INVALID_REQUEST."""
    if len({option for option, _, _ in changes}) != len(changes):
        raise bad_request("Error due to duplicate config keys")
    missing = [option for option, value, may_be_null in changes if value is None and not may_be_null]
    if missing:
        raise bad_request(f"Null value not supported for : {', '.join(missing)}")


def _check_node(metadata: MetadataStore, name: str) -> None:
    if not name:
        return
    try:
        node_id = node_id_of(name)
    except ValueError:
        raise bad_request(f"Node id must be an integer, but it is: {name}") from None
    if node_id != metadata.node_id:
        raise bad_request(f"Unexpected broker id, expected {metadata.node_id}, but received {name}")


def _check_broker_name(metadata: MetadataStore, name: str) -> None:
    """The controller stores options of any registered node (ControllerConfigurationValidator)."""
    try:
        broker_id = node_id_of(name or "0")
    except ValueError:
        raise bad_request("Unable to parse broker name as a base 10 number.") from None
    if broker_id < 0:
        raise bad_request("Invalid negative broker ID.")
    if name and broker_id not in metadata.image.brokers and broker_id not in metadata.image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")


def _check_cordoned(kind: int, stored: Mapping[str, str], altered: Mapping[str, str | None]) -> None:
    """Only a broker knows its directories, so the controller lets entries of `cordoned.log.dirs` be removed alone."""
    value = altered.get(CORDONED)
    if kind != RESOURCE_BROKER or not (value or "").strip():
        return
    before = {entry.strip() for entry in stored.get(CORDONED, "").split(",")}
    if not {entry.strip() for entry in (value or "").split(",")} <= before:
        raise invalid(
            f"When updating {CORDONED} via controllers,  the new value must be a subset of the current configuration "
            "value."
        )


def _check_result(metadata: MetadataStore, kind: int, name: str, options: Mapping[str, str]) -> None:
    if kind == RESOURCE_TOPIC:
        if not name:
            raise bad_request("Default topic resources are not allowed.")
        check_name(name)
        check_topic(metadata, options)
        if name not in metadata.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == RESOURCE_CLIENT_METRICS:
        check_client_metrics(name, options)
    elif kind == RESOURCE_GROUP:
        check_group(metadata, name, options)
