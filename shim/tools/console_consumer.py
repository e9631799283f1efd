"""`kafka-console-consumer.sh` (Kafka: ConsoleConsumer, DefaultMessageFormatter)."""

from __future__ import annotations

import math
import re
import signal
import sys
import time
from dataclasses import dataclass

from kafka_shim.client.reading import EARLIEST, LATEST, fetch, is_data, is_out_of_range, list_offsets
from kafka_shim.config import ConfigError
from kafka_shim.errors import ErrorCode
from kafka_shim.tools.console_producer import renamed
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import FLAG, NUMBER, VALUE, Options, UsageError, connect, properties_of
from kafka_shim.tools.reset_policy import ResetPolicy
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import RequestError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.client.records import Record
    from kafka_shim.tools.options import Given

    # Says where to begin with partitions.
    Begin = Callable[[Cluster, list[TopicPartition]], dict[TopicPartition, int]]

    class Source(Protocol):
        """Where the positions come from: fixed partitions, or a group."""

        def positions(self) -> dict[TopicPartition, int]: ...

        def read(self, each: TopicPartition, offset: int) -> None: ...

        def close(self) -> None: ...


DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
OPTIONS = Options(
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    {
        **dict.fromkeys(("bootstrap-server", "command-config", "topic", "include", "offset", "group"), VALUE),
        **dict.fromkeys(("consumer-property", "command-property", "consumer.config", "property"), VALUE),
        **dict.fromkeys(("formatter", "formatter-property", "formatter-config", "isolation-level"), VALUE),
        **dict.fromkeys(("key-deserializer", "value-deserializer"), VALUE),
        **dict.fromkeys(("partition", "max-messages", "timeout-ms"), NUMBER),
        **dict.fromkeys(("from-beginning", "skip-message-on-error", "enable-systest-events"), FLAG),
    },
)
RENAMED = (("consumer-property", "command-property"), ("consumer.config", "command-config"))
FORMATTER_RENAMED = (("property", "formatter-property"),)
SAID = "Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
ISOLATIONS = ("read_uncommitted", "read_committed")
WAIT_MS = 200
# How long a group is joined at least, however short the time without messages may be.
LEAST_JOIN_S = 1.0
# Java's deserializers by the end of their names; what they make of bytes is printed as Java prints it.
DESERIALIZERS: dict[str, Callable[[bytes], str]] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace"),
    "LongDeserializer": lambda data: str(int.from_bytes(data, signed=True)),
    "IntegerDeserializer": lambda data: str(int.from_bytes(data, signed=True)),
    "ShortDeserializer": lambda data: str(int.from_bytes(data, signed=True)),
}


@dataclass(frozen=True, slots=True)
class Formatter:
    """Writes a record as one line, by the properties of the formatter."""

    shown: frozenset[str]
    key_separator: bytes
    line_separator: bytes
    headers_separator: bytes
    null_literal: bytes
    read_key: Callable[[bytes], str] | None
    read_value: Callable[[bytes], str] | None
    read_headers: Callable[[bytes], str] | None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Formatter:
        defaults = {"value": "true"}
        names = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
        return cls(
            frozenset(
                name
                for name in names
                if properties.get(f"print.{name}", defaults.get(name, "")).strip().lower() == "true"
            ),
            properties.get("key.separator", "\t").encode(),
            properties.get("line.separator", "\n").encode(),
            properties.get("headers.separator", ",").encode(),
            properties.get("null.literal", "null").encode(),
            *(_deserializer(properties.get(f"{name}.deserializer")) for name in ("key", "value", "headers")),
        )

    def line(self, record: Record) -> bytes:
        parts = [part for name, part in self._parts(record) if name in self.shown]
        return self.key_separator.join(parts) + (self.line_separator if parts else b"")

    def _parts(self, record: Record) -> Iterator[tuple[str, bytes]]:
        kind = "LogAppendTime" if record.is_log_append_time else "CreateTime"
        yield "timestamp", b"%s:%d" % (kind.encode(), record.timestamp_ms)
        yield "partition", b"Partition:%d" % record.partition
        yield "offset", b"Offset:%d" % record.offset
        yield "delivery", b"Delivery:NOT_PRESENT"
        yield "epoch", b"Epoch:NOT_PRESENT"
        headers = [name.encode() + b":" + self._read(self.read_headers, value) for name, value in record.headers]
        yield "headers", self.headers_separator.join(headers) or b"NO_HEADERS"
        yield "key", self._read(self.read_key, record.key)
        yield "value", self._read(self.read_value, record.value)

    def _read(self, read: Callable[[bytes], str] | None, data: bytes | None) -> bytes:
        found = self.null_literal if data is None else data
        return found if read is None else read(found).encode()


