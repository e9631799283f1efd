"""The tables of all options of Kafka 4.3.1: type, default, check, who may change them and when, and what they do here.

`BROKER_OPTIONS`, `TOPIC_OPTIONS`, `GROUP_OPTIONS` and `CLIENT_METRICS_OPTIONS` map a name to its `Option`. The facts
are transcribed (`generated_rows.py`), the words are ours (`docs.py`). Imported when somebody gives an
option or asks for one; a start with defaults does without.
"""

from __future__ import annotations

import re

from kafka_shim.config import effects, generated_rows
from kafka_shim.config.defaults import BrokerDefaults, ConfigError
from kafka_shim.config.docs import DOCS
from kafka_shim.config.doubles import BLANKS, double_text, parse_double

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Value = bool | int | float | str | tuple[str, ...] | None

# How a broker option may change at run time.
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"

# topic option -> (broker option, factor to the topic option's unit), in order of precedence
# (ServerTopicConfigSynonyms). Other topic options have no broker option as default.
HOURS, MINUTES = 3_600_000, 60_000
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOURS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOURS)),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", MINUTES), ("log.retention.hours", HOURS)),
    "max.message.bytes": (("message.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "preallocate": (("log.preallocate", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
}

JAVA_CLASS = "a Java class cannot be loaded here"
# Options that promise something that is not built -> why. A value other than the default prevents the start.
MISSING = {
    "client.quota.callback.class": JAVA_CLASS,
    "security.providers": JAVA_CLASS,
    "ssl.engine.factory.class": JAVA_CLASS,
}
UNIMPLEMENTED_SECURITY = frozenset(MISSING)
# Kafka's own classes for such options, which do what is done here.
BUILT_IN = {"ssl.engine.factory.class": "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"}
# Options of one listener, read through `ListenerOptions` and not as attributes of `BrokerConfig`. They may have the
# prefix `listener.name.NAME.`, and those of SASL `listener.name.NAME.MECHANISM.`.
LISTENER_OPTIONS = frozenset(
    {
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "max.connection.creation.rate",
        "max.connections",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.server.callback.handler.class",
        "sasl.server.max.receive.size",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.principal.mapping.rules",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Not in Kafka's table: its authorizer reads them from the file. Without an authorizer they have no effect.
AUTHORIZER_OPTIONS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
# The same for options of tiered storage.
UNIMPLEMENTED_STORAGE = frozenset(
    {
        "remote.log.storage.system.enable",
        "remote.storage.enable",
    }
)


def refusal(name: str) -> str | None:
    """Return what is missing for a value other than the default of this option, or None."""
    if name in MISSING:
        return f"{name}: {MISSING[name]}"
    if name in UNIMPLEMENTED_STORAGE:
        return f"{name} needs tiered storage, which is not implemented yet"
    reason = effects.REFUSED.get(name)
    return f"{name}: {reason}" if reason else None


class Option:
    """One option: its facts, its documentation, and `parse`, which reads a text as Kafka's ConfigDef does."""

    __slots__ = (
        "check",
        "default",
        "doc",
        "idle_reason",
        "importance",
        "is_internal",
        "is_required",
        "kind",
        "name",
        "update",
    )

    def __init__(self, row: tuple[str | None, ...], doc: str, idle_reason: str = "") -> None:
        name, kind, default, check, importance, update = row[:6]
        self.name: str = name or ""
        self.kind: str = kind or ""
        self.is_required = default == generated_rows.REQUIRED
        self.default = None if self.is_required else default
        self.check: str = check or ""
        self.importance: str = importance or ""
        self.update: str = update or ""
        self.is_internal = len(row) > 6
        # Why the option has no effect here, or an empty string.
        self.idle_reason = idle_reason
        self.doc = f"Without effect here: {idle_reason}." if idle_reason else doc

    def is_default(self, text: str) -> bool:
        """Whether this valid text means the default."""
        if self.default is None:
            return not text
        return self.parse(text) == self.parse(self.default)

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind == "PASSWORD"

    def parse(self, text: str) -> Value:
        """Return the typed value; lists become tuples. Raises ConfigError with Kafka's message."""
        given, text = text, text.strip(BLANKS)
        value: Value
        if self.kind == "BOOLEAN":
            if text.lower() not in ("true", "false"):
                raise self._error(given, "Expected value to be either true or false")
            value = text.lower() == "true"
        elif self.kind in _RANGES:
            lowest, highest = _RANGES[self.kind]
            value = int(text) if _NUMBER.fullmatch(text) else highest + 1
            if not lowest <= value <= highest:
                raise self._error(given, f"Not a number of type {self.kind}")
        elif self.kind == "DOUBLE":
            try:
                value = parse_double(text)
            except ValueError:
                raise self._error(given, "Not a number of type DOUBLE") from None
        elif self.kind == "LIST":
            value = tuple(part.strip(_WHITESPACE) for part in text.split(",")) if text else ()
            if not value and self.name in _NOT_EMPTY:
                raise ConfigError(
                    f"Configuration '{self.name}' must not be empty. Valid values include: any non-empty value"
                )
            if self.name in _SETS:
                if "" in value:
                    self._check(text, value[: value.index("")])
                    raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
                value = tuple(dict.fromkeys(value))
        else:
            value = text
        self._check(text, value)
        return value

    def _check(self, text: str, value: Any) -> None:
        if self.name == "max.connections.per.ip.overrides":
            self._counts_by_host(text)
        check = self.check
        if not check:
            return
        if check.startswith("(case insensitive)"):
            self._one_of(
                text,
                [value.upper()],
                check.removeprefix("(case insensitive) "),
                "String must be one of (case insensitive): ",
            )
        elif check.startswith("[partitionId]"):
            self._throttled(text, value)
        elif "..." in check and "by_duration" not in check:
            self._in_range(text, value, check)
        elif check.startswith("[") and "by_duration" not in check:
            values = value if isinstance(value, tuple) else [value]
            self._one_of(text, values, check, "String must be one of: ")
        elif check == "non-empty string" and not value:
            raise self._error(text, "String must be non-empty")

    def _counts_by_host(self, text: str) -> None:
        for part in filter(None, (one.strip() for one in text.split(","))):
            _, colon, count = part.rpartition(":")
            if not colon:
                reason = f"begin 0, end -1, length {len(part)}"
            elif not _is_int32(count.strip()):
                reason = f'For input string: "{count.strip()}"'
            else:
                continue
            raise ConfigError(f"Error parsing configuration property '{self.name}': {reason}")

    def _one_of(self, text: str, values: Iterable[str], check: str, words: str) -> None:
        allowed = check.strip("[]").split(", ")
        for value in values:
            if value not in allowed:
                raise self._error(value, words + ", ".join(allowed))

    def _in_range(self, text: str, value: Any, check: str) -> None:
        bounds, _, exception = check.partition(" or ")
        if exception and str(value) == exception:
            return
        lowest, _, highest = bounds.strip("[]").partition(",...")
        highest = highest.removeprefix(",")
        if exception and not int(lowest) <= value <= int(highest):
            raise self._error(text, f"Value must be between {lowest} and {highest} or equal to {exception}")
        shown = double_text(value) if isinstance(value, float) else str(value)
        if value < float(lowest):
            raise self._error(shown, f"Value must be at least {lowest}")
        if highest and value > float(highest):
            raise self._error(shown, f"Value must be no more than {highest}")

    def _throttled(self, text: str, value: tuple[str, ...]) -> None:
        for part in value if value != ("*",) else ():
            if part and _REPLICA.fullmatch(part) is None:
                raise self._error(
                    f"[{', '.join(value)}]",
                    f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.check}",
                )

    def _error(self, text: str, reason: str) -> ConfigError:
        shown = "[hidden]" if self.is_sensitive else text
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {reason}")


# Lists whose values count once and are not empty (ConfigDef.ValidList).
_SETS = frozenset(
    {
        "cleanup.policy",
        "config.providers",
        "cordoned.log.dirs",
        "early.start.listeners",
        "group.share.assignors",
        "kafka.metrics.reporters",
        "listeners",
        "log.cleanup.policy",
        "log.dir",
        "log.dirs",
        "match",
        "metric.reporters",
        "metrics",
        "process.roles",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.oauthbearer.expected.audience",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
    }
)
# Those that Kafka refuses without a value. Without `controller.listener.names` this broker starts.
_NOT_EMPTY = frozenset({"group.share.assignors", "listeners", "log.dir", "log.dirs", "process.roles"})
_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,1000}")  # digits of any script, as in Java
_WHITESPACE = " \t\n\v\f\r"  # of Java's patterns: what may stand beside the commas of a list
_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_RANGES = {
    "SHORT": (-(2**15), 2**15 - 1),
    "INT": (-(2**31), 2**31 - 1),
    "LONG": (-(2**63), 2**63 - 1),
}


def _is_int32(text: str) -> bool:
    lowest, highest = _RANGES["INT"]
    return _INT.fullmatch(text) is not None and len(text) <= 11 and lowest <= int(text) <= highest


def _option(row: tuple[str | None, ...], idle: dict[str, str]) -> Option:
    name = row[0] or ""
    return Option(row, DOCS.get(name) or DOCS.get(_TOPIC_OPTION_OF.get(name, ""), ""), idle.get(name, ""))


def _options(rows: Iterable[tuple[str | None, ...]], reasons: dict[str, tuple[str, ...]]) -> dict[str, Option]:
    idle = effects.by_name(reasons)
    return {row[0] or "": _option(row, idle) for row in rows}


_TOPIC_OPTION_OF = {broker: topic for topic, synonyms in SYNONYMS.items() for broker, _ in synonyms}
# Options of this project. DescribeConfigs shows them only where they are set, as it does internal ones.
_OWN_ROWS: tuple[tuple[str | None, ...], ...] = (
    ("kafka.shim.disconnect.changed.users", "BOOLEAN", "false", "", "LOW", READ_ONLY, "internal"),
    ("kafka.shim.http.bearer.token", "PASSWORD", None, "", "LOW", READ_ONLY, "internal"),
    ("kafka.shim.http.console", "BOOLEAN", "false", "", "LOW", READ_ONLY, "internal"),
    ("kafka.shim.http.console.changes", "BOOLEAN", "false", "", "LOW", READ_ONLY, "internal"),
    ("kafka.shim.http.console.public.url", "STRING", "", None, "LOW", READ_ONLY, "internal"),
    ("kafka.shim.http.listener", "STRING", "", None, "LOW", READ_ONLY, "internal"),
    ("kafka.shim.login.timeout.ms", "INT", "30000", "[1,...]", "LOW", READ_ONLY, "internal"),
)
# Options of Kafka whose default is another here (docs/differences.md).
_OWN_DEFAULTS = {
    name: str(getattr(BrokerDefaults, name.replace(".", "_")))
    for name in ("group.initial.rebalance.delay.ms", "socket.listen.backlog.size")
}
_BROKER_ROWS = tuple((*row[:2], _OWN_DEFAULTS.get(row[0] or "", row[2]), *row[3:]) for row in generated_rows.BROKER)
# Each table is in the order in which Kafka defines and parses its options.
BROKER_OPTIONS = _options((*_BROKER_ROWS, *_OWN_ROWS), effects.BROKER_IDLE)
TOPIC_OPTIONS = _options(generated_rows.TOPIC, effects.TOPIC_IDLE)
GROUP_OPTIONS = _options(generated_rows.GROUP, effects.GROUP_IDLE)
CLIENT_METRICS_OPTIONS = _options(generated_rows.CLIENT_METRICS, effects.CLIENT_METRICS_IDLE)
# The options of Kafka's producers, consumers and Admin.
CLIENT_NAMES = frozenset(generated_rows.CLIENT_NAMES)
# Broker options that can only be stored dynamically, not set in server.properties (QuotaConfig.brokerQuotaConfigs).
# `kafka-reassign-partitions --throttle` sets them. DescribeConfigs returns those that are stored.
QUOTA_OPTIONS = _options(
    (
        (name, "LONG", str(2**63 - 1), "[0,...]", "MEDIUM", CLUSTER_WIDE)
        for name in (
            "follower.replication.throttled.rate",
            "leader.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    ),
    effects.BROKER_IDLE,
)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion for an unknown name, as the end of a sentence, or an empty string if no name is similar: at a
    glance, or less so with a word in common."""
    from difflib import get_close_matches

    known, words = list(names), set(name.split("."))
    close = get_close_matches(name, known, n=1, cutoff=0.8) or get_close_matches(
        name, [one for one in known if not words.isdisjoint(one.split("."))], n=1, cutoff=0.6
    )
    return f"; did you mean {close[0]}?" if close else ""


def check_topic_options(options: Iterable[tuple[str, str | None]]) -> None:
    """Raises ConfigError for the first topic option that is unknown, has the wrong type, is out of range or is not
    implemented. A value of None means the default."""
    given: dict[str, Value] = {}
    for name, text in options:
        option = TOPIC_OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"Unknown topic config name: {name}")
        if text is None:
            raise ConfigError(f"Null value not supported for topic configs: {name}")
        given[name] = option.parse(text)
    if given.get("remote.storage.enable"):
        raise ConfigError("remote.storage.enable: tiered storage is not implemented")
    lowest, highest = given.get("min.compaction.lag.ms"), given.get("max.compaction.lag.ms")
    if isinstance(lowest, int) and isinstance(highest, int) and lowest > highest:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({lowest}) > max.compaction.lag.ms ({highest})"
        )
