"""`kafka-console-producer.sh` (Kafka: ConsoleProducer, LineMessageReader)."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass

from kafka_shim.client.lines import Lines
from kafka_shim.client.writing import CODECS, Producer
from kafka_shim.randomness import Randomness
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import FLAG, NUMBER, OPTIONAL, VALUE, Options, UsageError, connect, properties_of
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.tools.options import Given

OPTIONS = Options(
    "This tool helps to read data from standard input and publish it to Kafka.",
    {
        **dict.fromkeys(("bootstrap-server", "command-config", "topic", "property", "reader-property"), VALUE),
        **dict.fromkeys(("reader-config", "line-reader", "producer-property", "command-property"), VALUE),
        **dict.fromkeys(("producer.config", "request-required-acks"), VALUE),
        **dict.fromkeys(("batch-size", "message-send-max-retries", "retry-backoff-ms", "timeout"), NUMBER),
        **dict.fromkeys(("request-timeout-ms", "metadata-expiry-ms", "max-block-ms", "max-memory-bytes"), NUMBER),
        **dict.fromkeys(("max-partition-memory-bytes", "socket-buffer-size"), NUMBER),
        "compression-codec": OPTIONAL,
        "sync": FLAG,
    },
)
# The old name of an option, the new one.
RENAMED = (
    ("producer-property", "command-property"),
    ("producer.config", "command-config"),
    ("property", "reader-property"),
)
BATCH_BYTES = 16 << 10
# How long a record waits for others, and at least.
LINGER_MS, LEAST_LINGER_MS = 1000, 50
SIGNALS = (signal.SIGTERM, signal.SIGINT)
LINE_READER = "org.apache.kafka.tools.LineMessageReader"
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
SEPARATORS = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
)


class ReadError(Exception):
    """A line is not what the properties of the reader promise."""


@dataclass(slots=True)
class LineReader:
    """Makes a record of a line: headers, key and value, by the properties of the reader."""

    parse_key: bool
    parse_headers: bool
    ignore_error: bool
    key_separator: str
    headers_delimiter: str
    headers_separator: str
    headers_key_separator: str
    null_marker: str | None
    line_number: int = 0

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LineReader:
        """Raises ReadError for separators that cannot be told apart."""

        def is_true(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        defaults = {"headers.delimiter": "\t", "headers.separator": ",", "headers.key.separator": ":"}
        values = {name: properties.get(name, default) for name, default in defaults.items()}
        values["key.separator"] = properties.get("key.separator", "\t")
        marker = properties.get("null.marker")
        for one, other in SEPARATORS:
            if values[one] == values[other]:
                raise ReadError(f"{one} and {other} may not be equal")
        for name in ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator"):
            if values[name] == marker:
                raise ReadError(f"null.marker and {name} may not be equal")
        return cls(
            is_true("parse.key"),
            is_true("parse.headers"),
            is_true("ignore.error"),
            values["key.separator"],
            values["headers.delimiter"],
            values["headers.separator"],
            values["headers.key.separator"],
            marker,
        )

    def record(self, line: str) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
        """Returns key, value and headers. Raises ReadError."""
        self.line_number += 1
        headers, rest = self._cut(self.parse_headers, line, self.headers_delimiter, "headers delimiter", line)
        key, value = self._cut(self.parse_key, rest, self.key_separator, "key separator", line)
        is_plain = headers is None or headers == self.null_marker
        found = [] if is_plain or headers is None else [self._header(pair) for pair in self._pairs(headers)]
        return self._bytes(key), self._bytes(value), found

    def _pairs(self, headers: str) -> list[str]:
        """As Java's split, which drops what is empty at the end."""
        found = headers.split(self.headers_separator)
        if len(found) > 1:
            while found and not found[-1]:
                found.pop()
        return found

    def _cut(self, is_wanted: bool, text: str, mark: str, name: str, line: str) -> tuple[str | None, str]:
        if not is_wanted:
            return None, text
        head, found, tail = text.partition(mark)
        if found:
            return head, tail
        if self.ignore_error:
            return None, text
        raise ReadError(f"No {name} found on line number {self.line_number}: '{line}'")

    def _header(self, pair: str) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self.headers_key_separator)
        if not found:
            if self.ignore_error:
                return pair, None
            raise ReadError(f"No header key separator found in pair '{pair}' on line number {self.line_number}")
        if name == self.null_marker:
            raise ReadError(
                f"Header keys should not be equal to the null marker '{self.null_marker}' as they can't be null"
            )
        return name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self.null_marker else text.encode()