def _deserializer(name: str | None) -> Callable[[bytes], str] | None:
    if not name:
        return None
    found = DESERIALIZERS.get(name.rpartition(".")[2])
    if found is None:
        known = ", ".join(DESERIALIZERS)
        sys.stderr.write(
            f"{name} cannot be loaded: this tool has no JVM, only {known}; bytes are printed as they are\n"
        )
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """What the properties of a consumer decide of which records are read, and what is committed."""

    reset: ResetPolicy
    read_committed: bool
    commits: bool

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Settings:
        """Raises ConfigError."""
        isolation = properties.get("isolation.level", ISOLATIONS[0])
        if isolation not in ISOLATIONS:
            known = ", ".join(reversed(ISOLATIONS))
            raise ConfigError(
                f"Invalid value {isolation} for configuration isolation.level: String must be one of: {known}"
            )
        commits = properties.get("enable.auto.commit", "true").strip().lower()
        if commits not in ("true", "false"):
            raise ConfigError(
                f"Invalid value {commits} for configuration enable.auto.commit: Expected value to be either true or "
                "false"
            )
        return cls(
            ResetPolicy.of(properties.get("auto.offset.reset", "latest")), isolation == ISOLATIONS[1], commits == "true"
        )


class Fixed:
    """Partitions that nobody else has to know of: one that is named, or all of the topics."""

    def __init__(self, cluster: Cluster, topics: Callable[[], list[str]], partition: int | None, begin: Begin) -> None:
        self._cluster = cluster
        self._topics = topics
        self._partition = partition
        self._begin = begin
        self._positions: dict[TopicPartition, int] = {}
        self._looked_at = 0.0

    def positions(self) -> dict[TopicPartition, int]:
        # New topics and partitions are read from their beginning, as a group would.
        if not self._positions or time.monotonic() - self._looked_at > 5:
            begin = ResetPolicy("earliest").offsets if self._positions else self._begin
            self._looked_at = time.monotonic()
            found = [
                (name, number)
                for name in self._topics()
                for number in self._cluster.partitions(name)
                if self._partition in (None, number)
            ]
            new = [each for each in found if each not in self._positions]
            self._positions |= begin(self._cluster, new)
        return self._positions

    def read(self, each: TopicPartition, offset: int) -> None:
        self._positions[each] = offset

    def close(self) -> None:
        pass


class Interrupted(Exception):
    """The process is asked to end."""


def run(given: Given) -> int:
    _check(given)
    renamed(given, RENAMED, SAID)
    formatter, extra = _formatter(given), properties_of(given.all("command-property"))
    path = given.one("command-config")
    from kafka_shim.config import read_properties

    properties = {**(read_properties(path) if path else {}), **extra}
    groups = {name for name in (given.one("group"), properties.get("group.id")) if name}
    if len(groups) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {', '.join(repr(name) for name in sorted(groups))}"
        )
    if groups and given.has("partition"):
        raise UsageError("Options group and partition cannot be specified together.")
    reset = properties.setdefault("auto.offset.reset", "earliest" if given.has("from-beginning") else "latest")
    if given.has("from-beginning") and reset != "earliest":
        sys.stderr.write(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option\n"
        )
        return 1
    if given.has("isolation-level"):
        properties["isolation.level"] = given.text("isolation-level")
    settings = Settings.of(properties)
    begin = _begin(given, settings.reset)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:  # which a JVM leaves ignored
        signal.signal(signal.SIGTERM, _interrupt)
    count = 0
    with connect(given, properties.get("client.id", "console-consumer"), extra) as cluster:
        source = _source(cluster, given, groups, begin, settings.commits)
        try:
            for record in _records(cluster, source, given, settings):
                count += 1
                sys.stdout.buffer.write(formatter.line(record))
                sys.stdout.buffer.flush()
        except (Interrupted, KeyboardInterrupt):
            cluster.close()  # an answer may be under way
        except BrokenPipeError:
            sys.stderr.write("Unable to write to standard out, closing consumer.\n")
        except WireClientError as err:
            sys.stderr.write(f"Error processing message, terminating consumer process: {message_of(err)}\n")
        finally:
            _close(cluster, source)
            sys.stderr.write(f"Processed a total of {count} messages\n")
    return 0


def _close(cluster: Cluster, source: Source) -> None:
    """What goes wrong here does not hide how the reading ended."""
    try:
        try:
            source.close()
        except WireClientError as err:
            if not cluster.drop_lost(err):
                raise
            source.close()
    except WireClientError as err:
        sys.stderr.write(f"Error when closing the consumer: {message_of(err)}\n")


def _interrupt(*_: object) -> None:
    raise Interrupted


