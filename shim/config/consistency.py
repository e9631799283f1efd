"""What the options of a broker must be to each other (KafkaConfig: validateValues; GroupCoordinatorConfig,
ShareGroupConfig; of changes also DynamicLogConfig). Kafka neither starts with others nor stores them."""

from __future__ import annotations

from operator import ge, le, lt

from kafka_shim.config.defaults import BrokerDefaults, ConfigError
from kafka_shim.config.table import BROKER_OPTIONS, SYNONYMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

UNLIMITED = -1
# Of a local retention: that of the topic.
AS_RETENTION = -2
MEGABYTE = 1024 * 1024
# Of consumer groups, by their names and by those of their classes, which Kafka takes too.
_ASSIGNORS = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_SHARE_ASSIGNORS = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
# Of options with limits, those that change while a broker runs.
_INTERVALS = tuple(f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams"))
_LOCAL_RETENTION = {"log.local.retention.ms": "log.retention.ms", "log.local.retention.bytes": "log.retention.bytes"}


def _of_group(kind: str) -> Iterator[tuple[str, str, str]]:
    """(option, comparison, option) of one kind of groups, in Kafka's order."""
    for name, least, most in (
        ("heartbeat.interval.ms", "min.heartbeat.interval.ms", "max.heartbeat.interval.ms"),
        ("session.timeout.ms", "min.session.timeout.ms", "max.session.timeout.ms"),
        ("assignment.interval.ms", "min.assignment.interval.ms", "max.assignment.interval.ms"),
    ):
        if name == "assignment.interval.ms":
            yield f"{kind}.heartbeat.interval.ms", "less than", f"{kind}.session.timeout.ms"
        yield f"{kind}.{most}", "greater than or equal to", f"{kind}.{least}"
        yield f"{kind}.{name}", "greater than or equal to", f"{kind}.{least}"
        yield f"{kind}.{name}", "less than or equal to", f"{kind}.{most}"


_HOLDS = {"less than": lt, "less than or equal to": le, "greater than or equal to": ge}
_COMPARED = (
    *_of_group("group.consumer"),
    *_of_group("group.share"),
    *_of_group("group.streams"),
    ("group.streams.num.standby.replicas", "less than or equal to", "group.streams.max.standby.replicas"),
    ("group.share.max.delivery.count.limit", "greater than or equal to", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "greater than or equal to", "group.share.min.delivery.count.limit"),
    (
        "group.share.max.partition.max.record.locks",
        "greater than or equal to",
        "group.share.partition.max.record.locks",
    ),
    (
        "group.share.partition.max.record.locks",
        "greater than or equal to",
        "group.share.min.partition.max.record.locks",
    ),
    ("group.share.record.lock.duration.ms", "greater than or equal to", "group.share.min.record.lock.duration.ms"),
    ("group.share.max.record.lock.duration.ms", "greater than or equal to", "group.share.record.lock.duration.ms"),
    ("group.share.max.share.sessions", "greater than or equal to", "group.share.max.size"),
)


def check_start(options: Mapping[str, str]) -> None:
    """Check the options that a broker starts with. Raises ConfigError."""
    for name, comparison, other in _COMPARED:
        if name not in options and other not in options:
            continue
        value, limit = _value(options, name), _value(options, other)
        if not _HOLDS[comparison](value, limit):
            raise ConfigError(f"{name} ({value}) must be {comparison} {other} ({limit})")
    _check_protocols(options)
    _check_codecs(options)
    _check_share_assignor(options)
    _check_voters(options)
    _check_node_id(options)
    check_values(options)
    if not _value(options, "log.cleaner.threads"):
        raise ConfigError("Log cleaner threads should be at least 1")
    queued, largest = (_value(options, name) for name in ("queued.max.request.bytes", "socket.request.max.bytes"))
    if 0 < queued < largest:
        raise ConfigError("queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
    delay_ms, idle_ms = (
        _value(options, name) for name in ("connection.failed.authentication.delay.ms", "connections.max.idle.ms")
    )
    if 0 <= idle_ms <= delay_ms:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
            f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )
    if _value(options, "replica.fetch.wait.max.ms") > _value(options, "replica.socket.timeout.ms"):
        raise ConfigError(
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary "
            "socket timeouts"
        )
    if _value(options, "replica.fetch.wait.max.ms") > _value(options, "replica.lag.time.max.ms"):
        raise ConfigError(
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
            "frequent changes in ISR"
        )


def check_intervals(options: Mapping[str, str]) -> None:
    """Check what changes while the broker runs against the limits of the start (GroupCoordinatorConfig). `options` are
    all that are in force but the defaults. Raises ConfigError."""
    for name, comparison, other in _COMPARED:
        if name in _INTERVALS and not _HOLDS[comparison](_value(options, name), _value(options, other)):
            raise ConfigError(f"{name} must be {comparison} {other}")


def within_limits(stored: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the stored options with those that limits of a later start exclude at the limit
    (GroupCoordinatorConfig.clampDynamicConfigs)."""
    found = dict(stored)
    for name in _INTERVALS:
        if name in stored:
            kind = name.removesuffix("assignment.interval.ms")
            least, most = (_value(given, f"{kind}{bound}.assignment.interval.ms") for bound in ("min", "max"))
            value = _value(stored, name)
            if not least <= value <= most:
                found[name] = str(min(max(value, least), most))
    return found


def check_values(options: Mapping[str, str]) -> None:
    """Check what also holds for options that change while the broker runs. `options` are all that are in force but the
    defaults. Raises ConfigError."""
    if _time_ms(options, "segment.ms") < 1:
        raise ConfigError("log.roll.ms must be greater than or equal to 1")
    if _time_ms(options, "segment.jitter.ms") < 0:
        raise ConfigError("log.roll.jitter.ms must be greater than or equal to 0")
    if _time_ms(options, "retention.ms") == 0:  # every negative value means no limit
        raise ConfigError("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    threads = _value(options, "log.cleaner.threads")
    if threads > 0 and _value(options, "log.cleaner.dedupe.buffer.size") // threads <= MEGABYTE:
        raise ConfigError("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    if not _value(options, "max.connections.per.ip") and not options.get("max.connections.per.ip.overrides"):
        raise ConfigError(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        )


def check_local_retention(options: Mapping[str, str], changed: Collection[str]) -> None:
    """Check that a change leaves a local retention within the whole one. Raises ConfigError."""
    for local, whole in _LOCAL_RETENTION.items():
        if local not in changed and whole not in changed:
            continue
        value = _value(options, local)
        limit = _time_ms(options, "retention.ms") if whole.endswith(".ms") else _value(options, whole)
        if limit < 0 or value == AS_RETENTION:
            continue
        if value == UNLIMITED:
            reason = f"Value must not be -1 as {whole} value is set as {limit}."
        elif value > limit:
            reason = f"Value must not be more than {whole} property value: {limit}"
        else:
            continue
        raise ConfigError(f"Invalid value {value} for configuration {local}: {reason}")


def _check_protocols(options: Mapping[str, str]) -> None:
    if "classic" not in _value(options, "group.coordinator.rebalance.protocols"):
        raise ConfigError("group.coordinator.rebalance.protocols: Disabling the 'classic' protocol is not supported.")
    assignors = _value(options, "group.consumer.assignors")
    unknown = [one for one in assignors if one not in _ASSIGNORS]
    if unknown or not assignors:
        found = unknown[0] if unknown else "an empty list"
        raise ConfigError(f"group.consumer.assignors: {found} is none of the assignors here, uniform, range")


def _check_share_assignor(options: Mapping[str, str]) -> None:
    name = "group.share.assignors"
    assignors = _value(options, name)
    for one in assignors:
        if one not in _SHARE_ASSIGNORS:
            raise ConfigError(f"{name}: Class {one} cannot be found")
    if len(assignors) != 1:
        raise ConfigError(f"{name} must contain exactly one assignor, but found {len(assignors)}")


def _check_node_id(options: Mapping[str, str]) -> None:
    if {"node.id", "broker.id"} <= options.keys() and _value(options, "node.id") != _value(options, "broker.id"):
        raise ConfigError("You must set `node.id` to the same value as `broker.id`.")


def _check_codecs(options: Mapping[str, str]) -> None:
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        if _value(options, name) not in range(5):
            raise ConfigError(f"{name}: Unknown compression type id: {_value(options, name)}")


def assignor_names(given: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the assignors that a valid `group.consumer.assignors` lists by name or class."""
    return tuple(_ASSIGNORS[one] for one in given)


def _check_voters(options: Mapping[str, str]) -> None:
    voters = [voter.partition("@")[0].strip() for voter in options.get("controller.quorum.voters", "").split(",")]
    node_id = options.get("node.id") or options.get("broker.id") or str(BrokerDefaults.node_id)
    if any(voters) and "controller" in options.get("process.roles", "controller") and node_id.strip() not in voters:
        raise ConfigError(
            f"If process.roles contains the 'controller' role, the node id {node_id} must be included in the set of "
            f"voters controller.quorum.voters={', '.join(voters)}"
        )


def _value(options: Mapping[str, str], name: str) -> Any:
    option = BROKER_OPTIONS[name]
    text = options.get(name)
    return option.parse((option.default or "") if text is None else text)


def _time_ms(options: Mapping[str, str], topic_option: str) -> int:
    """The time that a topic has of this option by the broker's, in the unit that is given."""
    synonyms = SYNONYMS[topic_option]
    name, factor = next((each for each in synonyms if each[0] in options), synonyms[-1])
    return int(_value(options, name)) * factor
