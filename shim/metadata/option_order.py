"""Orders of options that a client sees.

DescribeConfigs lists them as in the Java HashMap in which Kafka has the parsed values; a client that shows an answer as
it came, as those on librdkafka do, shows this order. Names of one bucket are in the order of Kafka's definition. Kafka
also parses values in the order of the definition, so that of two wrong ones its answer tells of the earlier.

Source: ConfigHelperUtils, AbstractConfig.nonInternalValues and ConfigDef.parse of Kafka 4.3.1.
"""

from __future__ import annotations

import functools

from kafka_shim.config import BROKER_OPTIONS, DEFINITIONS, GROUP_OPTIONS, TOPIC_OPTIONS
from kafka_shim.java_order import order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_shim.config import Option

TOPIC, GROUP, CLIENT_METRICS, BROKER = "TOPIC", "GROUP", "CLIENT_METRICS", "BROKER"


@functools.cache
def _places(kind: str) -> dict[str, int]:
    """Return the place of each option in Kafka's definition."""
    return {row[0] or "": place for place, row in enumerate(DEFINITIONS[kind])}


def by_definition(kind: str, names: Iterable[str]) -> list[str]:
    """Return options of a kind in the order in which Kafka parses them, those that it does not know last."""
    places = _places(kind)
    return sorted(names, key=lambda name: places.get(name, len(places)))


def _described(kind: str, options: Mapping[str, Option]) -> tuple[str, ...]:
    return tuple(order_strings(by_definition(kind, (name for name in options if not options[name].is_internal))))


@functools.cache
def topic_options() -> tuple[str, ...]:
    """Return the options of topics that are not internal."""
    return _described(TOPIC, TOPIC_OPTIONS)


@functools.cache
def broker_options() -> tuple[str, ...]:
    """Return the options of brokers that are not internal."""
    return _described(BROKER, BROKER_OPTIONS)


@functools.cache
def group_options() -> tuple[str, ...]:
    """Return the options of groups."""
    return _described(GROUP, GROUP_OPTIONS)