def _check(given: Given) -> None:
    given.exactly_one("topic", "include")
    if given.has("partition"):
        given.require("topic")
        if given.has("from-beginning") and given.has("offset"):
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif given.has("offset"):
        raise UsageError("The partition is required when offset is specified.")
    given.require("bootstrap-server")


def _formatter(given: Given) -> Formatter:
    from kafka_shim.config import read_properties

    name = given.text("formatter", DEFAULT_FORMATTER)
    if name not in (DEFAULT_FORMATTER, "kafka.tools.DefaultMessageFormatter"):
        raise UsageError(f"{name} cannot be loaded: this tool has no JVM, only {DEFAULT_FORMATTER}")
    if given.has("property") and given.has("formatter-property"):
        raise UsageError("Options --property and --formatter-property cannot be specified together.")
    renamed(given, FORMATTER_RENAMED, SAID)
    path = given.one("formatter-config")
    properties = read_properties(path) if path else {}
    for part in ("key", "value"):
        if value := given.one(f"{part}-deserializer"):
            properties[f"{part}.deserializer"] = value
    return Formatter.of({**properties, **properties_of(given.all("formatter-property"))})


def _begin(given: Given, reset: ResetPolicy) -> Begin:
    text = given.one("offset")
    if text is None:
        if not given.has("partition"):
            return reset.offsets
        text = "earliest" if given.has("from-beginning") else "latest"
    if text.lower() in ("earliest", "latest"):
        return ResetPolicy(text.lower()).offsets
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return lambda _, partitions: dict.fromkeys(partitions, int(text))


def _source(cluster: Cluster, given: Given, groups: set[str], begin: Begin, commits: bool) -> Source:
    pattern = _pattern(given.text("include")) if given.has("include") else None
    topic = given.text("topic")

    def topics() -> list[str]:
        if pattern is not None:  # Kafka's exclude.internal.topics is true
            found = cluster.metadata().topics
            return [one.name for one in found if not one.is_internal and pattern.fullmatch(one.name)]
        return [topic] if _exists(cluster, topic) else []

    if not groups:
        return Fixed(cluster, topics, given.number("partition"), begin)
    from kafka_shim.client.classic_membership import JOIN_S, ClassicMember

    quiet_ms = given.number("timeout-ms")
    join_s = JOIN_S if quiet_ms is None or quiet_ms < 0 else min(JOIN_S, max(LEAST_JOIN_S, quiet_ms / 1000))
    return ClassicMember(
        cluster, groups.pop(), topics, begin=lambda fresh: begin(cluster, fresh), commits=commits, join_s=join_s
    )


def _pattern(text: str) -> re.Pattern[str]:
    """Raises UsageError."""
    try:
        return re.compile(text)
    except re.error as err:
        raise UsageError(f"{text} is an invalid regular expression: {err}") from None


def _exists(cluster: Cluster, topic: str) -> bool:
    """Whether there is the topic by now: asking makes it, where the broker makes topics by itself."""
    (found,) = cluster.metadata([topic], create=True).topics
    return found.error_code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


def _records(cluster: Cluster, source: Source, given: Given, settings: Settings) -> Iterator[Record]:
    """Records as they come: as many as asked for, until none came for the time that is given."""
    most, quiet_ms = given.number("max-messages"), given.number("timeout-ms")
    left, last = math.inf if most is None or most == -1 else most, time.monotonic()
    while left > 0:
        try:
            for record in _round(cluster, source, settings):
                yield record
                source.read((record.topic, record.partition), record.offset + 1)
                last = time.monotonic()
                left -= 1
                if left <= 0:
                    return
        except WireClientError as err:
            if not cluster.drop_lost(err):
                raise
            time.sleep(WAIT_MS / 1000)
        if quiet_ms is not None and quiet_ms >= 0 and (time.monotonic() - last) * 1000 > quiet_ms:
            raise WireClientError("no message came in time (org.apache.kafka.common.errors.TimeoutException)")


def _round(cluster: Cluster, source: Source, settings: Settings) -> Iterator[Record]:
    positions = dict(source.positions())
    if not positions:
        time.sleep(WAIT_MS / 1000)
        return
    try:
        answers = fetch(cluster, positions, max_wait_ms=WAIT_MS, read_committed=settings.read_committed)
    except RequestError as err:
        if not is_out_of_range(err):
            raise
        first = list_offsets(cluster, dict.fromkeys(positions, EARLIEST))
        last = list_offsets(cluster, dict.fromkeys(positions, LATEST))
        outside = [each for each, offset in positions.items() if not first[each] <= offset <= last[each]]
        for each, offset in settings.reset.offsets(cluster, outside).items():
            source.read(each, offset)
        return
    for answer in answers:
        each = answer.topic, answer.partition
        yield from (record for record in answer.records if is_data(record))
        source.read(each, answer.next_offset)


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
