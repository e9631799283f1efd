"""Families of one value, and how many series a family of many has."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

# Series of one family at most: what has more topics or groups is summed up for the rest, with this label.
MOST_SERIES = 500
REST = "(others)"
# Partitions that have series of their own: those that were used first.
MOST_PARTITIONS = 50


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)
