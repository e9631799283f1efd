"""Orders of options that a client sees.

DescribeConfigs lists them as in the Java HashMap in which Kafka has the parsed values; a client that shows an answer as
it came, as those on librdkafka do, shows this order. Names of one bucket are in the order of Kafka's definition. Kafka
also parses values in the order of the definition, so that of two wrong ones its answer tells of the earlier.

Source: ConfigHelperUtils, AbstractConfig.nonInternalValues and ConfigDef.parse of Kafka 4.3.1.
"""

from __future__ import annotations

import functools

from kafka_shim.config import BROKER_OPTIONS, GROUP_OPTIONS, TOPIC_OPTIONS
from kafka_shim.java_order import order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kafka_shim.config import Option


def by_definition(table: Mapping[str, Option], names: Collection[str]) -> list[str]:
    """Return names of options in the order in which Kafka parses them, those that the table does not have last."""
    return [*(name for name in table if name in names), *(name for name in names if name not in table)]


def _described(table: Mapping[str, Option]) -> tuple[str, ...]:
    return tuple(order_strings(name for name, option in table.items() if not option.is_internal))


@functools.cache
def topic_options() -> tuple[str, ...]:
    """Return the options of topics that are not internal."""
    return _described(TOPIC_OPTIONS)


@functools.cache
def broker_options() -> tuple[str, ...]:
    """Return the options of brokers that are not internal."""
    return _described(BROKER_OPTIONS)


@functools.cache
def group_options() -> tuple[str, ...]:
    """Return the options of groups."""
    return _described(GROUP_OPTIONS)
