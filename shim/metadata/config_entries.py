"""Options as DescribeConfigs and CreateTopics return them: effective value, its source, and its synonyms.

Source: ConfigHelper, KafkaConfigSchema and DynamicBrokerConfig (synonyms) of Kafka 4.3.1.
"""

from __future__ import annotations

from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    QUOTA_OPTIONS,
    READ_ONLY,
    SYNONYMS,
    TOPIC_OPTIONS,
    BrokerConfig,
    ConfigError,
    TopicConfig,
    base_name,
    double_text,
)
from kafka_shim.metadata import option_order
from kafka_shim.metadata.image import (
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.config import Option
    from kafka_shim.metadata.store import MetadataStore

# Sources of a value (DescribeConfigsResponse.ConfigSource).
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_FILE, FROM_DEFAULT, FROM_LOGGER, FROM_METRICS, FROM_GROUP = range(1, 9)

# Types of values on the wire (DescribeConfigsResponse.ConfigType).
TYPE_IDS = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
# Broker options that are synonyms of each other, in order of precedence (brokerConfigSynonyms).
_FAMILIES = {
    name: tuple(synonym for synonym, _ in synonyms)
    for synonyms in SYNONYMS.values()
    if len(synonyms) > 1
    for name, _ in (synonyms if synonyms[0][0] != "log.flush.interval.ms" else synonyms[:1])
}
# Options that the command line or a Python caller sets directly as attributes.
_SET_DIRECTLY = ("listeners", "advertised.listeners", "log.dirs")


class Synonym:
    """One possible source of a value. Lists of synonyms are in order of precedence."""

    __slots__ = ("name", "source", "value")

    def __init__(self, name: str, value: str | None, source: int) -> None:
        self.name = name
        self.value = value
        self.source = source


class Entry:
    """One option of one resource. For a name that is in no table, `type_id` is 0 and `documentation` is None."""

    __slots__ = ("documentation", "is_sensitive", "name", "read_only", "source", "synonyms", "type_id", "value")

    def __init__(self, name: str, value: str | None, synonyms: list[Synonym], option: Option | None) -> None:
        self.name = name
        self.synonyms = synonyms
        self.source = synonyms[0].source if synonyms else FROM_DEFAULT
        # An unknown option is treated as sensitive, because it may be a password.
        self.is_sensitive = option is None or option.is_sensitive
        self.value = None if self.is_sensitive else value
        self.read_only = False
        self.type_id = TYPE_IDS.get(option.kind, 0) if option is not None else 0
        self.documentation: str | None = option.doc if option is not None and option.name == name else None


# --- values as text


def text_of(value: Any) -> str | None:
    """Format a typed value as Kafka does."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return double_text(value) if isinstance(value, float) else str(value)


def _canonical(option: Option, text: str) -> str | None:
    try:
        return text_of(option.parse(text))
    except ConfigError:
        return text  # stored by another version: returned unchanged


def effective_topic_value(config: BrokerConfig, name: str) -> str | None:
    """Return the value of a topic option that the topic does not set: from the broker's options in force, else its
    default."""
    return _inherited(config, TopicConfig(config), TOPIC_OPTIONS[name])


def _inherited(config: BrokerConfig, effective: TopicConfig, option: Option) -> str | None:
    if option.name not in SYNONYMS:
        return option.default
    attribute = option.name.replace(".", "_")
    if attribute in TopicConfig.__slots__:
        return text_of(getattr(effective, attribute))
    return static_broker_value(config, SYNONYMS[option.name][0][0])


def static_broker_value(config: BrokerConfig, name: str) -> str | None:
    """Return a broker option in force as text: stored, given or default."""
    for options in (config.dynamic, _given(config)):
        if name in options:
            return _canonical(BROKER_OPTIONS[name], options[name])
    return _default_of(name)


def _default_of(name: str) -> str | None:
    option = BROKER_OPTIONS.get(name)
    return None if option is None else option.default


def _given(config: BrokerConfig) -> dict[str, str]:
    given = dict(config.given)
    for name in _SET_DIRECTLY:
        attribute = name.replace(".", "_")
        value = getattr(config, attribute)
        # Without an option Kafka listens on all interfaces, and this broker on loopback.
        if name not in given and (value != getattr(BrokerConfig, attribute) or name == "listeners"):
            given[name] = text_of(value) or ""
    # log.dirs is always set here. In Kafka it is null by default, and log.dir is used.
    if "log.dirs" not in given and "log.dir" not in given:
        given["log.dirs"] = ",".join(config.log_dirs)
    # One process is both broker and controller, whatever the configuration says. In Kafka the node id is the broker id
    # too.
    given.setdefault("node.id", str(config.node_id))
    given.setdefault("broker.id", given["node.id"])
    given.setdefault("process.roles", "broker,controller")
    return given


# --- synonyms


def _broker_option(name: str) -> Option | None:
    """Return the option of a name; of a listener's own option, that of all listeners (KafkaConfig.configType)."""
    return BROKER_OPTIONS.get(name) or QUOTA_OPTIONS.get(name) or BROKER_OPTIONS.get(base_name(name))


def _broker_synonyms(metadata: MetadataStore, name: str) -> list[Synonym]:
    base = base_name(name)
    family = _FAMILIES.get(name, (name,)) if name == base else (name, base)
    option = _broker_option(name)
    hidden = option is None or option.is_sensitive
    found = []
    for options, source in (
        (metadata.broker_options, FROM_BROKER),
        (metadata.cluster_options, FROM_CLUSTER),
        (_given(metadata.config), FROM_FILE),
    ):
        found += [Synonym(one, None if hidden else options[one], source) for one in family if one in options]
    defaults = [(one, _default_of(one)) for one in family]
    found += [Synonym(one, None if hidden else value, FROM_DEFAULT) for one, value in defaults if value is not None]
    # Kafka omits the synonyms that come before the option's own name.
    while found and found[0].name != name:
        found.pop(0)
    return found


# --- resources


def topic_entries(metadata: MetadataStore, name: str) -> Iterable[Entry]:
    """Return all options of an existing topic, first those that Kafka does not list for others."""
    overrides = metadata.image.config_of(RESOURCE_TOPIC, name)
    config = metadata.topic_config(name)
    listed = option_order.topic_options()
    ahead = [other for other in overrides if other not in listed]
    for option_name in (*ahead, *listed):
        option = TOPIC_OPTIONS.get(option_name)
        if option is None:
            yield Entry(option_name, None, [Synonym(option_name, None, FROM_TOPIC)], None)
            continue
        if option.name in overrides:
            value = _canonical(option, overrides[option.name])
        else:
            value = _inherited(metadata.config, config, option)
        synonyms = _broker_synonyms(metadata, SYNONYMS[option.name][0][0]) if option.name in SYNONYMS else []
        if option.name in overrides:
            synonyms.insert(0, Synonym(option.name, value, FROM_TOPIC))
        yield Entry(option.name, value, synonyms, option)


def effective_topic_entries(metadata: MetadataStore, overrides: Mapping[str, str]) -> list[Entry]:
    """Return the options for a CreateTopics response: each with the first value that is set, sorted by name."""
    places = (
        (metadata.broker_options, FROM_BROKER),
        (metadata.cluster_options, FROM_CLUSTER),
        (_given(metadata.config), FROM_FILE),
    )
    entries = []
    for name in sorted(TOPIC_OPTIONS):
        option = TOPIC_OPTIONS[name]
        if name in overrides:
            found = Synonym(name, overrides[name], FROM_TOPIC)
        elif option.is_internal:
            continue
        else:
            found = _first_set(metadata.config, option, places)
        entries.append(Entry(name, found.value, [found], option))
    return entries


def _first_set(config: BrokerConfig, option: Option, places: Iterable[tuple[Mapping[str, str], int]]) -> Synonym:
    for options, source in places:
        for broker_name, factor in SYNONYMS.get(option.name, ()):
            if broker_name in options:
                # The first that is stored is the one in force, with the value that a reference stands for.
                text = config.dynamic.get(broker_name, options[broker_name])
                return Synonym(option.name, str(int(text) * factor) if factor > 1 else text, source)
    return Synonym(option.name, option.default, FROM_DEFAULT)


def broker_entries(metadata: MetadataStore) -> Iterable[Entry]:
    """Return all options of this broker."""
    config = metadata.config
    given = _given(config)
    listed = option_order.broker_options()
    ahead = set(given).union(name for name in config.dynamic if name not in BROKER_OPTIONS).difference(listed)
    for name in (*sorted(ahead), *listed):
        option = _broker_option(name)
        text = config.dynamic.get(name, given.get(name))
        value = option.default if option is not None else None
        if text is not None:
            value = _canonical(option, text) if option is not None and option.name == name else text
        entry = Entry(name, value, _broker_synonyms(metadata, name), option)
        entry.read_only = _is_read_only(name)
        yield entry


def _is_read_only(name: str) -> bool:
    option = _broker_option(name)
    return option is None or option.name != name or option.update == READ_ONLY


def cluster_entries(metadata: MetadataStore) -> Iterable[Entry]:
    """Return the options stored for all brokers."""
    for name, text in metadata.cluster_options.items():
        option = _broker_option(name)
        synonyms = [one for one in _broker_synonyms(metadata, name) if one.source == FROM_CLUSTER]
        entry = Entry(name, text, synonyms, option)
        entry.read_only = _is_read_only(name)
        yield entry


def group_entries(metadata: MetadataStore, name: str) -> Iterable[Entry]:
    """Return all options of a group. The group need not exist."""
    stored = metadata.image.config_of(RESOURCE_GROUP, name)
    for other in stored:
        if other not in GROUP_OPTIONS:
            yield Entry(other, None, [Synonym(other, None, FROM_GROUP)], None)
    for option in (GROUP_OPTIONS[name] for name in option_order.group_options()):
        broker_name = f"group.{option.name}"
        if broker_name in BROKER_OPTIONS:
            value = static_broker_value(metadata.config, broker_name)
            synonyms = _broker_synonyms(metadata, broker_name)
        else:
            value = option.default
            synonyms = [Synonym(option.name, value, FROM_DEFAULT)]
        if option.name in stored:
            value = _canonical(option, stored[option.name])
            synonyms.insert(0, Synonym(option.name, value, FROM_GROUP))
        yield Entry(option.name, value, synonyms, option)


def client_metrics_entries(metadata: MetadataStore, name: str) -> Iterable[Entry]:
    """Return all options of a client metrics subscription. It need not exist."""
    stored = metadata.image.config_of(RESOURCE_CLIENT_METRICS, name)
    for option in sorted(CLIENT_METRICS_OPTIONS.values(), key=lambda one: one.name):
        value = option.default
        synonyms = []
        if option.name in stored:
            value = _canonical(option, stored[option.name])
            synonyms.append(Synonym(option.name, value, FROM_METRICS))
        yield Entry(option.name, value, synonyms, option)
