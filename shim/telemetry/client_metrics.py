"""The clients that ask for subscriptions and push metrics (KIP-714; Kafka: ClientMetricsManager)."""

from __future__ import annotations

import logging
from collections import OrderedDict

from kafka_shim.cext.compression import decompress
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_order import uuid_hash
from kafka_shim.line_limit import LineLimit
from kafka_shim.scheduler import Scheduler
from kafka_shim.telemetry.receivers import Push, PushDroppedError, labels_of, make_receivers
from kafka_shim.telemetry.subscriptions import Subscription, wanted_by
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafka_shim.broker import Broker
    from kafka_shim.clock import Clock
    from kafka_shim.session import Session
    from kafka_shim.telemetry.receivers import ClientTelemetryReceiver

logger = logging.getLogger(__name__)

ZSTD, LZ4, GZIP, SNAPPY = 4, 3, 1, 2
# What the response offers, in Kafka's order. A push without compression is accepted too.
OFFERED = [ZSTD, LZ4, GZIP, SNAPPY]
HIGHEST_CODEC = ZSTD
MOST_INSTANCES = 16384
# Names of clients are cut to this: there may be many clients, and a name may have 32 KB.
MOST_NAME_CHARACTERS = 1000
SHORTEST_EXPIRY_MS = 60_000
SWEEP_MS = 10_000
# Kafka's Uuid.RESERVED.
RESERVED_UUIDS = (bytes(16), bytes(15) + b"\x01")