def run(given: Given) -> int:
    from kafka_shim.config import read_properties

    given.require("topic")
    renamed(
        given, RENAMED, "Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead."
    )
    if given.has("max-partition-memory-bytes"):
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. Use "
            "--batch-size instead."
        )
    given.require("bootstrap-server")
    path = given.one("command-config")
    properties = {**(read_properties(path) if path else {}), **properties_of(given.all("command-property"))}
    acks = given.one("request-required-acks") or properties.get("acks", "-1")
    codec = (given.text("compression-codec", "gzip") if given.has("compression-codec") else "none").lower()
    if acks not in ACKS or codec not in CODECS:
        raise UsageError(f"acks is one of {', '.join(ACKS)} and the codec one of {', '.join(CODECS)}")
    reader_class = given.text("line-reader", LINE_READER)
    if reader_class != LINE_READER:
        sys.stderr.write(f"{reader_class} cannot be loaded: this tool has no JVM, only {LINE_READER}\n")
        return 1
    config = given.one("reader-config")
    try:
        reader = LineReader.of(
            {**(read_properties(config) if config else {}), **properties_of(given.all("reader-property"))}
        )
        with connect(given, "console-producer", properties_of(given.all("command-property"))) as cluster:
            producer = Producer(cluster, acks=ACKS[acks], compression=codec, reconnects=True)
            return _send_lines(cluster, producer, reader, given)
    except (ReadError, WireClientError) as err:
        sys.stderr.write(f"{message_of(err)}\n")
        return 1


class Sticky:
    """Records without key go to one partition until they fill a batch, then to another, as Java's producer does."""

    def __init__(self, cluster: Cluster, topic: str, batch_bytes: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._random = Randomness()
        self._numbers: list[int] = []
        self._partition = 0
        self._left = 0

    def partition(self, size: int) -> int:
        """Returns that of the next record without a key. Raises WireClientError as long as the partitions are not
        known; later their last look-up that was successful counts, and what is wrong is said of the batch."""
        if self._left <= 0:
            self._look_up()
            self._partition = self._numbers[int.from_bytes(self._random.bytes_of(4)) % len(self._numbers)]
            self._left = self._batch_bytes
        self._left -= size
        return self._partition

    def _look_up(self) -> None:
        try:
            self._numbers = self._cluster.patiently(
                lambda: self._cluster.partitions(self._topic, create=True), reconnects=not self._numbers
            )
        except WireClientError as err:
            if not self._numbers:
                raise
            self._cluster.drop_lost(err)


class Stop:
    """SIGTERM and Ctrl-C end the lines, so that what waits is sent, and `status` is what a shell makes of them. The
    second one ends the process. A signal that the process was started to ignore stays ignored, as by a JVM."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.status = 0
        self._taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in self._taken:
            signal.signal(number, self._stop)
        if self._taken:
            lines.hear_signals()

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.status = 128 + number
        for each in self._taken:
            signal.signal(each, signal.SIG_DFL)
        self._lines.stop()


def _send_lines(cluster: Cluster, producer: Producer, reader: LineReader, given: Given) -> int:
    sticky = Sticky(cluster, given.text("topic"), given.number("batch-size") or BATCH_BYTES)
    topic, is_console, is_sync = given.text("topic"), sys.stdin.isatty(), given.has("sync")
    linger_ms = given.number("timeout")
    linger_s = max(LEAST_LINGER_MS, LINGER_MS if linger_ms is None else linger_ms) / 1000
    lines = Lines(sys.stdin.buffer, linger_s, with_returns=True)
    stop, due_s = Stop(lines), 0.0
    if is_console:
        print(">", end="", flush=True)
    try:
        for raw in lines:
            if raw is None:
                _flush(producer)
                due_s = 0.0
                continue
            key, value, headers = reader.record(raw.decode("utf-8", "replace"))
            partition = sticky.partition(len(value or b"")) if key is None else None
            try:
                producer.send(topic, value, key, headers=headers, partition=partition)
            except WireClientError as err:  # of what it has sent because much was waiting
                if is_sync:
                    raise
                _tell(err)
            now_s = time.monotonic()
            due_s = due_s or now_s + linger_s
            if is_sync:
                producer.flush()  # a refusal is the end, as in Kafka's tool
            elif is_console or now_s >= due_s:
                _flush(producer)
                due_s = 0.0
            if is_console:
                print(">", end="", flush=True)
    except ReadError:
        _flush(producer)  # Kafka's tool sends what came before, too
        raise
    _flush(producer)
    return stop.status


def _flush(producer: Producer) -> None:
    """A batch that is refused is said on stderr, and the tool goes on: Kafka's logs it."""
    try:
        producer.flush()
    except WireClientError as err:
        _tell(err)


def _tell(error: WireClientError) -> None:
    sys.stderr.write(f"Error when sending message: {message_of(error)}\n")


def renamed(given: Given, names: tuple[tuple[str, str], ...], said: str) -> None:
    """Take old options as the new ones, and say so. Raises UsageError if both are given."""
    for old, new in names:
        if given.has(old) and given.has(new):
            raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
    for old, new in names:
        if given.has(old):
            print(said.format(old=old, new=new))
            given.values_of[new] = given.values_of.pop(old)


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
