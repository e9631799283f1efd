"""The client of a scenario: typed requests to one broker. Requests and responses are kept as a transcript of plain
values, which can be compared with another broker's.
"""

from __future__ import annotations

import os
import re
import time
from functools import partial

from kafka_shim.cext.records import build, iterate, parse_marker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.message import Message
from kafka_shim.targets import parked
from kafka_shim.targets.requests import fetch, make, produce
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.targets import Target

IGNORED = {
    *("throttle_time_ms", "unknown_tags", "error_message", "port", "cluster_id", "timeout_ms"),
    "share_session_epoch",
}
# Lists that keep the broker's order in the transcript. Other lists come from maps and have no order.
ORDERED = {"aborted_transactions", "records"}
# Timestamps, and values computed from them, inside a text.
NUMBERS = re.compile(r"-?\d{12,}")
OWN_TIMES_MS = 600_000
# As long as a broker allows: on a busy machine Apache Kafka takes more than a minute to be killed and started again
# under an open transaction.
TRANSACTION_MS = 900_000
CLOSED = "closed the connection"

NONE = "NONE"
# Transient errors while the broker still processes an earlier request.
BUSY = {"CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


class Disagreement(AssertionError):
    """A broker did not behave as the scenario says."""


def name_of(code: int) -> str:
    return ErrorCode(code).name


class ScenarioClient:
    """The requests of one scenario to one broker. `steps` is the transcript: (what, request, response)
    as plain values.
    """

    def __init__(self, target: Target, nonce: str = "", patience_s: float = PATIENCE_S) -> None:
        self.target = target
        self.patience_s = patience_s
        # The same for two brokers that are compared, so that hashes of names agree.
        self.nonce = nonce or os.urandom(3).hex()
        self.steps: list[tuple[str, Any, Any]] = []
        # Record timestamps are relative to this. It is an hour ago, so that no clock reading is close to them.
        self.epoch_ms = time.time_ns() // 1_000_000 - 3_600_000
        self._names: dict[Any, str] = {}
        self._producers: dict[int, str] = {}
        self._connection: Connection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connection(self) -> Connection:
        """The connection. Opened on first use, and again after a restart."""
        if self._connection is None:
            self._connection = Connection(self.target.bootstrap, client_id="scenario", timeout_s=self.patience_s)
        return self._connection

    def restart(self, *, kill: bool = False) -> None:
        """Restarts the broker on its data. Only for scenarios that have a broker of their own."""
        self.close()
        self.target.restart(kill=kill)
        warm_up(self.target, self.patience_s)
        self.note("restart", "kill -9" if kill else "clean stop", "")

    # --- names of this run

    def name(self, name: str) -> str:
        """Returns `name` with the nonce of this run; the transcript contains `name`."""
        return f"{name}-{self.nonce}"

    def topic(self, name: str = "t", partitions: int = 1, **config: str) -> str:
        """Creates a topic and waits until the broker serves it."""
        full = self.name(name)
        options = [{"name": key.replace("_", "."), "value": value} for key, value in config.items()]
        row = {"name": full, "num_partitions": partitions, "replication_factor": 1, "configs": options}
        answer = self.quietly("CreateTopics", 7, topics=[row], timeout_ms=30_000)
        self.same(name_of(answer.topics[0].error_code), NONE, f"creation of {name}")
        for partition in range(partitions):
            self.wait(partial(self.serves, full, partition), f"{name} served")
        return full

    def serves(self, topic: str, partition: int) -> bool:
        row = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
        answer = self.quietly("ListOffsets", 5, replica_id=-1, topics=[row])
        return not answer.topics[0].partitions[0].error_code

    def topic_id(self, topic: str) -> bytes:
        answer = self.quietly("Metadata", 12, topics=[{"name": topic}])
        return bytes(answer.topics[0].topic_id)

    # --- requests

    def quietly(self, api: str, version: int, **fields: Any) -> Any:
        """Sends a request and returns the response, without noting it in the transcript."""
        return self.send(make(api, **fields), version)

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Sends a request, notes the response and returns it."""
        message = make(api, **fields)
        answer = self.send(message, version)
        self.note(f"{api} v{version}", self.plain(message), self.plain(answer))
        return answer

    def ask_until(self, settled: Callable[[Any], bool], api: str, version: int, **fields: Any) -> Any:
        """Like `ask`, but repeats the request until `settled` holds for the response; notes only the last response."""
        message = make(api, **fields)
        last: list[Any] = []

        def attempt() -> bool:
            last[:] = [self.send(message, version)]
            return settled(last[0])

        self.wait(attempt, f"{api} v{version}", lambda: str(self.plain(last[0])))
        self.note(f"{api} v{version}", self.plain(message), self.plain(last[0]))
        return last[0]

    def send(self, message: Message, version: int) -> Any:
        return self.connection.request(message, version)

    def closes(self, api: str, version: int, **fields: Any) -> None:
        """Sends a request to which the broker must respond by closing the connection, and notes that."""
        message = make(api, **fields)
        try:
            answer = self.send(message, version)
        except WireClientError:
            self.close()
            self.note(f"{api} v{version}", self.plain(message), CLOSED)
        else:
            raise Disagreement(f"{api} v{version} was answered: {self.plain(answer)}")

    def park(self, message: Message, version: int) -> Parked:
        """Sends a request that the broker may delay, on its own connection."""
        return Parked(self, message, version)

    def raw(self, what: str, frame: bytes) -> str:
        """Sends the bytes with a length prefix. Notes and returns whether the broker responds or closes
        the connection.
        """
        outcome = "answered"
        try:
            self.connection.send_bytes(len(frame).to_bytes(4, "big") + frame)
            self.connection.receive_frame()
        except WireClientError:
            self.close()
            outcome = CLOSED
        self.note(what, f"{len(frame)} bytes", outcome)
        return outcome

    # --- records

    def produce(
        self,
        topic: str,
        values: Sequence[bytes] | bytearray,
        *,
        partition: int = 0,
        version: int = 11,
        key: bytes | None = b"k",
        transactional_id: str | None = None,
        acks: int = -1,
        timestamp_ms: int | None = None,
        **batch: Any,
    ) -> Any:
        """Sends one batch (`values`, or the bytes of a whole batch) and notes the partition's response."""
        if isinstance(values, bytearray):
            records = values
        else:
            batch.setdefault("transactional", transactional_id is not None)
            when = self.epoch_ms if timestamp_ms is None else timestamp_ms
            records = build([(key, value, when, ()) for value in values], **batch)
        topic_id = self.topic_id(topic) if version >= 13 else bytes(16)
        message = produce(
            topic, partition, bytes(records), transactional_id=transactional_id, acks=acks, topic_id=topic_id
        )
        answer = self.send(message, version).responses[0].partition_responses[0]
        facts = {name: value for name, value in batch.items() if name != "transactional"}
        if "producer_id" in facts:
            facts["producer_id"] = self.producer_name(facts["producer_id"])
        said = f"{len(values)} bytes as they are" if isinstance(values, bytearray) else [v.decode() for v in values]
        request = {"topic": self.plain(topic), "partition": partition, "values": said, **facts}
        if transactional_id is not None:
            request["transactional_id"] = self.plain(transactional_id)
        self.note(f"Produce v{version}", request, self.plain(answer))
        return answer

    def quietly_produce(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        """Writes plain records, without noting it in the transcript."""
        records = build([(None, value, self.epoch_ms, ()) for value in values])
        answer = self.send(produce(topic, partition, bytes(records)), 11).responses[0].partition_responses[0]
        self.error(answer, NONE, "Produce")

    def fetch(
        self, topic: str, offset: int = 0, *, partition: int = 0, committed: bool = False, version: int = 12
    ) -> Any:
        """Fetches what is available now, and notes the partition's response with its records decoded."""
        topic_id = self.topic_id(topic) if version >= 13 else bytes(16)
        message = fetch(topic, partition, offset, isolation_level=int(committed), topic_id=topic_id)
        answer = self.send(message, version).responses[0].partitions[0]
        isolation = "read_committed" if committed else "read_uncommitted"
        self.note(
            f"Fetch v{version}", f"{self.plain(topic)}-{partition} from {offset}, {isolation}", self.plain(answer)
        )
        return answer

    def read(self, topic: str, partition: int, offset: int) -> list[tuple[int, str]]:
        """Returns (offset, value) from `offset` on, without noting it."""
        part = self.send(fetch(topic, partition, offset), 12).responses[0].partitions[0]
        found = records_of(part.records or b"")
        return [(record.offset, record.value.decode()) for record, _ in found if record.offset >= offset]

    def values(self, topic: str, *, partition: int = 0, committed: bool = False) -> list[bytes]:
        """Returns the values that a client returns: without markers and, if `committed`, without aborted records."""
        answer = self.fetch(topic, partition=partition, committed=committed)
        return visible(answer, committed=committed)

    def end_offset(self, topic: str, *, partition: int = 0, committed: bool = False, version: int = 5) -> int:
        """Returns LATEST: the log end, or the last stable offset if `committed`."""
        row = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
        answer = self.quietly("ListOffsets", version, replica_id=-1, isolation_level=int(committed), topics=[row])
        return int(answer.topics[0].partitions[0].offset)

    # --- transactions

    def coordinator(self, transactional_id: str) -> None:
        """Sends FindCoordinator until there is a coordinator. Kafka creates its topic on the first request."""
        self.wait(
            lambda: not self.quietly("FindCoordinator", 3, key=transactional_id, key_type=1).error_code, "coordinator"
        )

    def init(self, transactional_id: str | None, version: int = 5, **fields: Any) -> Any:
        """Sends InitProducerId until the broker has finished the previous transaction."""
        if transactional_id is not None:
            self.coordinator(transactional_id)
        given = {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_MS, **fields}
        return self.ask_until(lambda answer: name_of(answer.error_code) not in BUSY, "InitProducerId", version, **given)

    def settle(self, transactional_id: str) -> str:
        """Waits until all markers are written; Kafka responds to EndTxn before that. Returns the state."""
        state = ""

        def done() -> bool:
            nonlocal state
            (told,) = self.quietly("DescribeTransactions", 0, transactional_ids=[transactional_id]).transaction_states
            state = told.transaction_state
            # A coordinator that loads again tells no state.
            return name_of(told.error_code) not in BUSY and not state.startswith("Prepare")

        self.wait(done, "markers written", lambda: state)
        return state

    # --- expectations

    def same(self, found: Any, wanted: Any, what: str) -> None:
        if found != wanted:
            raise Disagreement(f"{what}: {found!r} where {wanted!r} is right")

    def error(self, answer: Any, wanted: str, what: str = "") -> None:
        """Asserts that the response has this error code."""
        self.same(name_of(answer.error_code), wanted, what or "error code")

    def wait(self, done: Callable[[], bool], what: str, last: Callable[[], str] = str) -> None:
        """Polls until `done` holds. For work of broker threads that has no other visible sign."""
        deadline = time.monotonic() + self.patience_s
        while not done():
            if time.monotonic() > deadline:
                raise Disagreement(f"{what}: not within {self.patience_s:.0f} s {last()}")
            time.sleep(0.005)

    # --- the transcript

    def note(self, what: str, request: Any, answer: Any) -> None:
        self.steps.append((what, request, answer))

    def producer_name(self, producer_id: int) -> str | int:
        """Names producer ids in their order of appearance."""
        if producer_id < 0:
            return producer_id
        return self._producers.setdefault(producer_id, f"producer {len(self._producers) + 1}")

    def rename(self, value: str | bytes, name: str) -> None:
        """Replaces this value with `name` in the transcript from now on."""
        if value:
            self._names.setdefault(value, name)

    def plain(self, value: Any, field: str = "") -> Any:
        """Returns a value without the parts that differ between runs."""
        if isinstance(value, Message):
            return {row[0]: self.plain(getattr(value, row[0]), row[0]) for row in value.FIELDS if row[0] not in IGNORED}
        if field == "records" and value is not None:
            return [self._record(record, batch) for record, batch in records_of(value)]
        if isinstance(value, list | tuple):
            told = [self.plain(each, field) for each in value]
            return told if field in ORDERED else sorted(told, key=repr)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._number(value, field)
        if field == "client_host" and str(value).startswith("/"):
            return "/an address"  # a broker in a container sees that of its network
        if isinstance(value, str):
            for known, name in self._names.items():
                if isinstance(known, str) and known in value:
                    value = value.replace(known, name)
            return NUMBERS.sub("a number", value.replace(f"-{self.nonce}", ""))
        if isinstance(value, bytes | bytearray | memoryview):
            plain = bytes(value)
            if field.endswith("_id"):
                return self._names.get(plain, "an id" if any(plain) else "no id")
            return plain.decode(errors="backslashreplace")
        return value

    def _number(self, value: int, field: str) -> Any:
        if "error_code" in field:
            return name_of(value)
        if field.endswith("producer_id") or field == "producer_id_filters":
            return self.producer_name(value)
        if 0 <= value - self.epoch_ms < OWN_TIMES_MS:
            return f"T+{value - self.epoch_ms}"
        if ("timestamp" in field or "time_ms" in field) and value > 1_500_000_000_000:
            return "a time"
        if field.endswith("_duration_ms") and value > 0:
            return "a duration"
        return value

    def _record(self, record: Any, batch: Any) -> dict[str, Any]:
        told: dict[str, Any] = {"offset": record.offset, "time": self._number(record.timestamp, "timestamp")}
        if batch.producer_id >= 0:
            told |= {"producer": self.producer_name(batch.producer_id), "epoch": batch.producer_epoch}
        if batch.is_control:
            commit, _ = parse_marker(record.key, record.value)
            return told | {"marker": "commit" if commit else "abort"}
        text = {"key": record.key, "value": record.value}
        return told | {name: None if raw is None else raw.decode(errors="replace")[:60] for name, raw in text.items()}


class Parked(parked.Parked):
    """A request that the broker may delay. `answer()` notes the response."""

    def __init__(self, client: ScenarioClient, message: Message, version: int) -> None:
        super().__init__(client.target.bootstrap, message, version, client_id="scenario", timeout_s=client.patience_s)
        self._client = client

    def answer(self) -> Any:
        client, answer = self._client, self.receive()
        api = type(self.message).__name__.removesuffix("Request")
        client.note(f"{api} v{self.version}, parked", client.plain(self.message), client.plain(answer))
        return answer


def warm_up(target: Target, patience_s: float = PATIENCE_S) -> None:
    """Waits until each partition of both coordinators' topics is loaded. Kafka creates the topics on the first request,
    and loads them some time after a start.
    """
    groups = [{"group_id": f"probe-{number}", "topics": None} for number in range(300)]
    ids = [f"probe-{number}" for number in range(300)]
    deadline = time.monotonic() + 2 * patience_s
    with Connection(target.bootstrap, client_id="warm-up", timeout_s=patience_s) as connection:
        while time.monotonic() < deadline:
            asked = [make("FindCoordinator", key_type=kind, coordinator_keys=["any"]) for kind in (0, 1)]
            if not any(connection.request(each, 4).coordinators[0].error_code for each in asked):
                offsets = connection.request(make("OffsetFetch", groups=groups), 9)
                known = connection.request(make("DescribeTransactions", transactional_ids=ids), 0)
                found = [*offsets.groups, *known.transaction_states]
                started = connection.request(make("InitProducerId", transaction_timeout_ms=1000), 4)
                if not any(name_of(each.error_code) in BUSY for each in [*found, started]):
                    return
            time.sleep(0.05)
    raise Disagreement(f"the coordinators of {target.kind} do not load")


def records_of(data: Any) -> list[tuple[Any, Any]]:
    """Returns (record, its batch) for the records of a Fetch response."""
    from kafka_shim.cext.batch import BatchError, scan

    raw = data if isinstance(data, bytes | bytearray | memoryview) else b"".join(bytes(part) for part in data)
    found = []
    at = 0
    while at < len(raw):
        try:
            batch = scan(raw, at)
        except BatchError:
            break  # the last batch may be incomplete
        found += [(record, batch) for record in iterate(raw, at, at + batch.size_bytes)]
        at += batch.size_bytes
    return found


def visible(answer: Any, *, committed: bool) -> list[bytes]:
    """Returns what a client returns from a partition's response. If `committed`, leaves out aborted data, using the
    list of aborted transactions and the abort markers, as clients do.
    """
    aborted = sorted((row.first_offset, row.producer_id) for row in answer.aborted_transactions or [])
    active: set[int] = set()
    found = []
    for record, batch in records_of(answer.records or b""):
        while committed and aborted and aborted[0][0] <= record.offset:
            active.add(aborted.pop(0)[1])
        if batch.is_control:
            commit, _ = parse_marker(record.key, record.value)
            if not commit:
                active.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in active):
            found.append(record.value)
    return found


class Producer:
    """A transactional or idempotent producer made of single requests. Counts sequences; every response is noted."""

    def __init__(
        self, client: ScenarioClient, transactional_id: str | None = None, version: int = 5, **fields: Any
    ) -> None:
        self.client = client
        self.transactional_id = client.name(transactional_id) if transactional_id else None
        self.sequences: dict[tuple[str, int], int] = {}
        answer = client.init(self.transactional_id, version, **fields)
        client.error(answer, NONE, "InitProducerId")
        self.id: int = answer.producer_id
        self.epoch: int = answer.producer_epoch

    @property
    def who(self) -> dict[str, Any]:
        """The three fields that most of its requests have."""
        return {"transactional_id": self.transactional_id, "producer_id": self.id, "producer_epoch": self.epoch}

    def send(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        sequence: int | None = None,
        version: int = 12,
        expect: str | None = NONE,
        **batch: Any,
    ) -> Any:
        """Sends one batch with the next sequence, or with `sequence`."""
        where = (topic, partition)
        first = self.sequences.get(where, 0) if sequence is None else sequence
        given = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": first, **batch}
        answer = self.client.produce(
            topic, values, partition=partition, version=version, transactional_id=self.transactional_id, **given
        )
        if expect is not None:
            self.client.error(answer, expect, f"Produce v{version} at sequence {first}")
        if not answer.error_code and sequence is None:
            self.sequences[where] = first + len(values)
        return answer

    def add(self, topic: str, *partitions: int, version: int = 3, expect: str = NONE) -> Any:
        """Sends AddPartitionsToTxn as a client does."""
        fields = {f"v3_and_below_{name}": value for name, value in self.who.items()}
        row = {"name": topic, "partitions": list(partitions) or [0]}
        answer = self.client.ask_until(
            lambda found: not _is_busy(found.results_by_topic_v3_and_below) or expect in BUSY,
            "AddPartitionsToTxn",
            version,
            v3_and_below_topics=[row],
            **fields,
        )
        for result in answer.results_by_topic_v3_and_below:
            for part in result.results_by_partition:
                self.client.same(name_of(part.partition_error_code), expect, f"AddPartitionsToTxn v{version}")
        return answer

    def end(
        self, commit: bool, version: int = 5, expect: str = NONE, *, settle: bool = True, adopt: bool = True
    ) -> Any:
        """Sends EndTxn. Adopts the id and epoch of a TV2 response and waits for the markers."""
        answer = self.client.ask_until(
            lambda found: name_of(found.error_code) not in BUSY or expect in BUSY,
            "EndTxn",
            version,
            committed=commit,
            **self.who,
        )
        self.client.error(answer, expect, f"EndTxn v{version} {'commit' if commit else 'abort'}")
        if not answer.error_code:
            if settle and self.transactional_id:
                self.client.settle(self.transactional_id)
            if version >= 5 and adopt:
                if (self.id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                    self.sequences.clear()
                self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer


def _is_busy(results: Any) -> bool:
    return any(name_of(part.partition_error_code) in BUSY for row in results for part in row.results_by_partition)
