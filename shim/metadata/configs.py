"""Rules for changing options of topics, brokers, groups and client metrics: what is recorded, or refused. Pure.

Source: ConfigurationControlManager, ControllerConfigurationValidator and ConfigAdminManager of Kafka 4.3.1; the
sentences are what its clients see.
"""

from __future__ import annotations

from shim.config import ConfigError, TopicConfig
from shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from shim.metadata.store import MetadataStore


def creation_configs(metadata: MetadataStore, options: Mapping[str, str | None]) -> dict[str, str]:
    """The options of a topic to be made, checked. Raises INVALID_CONFIG."""
    missing = [name for name, value in options.items() if value is None]
    if missing:
        reason = f"Null value not supported for topic configs: {','.join(missing)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        TopicConfig(metadata.config, given)
    except ConfigError as err:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(err)) from err
    return given


def effective_topic_entries(metadata: MetadataStore, overrides: Mapping[str, str]) -> list[Any]:
    return []