class Instance:
    """One client: what it was told to push, and when it last asked and pushed."""

    __slots__ = (
        "attributes",
        "expires_ms",
        "interval_ms",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "metrics",
        "subscription_id",
        "version",
    )

    def __init__(
        self, attributes: Mapping[str, str], metrics: list[str], interval_ms: int, subscription_id: int, version: int
    ) -> None:
        self.attributes = attributes
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.subscription_id = subscription_id
        self.version = version
        self.last_get_ms = 0
        self.last_push_ms = 0
        self.last_error = ErrorCode.NONE
        self.is_terminating = False
        self.expires_ms = 0

    def may_get(self, now_ms: int) -> bool:
        """Whether a question for the subscriptions is not too early. Takes its time if so."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether a push is not too early: never the first after a question, as clients vary it."""
        if self.last_get_ms <= self.last_push_ms and now_ms - self.last_push_ms < self.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientMetrics:
    """All clients that push metrics, at most `MOST_INSTANCES`. Owned by the broker. Event-loop thread only."""

    def __init__(self, clock: Clock, max_bytes: int, options_of: Callable[[], Iterable[Mapping[str, str]]]) -> None:
        self._clock = clock
        self.max_bytes = max_bytes
        self._options_of = options_of
        self._scheduler = Scheduler(clock)
        self.receivers: list[ClientTelemetryReceiver] = []
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()
        self._subscriptions: list[Subscription] = []
        self._version = 0
        # counters
        self.throttled = 0
        self.exports = 0
        self.failed_exports = 0
        self._losses = LineLimit(logger, clock)
        self.reload()

    @property
    def instance_count(self) -> int:
        """How many clients are known."""
        return len(self._instances)

    def reload(self) -> None:
        """Read the CLIENT_METRICS resources again. Clients are told at their next request."""
        self._subscriptions = [Subscription(options) for options in self._options_of()]
        self._version += 1

    # --- the two APIs

    def subscriptions(self, instance_id: bytes, session: Session, client_id: str | None) -> Instance:
        """Return what a client is to push. Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        now_ms = self._clock.now_ms()
        instance = self._instance(instance_id, session, client_id, now_ms)
        excused = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if not instance.may_get(now_ms) and instance.last_error not in excused:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        instance_id: bytes,
        session: Session,
        client_id: str | None,
        *,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        metrics: bytes,
    ) -> None:
        """Take one push. Raises KafkaError as Kafka's ClientMetricsManager does."""
        if instance_id in RESERVED_UUIDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        now_ms = self._clock.now_ms()
        instance = self._instance(instance_id, session, client_id, now_ms)
        try:
            self._check(instance, now_ms, subscription_id, is_terminating, codec, len(metrics))
            if metrics:
                self._export(instance, codec, metrics, session.principal, is_terminating)
        except KafkaError as err:
            instance.last_error = err.code
            raise
        finally:
            instance.is_terminating = is_terminating
        instance.last_error = ErrorCode.NONE

    def _check(
        self, instance: Instance, now_ms: int, subscription_id: int, is_terminating: bool, codec: int, size_bytes: int
    ) -> None:
        if instance.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not instance.may_push(now_ms) and not is_terminating:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if not 0 <= codec <= HIGHEST_CODEC:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if size_bytes > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _export(self, instance: Instance, codec: int, metrics: bytes, principal: str, is_terminating: bool) -> None:
        try:
            if not self.receivers:
                return
            content = bytes(decompress(codec, metrics, self.max_bytes)) if codec else bytes(metrics)
            push = Push(instance.attributes, principal, content, instance.interval_ms, is_terminating)
            is_taken = True
            for receiver in self.receivers:
                try:
                    receiver.export_metrics(push)
                except PushDroppedError as err:
                    is_taken = False
                    self._lost(instance, err)
            self.exports += is_taken
        except Exception as err:
            # A receiver is not ours: whatever it raises concerns this push alone.
            self.failed_exports += 1
            self._lost(instance, err)
            raise KafkaError(ErrorCode.INVALID_RECORD) from err

    def _lost(self, instance: Instance, reason: Exception) -> None:
        self._losses.write("metrics of client %s are lost: %s", instance.attributes["client_instance_id"], reason)

    # --- instances

    def new_id(self) -> bytes:
        """Return an id for a client that has none."""
        while True:
            found = self._clock.random.uuid()
            if found not in self._instances:
                return found

    def _instance(self, instance_id: bytes, session: Session, client_id: str | None, now_ms: int) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None or instance.version < self._version or instance.expires_ms <= now_ms:
            if instance is not None and instance.expires_ms > now_ms:
                attributes = instance.attributes  # as of its first request
            else:
                attributes = _attributes(instance_id, session, client_id)
            metrics, interval_ms = wanted_by(self._subscriptions, attributes)
            subscription_id = _subscription_id(metrics, interval_ms, instance_id)
            instance = Instance(attributes, metrics, interval_ms, subscription_id, self._version)
            self._instances[instance_id] = instance
            if len(self._instances) > MOST_INSTANCES:
                self._forget(next(iter(self._instances)))
        self._instances.move_to_end(instance_id)
        session.client_instance_id = instance_id
        instance.expires_ms = now_ms + max(SHORTEST_EXPIRY_MS, 3 * instance.interval_ms)
        if not self._scheduler.is_scheduled("expiry"):
            self._scheduler.every("expiry", SWEEP_MS, self._expire)
        return instance

    def disconnected(self, session: Session) -> None:
        """Forget the client of a connection that closed."""
        if session.client_instance_id is not None:
            self._forget(session.client_instance_id)

    def _expire(self) -> None:
        now_ms = self._clock.now_ms()
        for instance_id in [one for one, instance in self._instances.items() if instance.expires_ms <= now_ms]:
            self._forget(instance_id)
        if not self._instances:
            self._scheduler.cancel("expiry")

    def _forget(self, instance_id: bytes) -> None:
        if self._instances.pop(instance_id, None) is None:
            return
        for receiver in self.receivers:
            try:
                receiver.forget_client(uuid_text(instance_id))
            except Exception:
                logger.exception("a receiver of metrics failed")

    def stop(self) -> None:
        """Close the receivers, at the broker's stop."""
        self._scheduler.stop()
        self._losses.close()
        for receiver in self.receivers:
            try:
                receiver.close()
            except Exception:
                logger.exception("a receiver of metrics failed")


def client_metrics_of(broker: Broker) -> ClientMetrics:
    """Return the broker's `ClientMetrics`, made at its first use. Raises ConfigError if `metric.reporters` names what
    is no receiver."""
    found = broker.client_metrics
    if found is None:
        config, image = broker.config, broker.metadata.image
        found = broker.client_metrics = ClientMetrics(broker.clock, config.telemetry_max_bytes, image.client_metrics)
        labels = labels_of(broker.cluster_id, broker.node_id)
        found.receivers = make_receivers(config.metric_reporters, config.given, labels)
    return found


def _attributes(instance_id: bytes, session: Session, client_id: str | None) -> dict[str, str]:
    found = {
        "client_instance_id": uuid_text(instance_id),
        "client_software_name": session.client_software_name,
        "client_software_version": session.client_software_version,
        "client_source_address": session.peer_host,
        "client_source_port": str(session.peer_port),
        "client_id": client_id or "",  # as Kafka reads one that is null
    }
    return {name: text[:MOST_NAME_CHARACTERS] for name, text in found.items()}


def _subscription_id(metrics: list[str], interval_ms: int, instance_id: bytes) -> int:
    """The CRC-32C of the set's text in Java and the interval, XORed with the hash code of the client's id."""
    value = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode()) ^ uuid_hash(instance_id)
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
