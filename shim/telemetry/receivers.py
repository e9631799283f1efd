"""What receives the pushes: classes that `metric.reporters` names (Kafka: ClientTelemetry, ClientTelemetryReceiver)."""

from __future__ import annotations

import logging
from importlib import import_module

from kafka_shim.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    class ClientTelemetryReceiver(Protocol):
        """What a class that `metric.reporters` names must have to receive pushes. It is made without arguments at the
        start, and called on the broker's event loop, so that what takes long belongs into a thread of its own."""

        def configure(self, options: Mapping[str, str]) -> None:
            """Take over the options that the broker was started with. Called once, first."""

        # May have `context_change(self, labels: Mapping[str, str]) -> None`, called once after `configure` with what
        # Kafka tells its reporters: `_namespace`, `kafka.cluster.id` and `kafka.node.id`.

        def export_metrics(self, push: Push) -> None:
            """Take one push. Raises PushDroppedError if it takes none of it; the client is answered
            without an error. Any other exception is logged, and the client is answered INVALID_RECORD."""

        def forget_client(self, client_instance_id: str) -> None:
            """The client has gone: its connection closed, or it did not push for three intervals."""

        def close(self) -> None:
            """The broker stops."""


logger = logging.getLogger(__name__)

JAVA_REPORTERS = frozenset({"org.apache.kafka.common.metrics.JmxReporter", "JmxReporter"})
NEEDED = ("configure", "export_metrics", "forget_client", "close")


class PushDroppedError(Exception):
    """A receiver takes nothing of a push, whose client goes on pushing all the same. The message says why."""


class Push:
    """One push. `metrics` is an OTLP `MetricsData` message, decompressed. `attributes` has what a subscription can
    match: client_instance_id, client_id, client_software_name, client_software_version, client_source_address,
    client_source_port."""

    __slots__ = ("attributes", "is_terminating", "metrics", "principal", "push_interval_ms")

    def __init__(
        self,
        attributes: Mapping[str, str],
        principal: str,
        metrics: bytes,
        push_interval_ms: int,
        is_terminating: bool,
    ) -> None:
        self.attributes = attributes
        self.principal = principal
        self.metrics = metrics
        self.push_interval_ms = push_interval_ms
        self.is_terminating = is_terminating


def labels_of(cluster_id: str, node_id: int) -> dict[str, str]:
    """Labels of the broker that go with its metrics (Kafka: KafkaMetricsContext, Server.createKafkaMetricsContext)."""
    return {"_namespace": "kafka.server", "kafka.cluster.id": cluster_id, "kafka.node.id": str(node_id)}


def make_receivers(
    names: Iterable[str], options: Mapping[str, str], labels: Mapping[str, str]
) -> list[ClientTelemetryReceiver]:
    """Make the receivers that `metric.reporters` names by dotted path. Kafka's own reporter is passed over: there is no
    JMX here. Raises ConfigError."""
    receivers: list[ClientTelemetryReceiver] = []
    for name in names:
        if name in JAVA_REPORTERS:
            continue
        module, _, cls = name.rpartition(".")
        try:
            receiver = getattr(import_module(module), cls)()
            missing = [one for one in NEEDED if not callable(getattr(receiver, one, None))]
        except Exception as err:  # as below
            lacks = isinstance(err, ModuleNotFoundError) and (err.name or "").startswith("opentelemetry")
            advice = "pip install opentelemetry-proto" if lacks else "name a Python class by its dotted path"
            raise ConfigError(f"metric.reporters: {name} cannot be created ({err}): {advice}") from err
        if missing:
            raise ConfigError(f"metric.reporters: {name} has no {', '.join(missing)}")
        try:
            receiver.configure(options)
            tell = getattr(receiver, "context_change", None)
            if tell is not None:
                tell(labels)
        except Exception as err:  # an operator's class: whatever it raises stops the start with one line
            raise ConfigError(f"metric.reporters: {name} cannot be configured: {type(err).__name__}: {err}") from err
        receivers.append(receiver)
    return receivers
