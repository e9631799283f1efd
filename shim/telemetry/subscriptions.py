"""CLIENT_METRICS resources: which clients push which metrics how often (Kafka: ClientMetricsConfigs)."""

from __future__ import annotations

from kafka_shim.config import CLIENT_METRICS_OPTIONS, ConfigError
from kafka_shim.errors import KafkaError
from kafka_shim.java_order import copied_table_size, order_strings
from kafka_shim.patterns import compile_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 5 * 60 * 1000


class Subscription:
    """One resource. `metrics` are prefixes of names, `match` what attributes of a client must be."""

    __slots__ = ("interval_ms", "match", "metrics")

    def __init__(self, options: Mapping[str, str]) -> None:
        values: dict[str, Any] = {}
        for name, text in options.items():
            option = CLIENT_METRICS_OPTIONS.get(name)
            try:
                values[name] = option.parse(text) if option is not None else None
            except ConfigError:
                values[name] = None  # another version stored it
        metrics = list(values.get("metrics") or ())
        self.metrics = order_strings(metrics, copied_table_size(len(metrics)))
        interval_ms = values.get("interval.ms")
        self.interval_ms = DEFAULT_INTERVAL_MS if interval_ms is None else int(interval_ms)
        self.match = dict(_pattern(text) for text in values.get("match") or ())

    def is_for(self, attributes: Mapping[str, str]) -> bool:
        """Whether a client with these attributes is meant."""
        return all(name in attributes and wanted(attributes[name]) for name, wanted in self.match.items())


def _pattern(text: str) -> tuple[str, Callable[[str], object]]:
    name, _, expression = text.rstrip("=").partition("=")
    try:
        return name.strip(), compile_pattern(expression.strip(), "match").fullmatch
    except KafkaError:
        return name.strip(), _fits_none  # another broker took it, by another engine


def _fits_none(value: str) -> object:
    return None


def wanted_by(subscriptions: Iterable[Subscription], attributes: Mapping[str, str]) -> tuple[list[str], int]:
    """Return (metrics, interval in ms) for a client: all that its subscriptions ask for, as often as the shortest."""
    metrics: list[str] = []
    interval_ms = DEFAULT_INTERVAL_MS
    for one in subscriptions:
        if one.is_for(attributes):
            metrics += one.metrics
            interval_ms = min(interval_ms, one.interval_ms)
    return [ALL_METRICS] if ALL_METRICS in metrics else order_strings(dict.fromkeys(metrics)), interval_ms
