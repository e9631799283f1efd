"""Options of the broker and of topics, typed, with Kafka's names and defaults. Other packages import only this module.

`BrokerConfig` and `TopicConfig` have the options that this broker uses as attributes (`log.retention.ms` is
`config.log_retention_ms`). The complete tables of Kafka 4.3.1 (types, ranges, documentation, which options have an
effect) are loaded when one of their names is first used, so that they do not slow down a start.

| File | Holds |
| --- | --- |
| `defaults.py`, `broker.py`, `topic.py` | the attributes and Kafka's defaults; `BrokerConfig`; `TopicConfig` |
| `doubles.py` | options of the type DOUBLE as text |
| `table.py` | `Option` and the four tables of options |
| `generated_rows.py`, `docs.py` | facts, transcribed from Kafka's jars; documentation, this project's own |
| `properties.py` | Java properties files |
| `providers.py` | `config.providers`: values that are kept in other files, or in the environment |
| `parse.py` | from texts (server.properties, `-o key=value`, AlterConfigs) to a `BrokerConfig` |
| `consistency.py` | what options must be to each other |
| `listener.py` | the options of one listener, with and without its prefix |
| `dynamic.py` | which of the options that AlterConfigs stored for brokers are in force |
| `transcribe.py`, `OptionFacts.java` | write `generated_rows.py` |
"""

from __future__ import annotations

from kafka_shim.config.broker import BrokerConfig
from kafka_shim.config.defaults import MAX_INT64, BrokerDefaults, ConfigError
from kafka_shim.config.topic import TopicConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config.consistency import check_intervals, check_local_retention, check_values, within_limits
    from kafka_shim.config.doubles import double_text
    from kafka_shim.config.dynamic import (
        dynamic_option,
        in_force,
        is_foreign_class,
        is_listener_security,
        is_password,
        is_per_broker,
        is_secret,
        usable,
    )
    from kafka_shim.config.listener import (
        CHECKS_ALL_LISTENERS,
        LISTENER_LIMITS,
        ListenerOptions,
        base_name,
        check_limits,
    )
    from kafka_shim.config.parse import check_cordoned
    from kafka_shim.config.properties import escaped, read_properties
    from kafka_shim.config.providers import is_of_providers, resolve
    from kafka_shim.config.table import (
        AUTHORIZER_OPTIONS,
        BROKER_OPTIONS,
        BUILT_IN,
        CLIENT_METRICS_OPTIONS,
        CLIENT_NAMES,
        CLUSTER_WIDE,
        GROUP_OPTIONS,
        PER_BROKER,
        QUOTA_OPTIONS,
        READ_ONLY,
        SYNONYMS,
        TOPIC_OPTIONS,
        UNIMPLEMENTED_SECURITY,
        UNIMPLEMENTED_STORAGE,
        Option,
        check_topic_options,
        nearest,
        refusal,
    )

__all__ = [
    "AUTHORIZER_OPTIONS",
    "BROKER_OPTIONS",
    "BUILT_IN",
    "CHECKS_ALL_LISTENERS",
    "CLIENT_METRICS_OPTIONS",
    "CLIENT_NAMES",
    "CLUSTER_WIDE",
    "GROUP_OPTIONS",
    "LISTENER_LIMITS",
    "MAX_INT64",
    "PER_BROKER",
    "QUOTA_OPTIONS",
    "READ_ONLY",
    "SYNONYMS",
    "TOPIC_OPTIONS",
    "UNIMPLEMENTED_SECURITY",
    "UNIMPLEMENTED_STORAGE",
    "BrokerConfig",
    "BrokerDefaults",
    "ConfigError",
    "ListenerOptions",
    "Option",
    "TopicConfig",
    "base_name",
    "check_cordoned",
    "check_intervals",
    "check_limits",
    "check_local_retention",
    "check_topic_options",
    "check_values",
    "double_text",
    "dynamic_option",
    "escaped",
    "in_force",
    "is_foreign_class",
    "is_listener_security",
    "is_of_providers",
    "is_password",
    "is_per_broker",
    "is_secret",
    "nearest",
    "read_properties",
    "refusal",
    "resolve",
    "usable",
    "within_limits",
]


def __getattr__(name: str) -> object:
    """Load the tables and the parser at the first use of one of their names. A start with default options needs
    neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafka_shim.config import consistency, dynamic, listener, parse, properties, providers, table

    modules = (table, parse, consistency, dynamic, listener, properties, providers)
    owner = next(module for module in modules if hasattr(module, name))
    found: object = getattr(owner, name)
    globals()[name] = found
    return found
