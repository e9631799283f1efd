"""A receiver that keeps the latest values that clients pushed, for the broker's Prometheus endpoint. It needs the extra
`[telemetry]` (opentelemetry-proto). Name it in `metric.reporters`:
`kafka_shim.telemetry.prometheus_reporter.PrometheusReporter`."""

from __future__ import annotations

import re

from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, MetricsData

from kafka_shim.telemetry.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from kafka_shim.telemetry.receivers import Push
    from kafka_shim.telemetry.series import Labels

# How many series one client and all clients together may have. What is above is counted and dropped.
MOST_OF_A_CLIENT = 500
MOST_OF_ALL = 10_000
MOST_LABEL_CHARACTERS = 200
# What of a client becomes labels. Its id is one, so that two clients of one name do not overwrite each other.
CLIENT_LABELS = ("client_id", "client_instance_id", "client_software_name")
_UNFIT = re.compile(r"[^a-zA-Z0-9_]")


class PrometheusReporter:
    """Keeps series by client. Event-loop thread only."""

    def __init__(self) -> None:
        self._clients: dict[str, dict[tuple[str, Labels], Series]] = {}
        self._count = 0
        self.dropped = 0

    def configure(self, options: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def export_metrics(self, push: Push) -> None:
        """Take over the values of one push. Raises google.protobuf.message.DecodeError."""
        data = MetricsData.FromString(push.metrics)
        client = push.attributes["client_instance_id"]
        base = tuple((name, push.attributes.get(name, "")[:MOST_LABEL_CHARACTERS]) for name in CLIENT_LABELS)
        known = self._clients.setdefault(client, {})
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for name, point, value, is_counter, is_delta in _values(metric):
                        self._set(known, name, base + _labels(point), value, is_counter, is_delta)

    def _set(
        self,
        known: dict[tuple[str, Labels], Series],
        name: str,
        labels: Labels,
        value: float,
        is_counter: bool,
        is_delta: bool,
    ) -> None:
        series = known.get((name, labels))
        if series is None:
            if len(known) >= MOST_OF_A_CLIENT or self._count >= MOST_OF_ALL:
                self.dropped += 1
                return
            series = known[name, labels] = Series(name, labels, is_counter)
            self._count += 1
        series.value = series.value + value if is_delta else value

    def series(self) -> list[Series]:
        """Return the values of all clients."""
        return [one for known in list(self._clients.values()) for one in list(known.values())]

    def forget_client(self, client_instance_id: str) -> None:
        """Drop the series of a client that has gone."""
        self._count -= len(self._clients.pop(client_instance_id, ()))

    def close(self) -> None:
        """Drop everything."""
        self._clients.clear()
        self._count = 0


def _values(metric: Any) -> Iterator[tuple[str, Any, float, bool, bool]]:
    """Yield (name, data point, value, whether it only grows, whether it is a difference). Of a histogram the count and
    the sum are taken."""
    name = _UNFIT.sub("_", metric.name)[:MOST_LABEL_CHARACTERS]
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        for point in metric.gauge.data_points:
            yield name, point, _number(point), False, False
    elif kind == "sum":
        is_delta = metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
        for point in metric.sum.data_points:
            yield name, point, _number(point), metric.sum.is_monotonic, is_delta
    elif kind == "histogram":
        is_delta = metric.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
        for point in metric.histogram.data_points:
            yield f"{name}_count", point, float(point.count), True, is_delta
            yield f"{name}_sum", point, point.sum, True, is_delta


def _number(point: Any) -> float:
    return float(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double)


def _labels(point: Any) -> Labels:
    return tuple(
        sorted(
            (_UNFIT.sub("_", one.key), str(getattr(one.value, one.value.WhichOneof("value") or "string_value"))[:200])
            for one in point.attributes
        )
    )
