"""A receiver that keeps the latest values that clients pushed, for the broker's Prometheus endpoint. It needs the extra
`[telemetry]` (opentelemetry-proto). Name it in `metric.reporters`:
`kafka_shim.telemetry.prometheus_reporter.PrometheusReporter`."""

from __future__ import annotations

import re

from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, MetricsData

from kafka_shim.telemetry.receivers import PushDroppedError
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
MOST_LABELS = 20
# How many messages and attributes of one push are looked at, on the event loop. A megabyte holds half a million.
MOST_LOOKED_AT = 10_000
# The longest push that is parsed: a megabyte of the shortest messages holds the event loop for 27 ms. A longer one is
# dropped as a whole.
LARGEST_PUSH_BYTES = 384 * 1024
# Families of the broker itself begin so. A client must not add to them.
OWN_FAMILIES = ("kafka_", "process_")
# A counter is shown with `_total` behind its name, of which these have nothing.
NO_NAMES = ("", "_total")
# The labels that name a client. Its instance id is one, so that two clients of one name do not overwrite each other.
CLIENT_LABELS = ("client_id", "client_instance_id", "client_software_name")
KINDS = frozenset({"gauge", "sum", "histogram"})
SCALARS = frozenset({"string_value", "bool_value", "int_value", "double_value"})
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
        """Take over the values of one push. Raises google.protobuf.message.DecodeError, and PushDroppedError for one
        that is too long."""
        if len(push.metrics) > LARGEST_PUSH_BYTES:
            self.dropped += 1
            # Told an error, a client of Java would push nothing any more, and the broker had asked for it.
            raise PushDroppedError(f"a push of {len(push.metrics)} bytes has more than {LARGEST_PUSH_BYTES}")
        data = MetricsData.FromString(push.metrics)
        client = push.attributes["client_instance_id"]
        base = tuple((name, push.attributes.get(name, "")[:MOST_LABEL_CHARACTERS]) for name in CLIENT_LABELS)
        known = self._clients.setdefault(client, {})
        left = MOST_LOOKED_AT
        for metric in _metrics(data):
            left -= 1
            if left <= 0:
                return
            name = "" if metric is None else _fit(metric.name)
            points = _points(metric)
            if name in NO_NAMES or name.startswith(OWN_FAMILIES):
                self.dropped += len(points)
                continue
            for number, point in enumerate(points):
                if left <= 0:
                    self.dropped += len(points) - number
                    return
                labels = _labels(point)
                left -= 1 + len(point.attributes)
                for suffix, value, is_counter, is_delta in _values(metric, point):
                    self._set(known, name + suffix, base + labels, value, is_counter, is_delta)

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


def _metrics(data: Any) -> Iterator[Any]:
    """Yield the metrics, and None for each message around them, which takes time as well."""
    for resource in data.resource_metrics:
        yield None
        for scope in resource.scope_metrics:
            yield None
            yield from scope.metrics


def _points(metric: Any) -> Any:
    """The data points of a metric, if it is of a kind that is kept."""
    kind = None if metric is None else metric.WhichOneof("data")
    return getattr(metric, kind).data_points if kind in KINDS else ()


def _values(metric: Any, point: Any) -> Iterator[tuple[str, float, bool, bool]]:
    """Yield (suffix of the name, value, whether it only grows, whether it is a difference). Of a histogram the count
    and the sum are taken."""
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        yield "", _number(point), False, False
    elif kind == "sum":
        is_delta = metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
        yield "", _number(point), metric.sum.is_monotonic, is_delta
    else:
        is_delta = metric.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
        yield "_count", float(point.count), True, is_delta
        yield "_sum", point.sum, True, is_delta


def _number(point: Any) -> float:
    return float(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double)


def _fit(name: str) -> str:
    """A name as Prometheus takes it; an empty one stays so."""
    fit = _UNFIT.sub("_", name[:MOST_LABEL_CHARACTERS])
    return f"_{fit}" if fit[:1].isdigit() else fit


def _labels(point: Any) -> Labels:
    """The attributes of a data point that can be labels. Two underscores at the front are Prometheus' own."""
    found: dict[str, str] = {}
    for one in point.attributes[:MOST_LABELS]:
        key = _fit(one.key)
        kind = one.value.WhichOneof("value")
        if key and key not in CLIENT_LABELS and not key.startswith("__") and kind in SCALARS:
            found[key] = str(getattr(one.value, kind))[:MOST_LABEL_CHARACTERS]
    return tuple(sorted(found.items()))
