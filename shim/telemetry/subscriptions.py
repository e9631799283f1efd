"""CLIENT_METRICS resources: which clients push which metrics how often (Kafka: ClientMetricsConfigs)."""

from __future__ import annotations

import re

from kafka_shim.config import CLIENT_METRICS_OPTIONS, ConfigError
from kafka_shim.group.java_order import copied_table_size, order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
        return all(name in attributes and wanted.fullmatch(attributes[name]) for name, wanted in self.match.items())


def _pattern(text: str) -> tuple[str, re.Pattern[str]]:
    name, _, expression = text.partition("=")
    try:
        return name.strip(), re.compile(expression.strip())
    except re.error:
        return name.strip(), re.compile(r"(?!)")  # it was accepted by another regular expression engine


def wanted_by(subscriptions: Iterable[Subscription], attributes: Mapping[str, str]) -> tuple[list[str], int]:
    """Return (metrics, interval in ms) for a client: all that its subscriptions ask for, as often as the shortest."""
    metrics: list[str] = []
    interval_ms = DEFAULT_INTERVAL_MS
    for one in subscriptions:
        if one.is_for(attributes):
            metrics += one.metrics
            interval_ms = min(interval_ms, one.interval_ms)
    return [ALL_METRICS] if ALL_METRICS in metrics else order_strings(dict.fromkeys(metrics)), interval_ms
