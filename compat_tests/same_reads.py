"""Writes the same random logs to two brokers and reads them by the same random requests.

Written are plain, compressed and transactional batches, markers, and starts of logs that DeleteRecords moved; the logs
roll into many segments. Read are Fetch of all versions, of sessions and without, ListOffsets, OffsetForLeaderEpoch,
DescribeProducers, DescribeTransactions and ListTransactions. The answers must be the same in each field, the order of
lists and the stored bytes included, and of the same length.

Left out are topic ids, ids of sessions, the time at which a broker appended something, with the CRC over it, the order
of what Kafka keeps in hash maps, and aborted transactions that begin behind the records of the answer.
"""

from __future__ import annotations

import select
import time
from random import Random
from typing import Any

from kafka_shim.cext.records import build
from kafka_shim.compat.comparison import lines
from kafka_shim.protocol.message import Message
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.wire_client import Connection, WireClientError, read_answer

PRODUCERS = 3
OLD_PRODUCER = 0  # its transactions are of version 1
OPEN_MS = 900_000  # no transaction ends by its time
HOUR_MS = 3_600_000
UNKNOWN_ID = b"\x09" * 16
# No fetch that waits ends by its time. So long is looked, after each of so many changes, whether one of the brokers
# answers it.
LONG_MS = 10 * 1000 * int(PATIENCE_S)
LOOK_S, CHANGES = 0.3, 12
# Options of each topic, and its partitions.
TOPICS = {
    "plain": (3, {}),
    "rolling": (2, {"internal.segment.bytes": "900", "index.interval.bytes": "0"}),
    "timed": (2, {"segment.ms": "60000", "index.interval.bytes": "150"}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime", "internal.segment.bytes": "1500"}),
    "empty": (1, {}),
}
TIMES = frozenset({"last_timestamp", "transaction_start_time_ms", "throttle_time_ms"})

Step = tuple[Any, ...]


def stripped(records: Any) -> list[Any]:
    """Returns stored batches without what each broker has of itself: the times of markers and of appends, with the CRC
    over them. The last one may be cut."""
    data, found, at = bytes(records), [], 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12]) + 12 if at + 12 <= len(data) else len(data)
        one = bytearray(data[at : at + size])
        attributes = one[22] if len(one) > 22 else 0
        if attributes & 0x28 or len(one) < size:  # of a control batch, stamped at the append, or cut
            one[17:21] = bytes(len(one[17:21]))
            first = 27 if attributes & 0x20 else 35
            one[first:43] = bytes(len(one[first:43]))
        found.append(bytes(one).hex())
        at += size
    return found


def _without_later(part: Any) -> int:
    """Takes out the aborted transactions that begin behind the records: how many there are depends on how a broker
    searches its index. Returns how many these are."""
    last = int.from_bytes(bytes(part.records or b"")[:8])
    at, data = 0, bytes(part.records or b"")
    while at + 27 <= len(data):
        last = int.from_bytes(data[at : at + 8]) + int.from_bytes(data[at + 23 : at + 27])
        at += int.from_bytes(data[at + 8 : at + 12]) + 12
    told = part.aborted_transactions or []
    kept = [one for one in told if one.first_offset <= last]
    if told:
        part.aborted_transactions = kept
    return len(told) - len(kept)


class Side:
    """One broker, with the topics, producers and sessions of a run."""

    def __init__(self, bootstrap: str, run: str) -> None:
        self.connection = Connection(bootstrap, timeout_s=PATIENCE_S)
        self._bootstrap = bootstrap
        self.waiting = Connection(bootstrap, timeout_s=PATIENCE_S)
        self._run = run
        self.ids: dict[str, bytes] = {}
        self.names: dict[bytes, str] = {}
        self.producers: list[list[int]] = []
        self.sequences: dict[tuple[int, str, int], int] = {}
        self.session_ids = [0, 0]
        self.waiting_id = 0
        for key_type in (0, 1):
            self.ask("FindCoordinator", 4, key_type=key_type, coordinator_keys=["any"])
        for kind, (partitions, options) in TOPICS.items():
            create_topic(self.connection, self.name(kind), partitions, options)
            wait_until(lambda kind=kind, count=partitions: self._is_served(kind, count), "the topic is served")  # type: ignore[misc]
            told = self.ask("Metadata", 12, topics=[{"name": self.name(kind)}])
            self.ids[kind] = told.topics[0].topic_id
            self.names[told.topics[0].topic_id] = self.name(kind)
        for number in range(PRODUCERS):
            wait_until(lambda number=number: self._init(number), "a producer id")  # type: ignore[misc]

    def close(self) -> None:
        """Closes the connections."""
        self.connection.close()
        self.waiting.close()

    def wait_anew(self) -> None:
        """Leaves a request that nobody answers."""
        self.waiting.close()
        self.waiting = Connection(self._bootstrap, timeout_s=PATIENCE_S)

    def name(self, kind: str) -> str:
        """The name of the run's topic of a kind."""
        return f"{self._run}-{kind}"

    def ask(self, name: str, version: int, **fields: Any) -> Any:
        """Returns the answer."""
        return self.connection.request(make(name, **fields), version)

    def told(self, message: Message, version: int, connection: Connection | None = None) -> Any:
        """Returns the answer in a form on which both brokers can agree."""
        self.send(message, version, connection)
        return self.received(message, version, connection)

    def send(self, message: Message, version: int, connection: Connection | None = None) -> None:
        """Sends a request."""
        (connection or self.connection).send(message, version)

    def received(self, message: Message, version: int, connection: Connection | None = None) -> Any:
        """Returns the next answer in that form."""
        try:
            frame = (connection or self.connection).receive_frame()
        except WireClientError as error:
            if connection is None:
                self.connection.close()
                self.connection = Connection(self._bootstrap, timeout_s=PATIENCE_S)
            else:
                self.wait_anew()
            return str(error).replace(self._bootstrap, "HOST")
        answer = read_answer(message.API_KEY, version, frame)[1]
        length = len(frame)
        if message.API_KEY == 1:
            for topic in answer.responses:
                length -= sum(map(_without_later, topic.partitions)) * (17 if version >= 12 else 16)
        return {"length": length, "answer": self._plain(answer), "raw": answer}

    def _plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Message):
            return {row[0]: self._plain(getattr(value, row[0]), row[0]) for row in value.FIELDS}
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        if field == "records" and value is not None:
            return stripped(value)
        if field == "session_id":
            return value > 0
        if field in TIMES:
            return value >= 0
        if field == "port":
            return value > 0
        return self.names.get(value, value) if isinstance(value, bytes) else value

    def _is_served(self, kind: str, count: int) -> bool:
        asked = [{"partition_index": partition, "timestamp": -1} for partition in range(count)]
        answer = self.ask("ListOffsets", 5, topics=[{"name": self.name(kind), "partitions": asked}])
        return not any(part.error_code for part in answer.topics[0].partitions)

    def _init(self, number: int) -> bool:
        name = f"{self._run}-{number}"
        answer = self.ask("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=OPEN_MS)
        if answer.error_code:
            return False
        self.producers.append([answer.producer_id, answer.producer_epoch])
        return True

    # --- what changes the logs

    def produce(self, kind: str, partition: int, rows: Any, codec: int, number: int | None) -> Any:
        """Appends a batch, of a transaction if a producer is named. Returns what the broker says."""
        how: dict[str, Any] = {"codec": codec}
        name = None
        if number == OLD_PRODUCER:
            self.ask(
                "AddPartitionsToTxn",
                3,
                v3_and_below_transactional_id=f"{self._run}-{number}",
                v3_and_below_producer_id=self.producers[number][0],
                v3_and_below_producer_epoch=self.producers[number][1],
                v3_and_below_topics=[{"name": self.name(kind), "partitions": [partition]}],
            )
        if number is not None:
            name = f"{self._run}-{number}"
            producer_id, epoch = self.producers[number]
            at = self.sequences.get((number, kind, partition), 0)
            how |= {
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "base_sequence": at,
                "transactional": True,
            }
            self.sequences[number, kind, partition] = at + len(rows)
        data = [{"index": partition, "records": build(rows, **how)}]
        message = make(
            "Produce",
            acks=-1,
            timeout_ms=30_000,
            transactional_id=name,
            topic_data=[{"name": self.name(kind), "partition_data": data}],
        )
        (topic,) = self.told(message, 11 if number == OLD_PRODUCER else 12)["answer"]["responses"]
        (told,) = topic["partition_responses"]
        return told | {"log_append_time_ms": told["log_append_time_ms"] >= 0}

    def end(self, number: int, commit: bool) -> Any:
        """Ends a transaction. Returns the error code, once the markers are written."""
        producer, version = self.producers[number], 4 if number == OLD_PRODUCER else 5
        answer = self.ask(
            "EndTxn",
            version,
            transactional_id=f"{self._run}-{number}",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        wait_until(lambda: not self._state(number).startswith("Prepare"), "the end of the transaction")
        if not answer.error_code and version >= 5:
            self.producers[number] = [answer.producer_id, answer.producer_epoch]
            self.sequences = {key: at for key, at in self.sequences.items() if key[0] != number}
        return answer.error_code

    def _state(self, number: int) -> str:
        names = [f"{self._run}-{number}"]
        found = self.ask("DescribeTransactions", 0, transactional_ids=names).transaction_states[0]
        return str(found.transaction_state)


class Run:
    """One run on both brokers: makes the steps, and knows how far the logs are."""

    def __init__(self, ours: str, theirs: str, run: str, seed: int) -> None:
        self.chance = Random(seed)
        self.sides = [Side(bootstrap, run) for bootstrap in (ours, theirs)]
        self.ends = {(kind, partition): 0 for kind, (count, _) in TOPICS.items() for partition in range(count)}
        self.starts = dict(self.ends)
        self.stable = dict(self.ends)
        self.writable = [key for key in self.ends if key[0] != "empty"]
        self.now_ms = int(time.time() * 1000) - HOUR_MS
        self.is_open = [False] * PRODUCERS
        self.epochs = [-1, -1]
        self.found: list[str] = []
        self.done: list[str] = []

    def close(self) -> None:
        """Closes the connections."""
        for side in self.sides:
            side.close()

    def same(self, what: str, answers: list[Any]) -> Any:
        """Notes how the answers differ."""
        ours, theirs = (
            {key: one[key] for key in one if key != "raw"} if isinstance(one, dict) else one for one in answers
        )
        self.done.append(what)
        found = lines(ours, theirs)
        if found:
            self.found.append("\n  ".join([what, *(line[:1500] for line in found)]))
        return theirs

    # --- writing

    def write(self, *, deletes: bool = True) -> None:
        """A random change of the logs."""
        chance = self.chance
        kind = chance.choices(("batch", "txn", "end", "delete"), (5, 6, 3, 0.7 if deletes else 0))[0]
        if kind == "end" and any(self.is_open):
            self.end()
        elif kind == "delete":
            self.delete()
        else:
            number = chance.randrange(PRODUCERS) if kind == "txn" else None
            self.append(number)

    def append(self, number: int | None = None, key: tuple[str, int] | None = None) -> None:
        """Appends a random batch."""
        chance = self.chance
        key = key or chance.choice(self.writable)
        count = chance.choice((1, 1, 2, 3, 7))
        rows = []
        for _ in range(count):
            self.now_ms += chance.choice((0, 1, 5, 1000, 20_000, -3000))
            value = chance.choice((b"v", b"w" * chance.randrange(200), chance.randbytes(chance.randrange(100)), None))
            rows.append((chance.choice((b"k", None)), value, self.now_ms, [("h", b"x")] * chance.randrange(2)))
        codec = chance.choice((0, 0, 1, 2, 3, 4))
        told = [side.produce(*key, rows, codec, number) for side in self.sides]
        self.same(f"produce {key} {count} records, codec {codec}, producer {number}", told)
        if number is not None and not told[1]["error_code"]:
            self.is_open[number] = True
        self.look(key)

    def end(self) -> None:
        """Ends a random transaction."""
        chance = self.chance
        number = chance.choice([number for number in range(PRODUCERS) if self.is_open[number]])
        commit = chance.random() < 0.5
        self.same(f"end {number} commit {commit}", [side.end(number, commit) for side in self.sides])
        self.is_open[number] = False
        for key in self.writable:
            self.look(key)

    def delete(self, key: tuple[str, int] | None = None, most: int | None = None) -> None:
        """Moves the start of a log, not beyond `most`."""
        chance = self.chance
        key = key or chance.choice(self.writable)
        # Where an open transaction is passed, the last stable offsets are known to differ.
        span = self.stable[key] - self.starts[key]
        offset = chance.choice((self.starts[key] + chance.randint(0, max(span // 3, 0)), 0, self.ends[key] + 1))
        if chance.random() < 0.1 and self.stable[key] == self.ends[key]:
            offset = -1
        if most is not None:
            offset = min(most, offset) if offset > 0 and most >= 0 else 0
        topics = [{"name": "", "partitions": [{"partition_index": key[1], "offset": offset}]}]
        self.same(
            f"delete {key} to {offset}",
            [
                side.told(
                    make("DeleteRecords", timeout_ms=10_000, topics=[topics[0] | {"name": side.name(key[0])}]),
                    chance_version,
                )
                for chance_version in [chance.choice((0, 1, 2))]
                for side in self.sides
            ],
        )
        self.look(key)

    def look(self, key: tuple[str, int]) -> None:
        """Sees how far a log is."""
        kind, partition = key
        for timestamp, isolation, known in ((-1, 0, self.ends), (-1, 1, self.stable), (-2, 0, self.starts)):
            asked = [{"partition_index": partition, "timestamp": timestamp}]
            told = []
            for side in self.sides:
                topics = [{"name": side.name(kind), "partitions": asked}]
                told.append(side.told(make("ListOffsets", replica_id=-1, isolation_level=isolation, topics=topics), 7))
            theirs = self.same(f"where {key} is", told)
            known[key] = theirs["answer"]["topics"][0]["partitions"][0]["offset"]

    # --- reading

    def offset(self, key: tuple[str, int]) -> int:
        """A random offset, mostly one that is there."""
        start, end = self.starts.get(key, 0), self.ends.get(key, 0)
        chance = self.chance
        inside = chance.randint(start, end)
        return chance.choice((inside, inside, start, end, chance.randint(-1, end + 1)))

    def asked(self, most: int = 5) -> list[tuple[tuple[str, int], dict[str, Any]]]:
        """Random partitions of a Fetch."""
        chance = self.chance
        keys = [*self.ends, *self.ends, ("plain", 9), ("nowhere", 0)]
        return [(key, self.part(key)) for key in chance.sample(keys, chance.randint(1, most))]

    def part(self, key: tuple[str, int]) -> dict[str, Any]:
        """A partition of a Fetch, with random fields."""
        chance = self.chance
        return {
            "partition": key[1],
            "fetch_offset": self.offset(key),
            "partition_max_bytes": chance.choice((0, 1, 50, 61, 100, 200, 500, 1000, 1 << 20, 1 << 20, 1 << 20)),
            "current_leader_epoch": chance.choices((-1, 0, 1, 7), (8, 4, 0.3, 0.3))[0],
            "last_fetched_epoch": chance.choices((-1, 0, 1, 3), (12, 3, 0.2, 0.2))[0],
            "log_start_offset": chance.choice((-1, -1, 0, 5)),
        }

    def fetch(self, side: Side, asked: Any, version: int, **fields: Any) -> Message:
        """Makes a Fetch; partitions of a topic that come one after the other are one topic of it."""
        topics: list[dict[str, Any]] = []
        for (kind, _), part in asked:
            name = side.name(kind)
            if not topics or topics[-1]["topic"] != name:
                topics.append({"topic": name, "topic_id": side.ids.get(kind, UNKNOWN_ID), "partitions": []})
            topics[-1]["partitions"].append(part if version >= 12 else part | {"last_fetched_epoch": -1})
        return make("Fetch", topics=topics, **{"max_wait_ms": 0, "replica_id": -1, "session_epoch": -1, **fields})

    def limits(self) -> dict[str, Any]:
        """Random fields of a Fetch."""
        chance = self.chance
        return {
            "min_bytes": chance.choice((0, 1, 100)),
            "max_bytes": chance.choice((0, 1, 80, 300, 1000, 5000, 1 << 20, 1 << 20)),
            "isolation_level": chance.choice((0, 1)),
            "rack_id": chance.choice(("", "r1")),
        }

    def read(self) -> None:
        """A Fetch without a session."""
        chance = self.chance
        version, asked, limits = chance.randint(4, 18), self.asked(), self.limits()
        epoch = chance.choice((-1, -1, -1, 0))
        told = [
            side.told(self.fetch(side, asked, version, session_epoch=epoch, **limits), version) for side in self.sides
        ]
        self.same(f"fetch v{version} {limits} epoch {epoch} {asked}", told)

    def read_on(self) -> None:
        """A Fetch of one of two sessions, of names and of ids."""
        chance = self.chance
        number = chance.randrange(2)
        version = chance.randint(7, 12) if number == 0 else chance.randint(13, 18)
        if chance.random() < 0.03:
            version = 12 if number else 13
        epoch = self.epochs[number]
        kind = chance.choices(("next", "new", "end", "wrong"), (20, 1, 0.5, 1))[0]
        if epoch < 0 or kind == "new":
            epoch = 0
        elif kind == "end":
            epoch = -1
        elif kind == "wrong":
            epoch += chance.choice((-1, 1, 5))
        asked = self.asked(8 if epoch == 0 else 2) if epoch == 0 or chance.random() < 0.4 else []
        gone = [] if epoch == 0 or chance.random() < 0.8 else [key for key, _ in self.asked(2)]
        limits = self.limits()
        told = []
        for side in self.sides:
            forgotten = [
                {"topic": side.name(name), "topic_id": side.ids.get(name, UNKNOWN_ID), "partitions": [partition]}
                for name, partition in gone
            ]
            message = self.fetch(
                side,
                asked,
                version,
                session_id=side.session_ids[number],
                session_epoch=epoch,
                forgotten_topics_data=forgotten,
                **limits,
            )
            told.append(side.told(message, version))
        self.same(f"session {number} v{version} epoch {epoch} {limits} {asked} forgets {gone}", told)
        for side, answer in zip(self.sides, told, strict=True):
            if epoch == 0 and isinstance(answer, dict):
                side.session_ids[number] = answer["raw"].session_id
        theirs = told[1]["raw"]
        if epoch == -1 or (epoch > 0 and not theirs.session_id and not theirs.error_code):
            self.epochs[number] = -1
        elif epoch == 0:
            self.epochs[number] = 1 if theirs.session_id else -1
        elif not theirs.error_code:
            self.epochs[number] += 1

    def find(self) -> None:
        """A ListOffsets."""
        chance = self.chance
        version = chance.randint(1, 11)
        topics = []
        for key in chance.sample([*self.ends, ("plain", 9), ("nowhere", 0)], chance.randint(1, 4)):
            now = self.now_ms + chance.randint(-HOUR_MS // 10, 1000)
            part = {
                "partition_index": key[1],
                "timestamp": chance.choice((-1, -2, -3, -4, -5, -6, -7, 0, now, now, now, now)),
                "current_leader_epoch": chance.choices((-1, 0, 1), (8, 4, 0.3))[0],
            }
            topics.append((key[0], part))
        isolation, timeout = chance.choice((0, 1)) if version > 1 else 0, chance.choice((0, 1000))
        replica = chance.choice((-1, -1, -1, -2))
        told = [
            side.told(
                make(
                    "ListOffsets",
                    replica_id=replica,
                    isolation_level=isolation,
                    timeout_ms=timeout,
                    topics=[{"name": side.name(kind), "partitions": [part]} for kind, part in topics],
                ),
                version,
            )
            for side in self.sides
        ]
        for one in told:
            one["answer"]["topics"].sort(key=lambda topic: topic["name"])
            for topic in one["answer"]["topics"]:
                topic["partitions"].sort(key=lambda part: part["partition_index"])
                for part in topic["partitions"]:
                    if part["timestamp"] > self.now_ms + HOUR_MS // 2:  # when the broker appended it
                        part["timestamp"] = "now"
        self.same(f"list offsets v{version} isolation {isolation} replica {replica} {topics}", told)

    def epoch_end(self) -> None:
        """An OffsetForLeaderEpoch."""
        chance = self.chance
        version = chance.randint(2, 4)
        asked = [
            (
                key[0],
                {
                    "partition": key[1],
                    "current_leader_epoch": chance.choice((-1, -1, 0, 1)),
                    "leader_epoch": chance.choice((-1, 0, 0, 1, 5)),
                },
            )
            for key in chance.sample([*self.ends, ("plain", 9), ("nowhere", 0)], chance.randint(1, 4))
        ]
        told = [
            side.told(
                make(
                    "OffsetForLeaderEpoch",
                    replica_id=chance_replica,
                    topics=[{"topic": side.name(kind), "partitions": [part]} for kind, part in asked],
                ),
                version,
            )
            for chance_replica in [chance.choice((-1, -2))]
            for side in self.sides
        ]
        self.same(f"epoch end v{version} {asked}", told)

    def describe(self) -> None:
        """DescribeProducers, DescribeTransactions or ListTransactions."""
        chance = self.chance
        kind = chance.randrange(3)
        keys = chance.sample([*self.ends, ("plain", 9), ("nowhere", 0)], chance.randint(1, 3))
        states = chance.choice(([], ["Ongoing"], ["CompleteAbort", "Odd"], ["Empty", "CompleteCommit"]))
        told = []
        version = chance.randint(0, 2)
        for side in self.sides:
            if kind == 0:
                topics = [{"name": side.name(name), "partition_indexes": [partition]} for name, partition in keys]
                told.append(side.told(make("DescribeProducers", topics=topics), 0))
            elif kind == 1:
                names = [f"{side.name(str(number))}" for number in range(PRODUCERS + 1)]
                told.append(side.told(make("DescribeTransactions", transactional_ids=names), 0))
            else:
                only = {"transactional_id_pattern": side.name(".*")} if version == 2 else {}
                message = make("ListTransactions", state_filters=states, producer_id_filters=[], **only)
                told.append(side.told(message, version))
        for one in told:
            for topic in one["answer"].get("topics", ()):
                for part in topic["partitions"]:
                    part["active_producers"].sort(key=repr)
            for state in one["answer"].get("transaction_states", ()):
                for topic in state.get("topics", ()):
                    topic["partitions"].sort()
                if "topics" in state:
                    state["topics"].sort(key=repr)
            one["answer"].get("transaction_states", []).sort(key=repr)
        self.same(f"describe {kind} {keys}", told)

    # --- waiting

    def wait(self) -> None:
        """A Fetch that may wait, in a session or not, and what is written meanwhile."""
        chance = self.chance
        version, limits = chance.randint(4, 18), self.limits()
        in_session, turned = version >= 7 and chance.random() < 0.4, chance.random() < 0.6
        limits |= {"min_bytes": chance.choice((1, 1, 2, 100, 300, 800)), "max_wait_ms": LONG_MS}
        asked = []
        for key in chance.sample(self.writable, chance.randint(1, 4)):
            part = self.part(key) | {"last_fetched_epoch": -1, "current_leader_epoch": -1}
            part["partition_max_bytes"] = chance.choice((100, 1000, 1 << 20))
            if chance.random() < 0.85:
                end = (self.stable if limits["isolation_level"] else self.ends)[key]
                part["fetch_offset"] = end - chance.choice((0, 0, 0, 0, 1))
            if limits["isolation_level"] and self.stable[key] < part["fetch_offset"] <= self.ends[key]:
                part["fetch_offset"] = self.stable[key]  # Kafka waits for nothing there
            asked.append((key, part))
        what = f"waiting fetch v{version} {limits} {asked}"
        messages = [self.fetch(side, asked, version, **limits) for side in self.sides]
        if in_session:
            # Opened at once with another limit, so that the Fetch that waits names nothing or one partition.
            for at, side in enumerate(self.sides):
                opening = self.fetch(side, asked, version, **limits | {"max_wait_ms": 0, "session_epoch": 0})
                side.waiting_id = side.waiting.request(opening, version).session_id
                again = [] if turned else asked[:1]
                messages[at] = self.fetch(side, again, version, **limits, session_epoch=1, session_id=side.waiting_id)
            what += f", in a session, names {len(again)}"
        for side, message in zip(self.sides, messages, strict=True):
            side.send(message, version, side.waiting)
        told: list[Any] = []
        for turn in range(CHANGES):
            if self.has_answer():
                break
            if turn < 3:
                before = len(self.done)
                if chance.random() < 0.2:
                    # A reader below the new start is told at once by the shim, and at the end of its wait by Kafka.
                    key, part = chance.choice(asked)
                    self.delete(key, part["fetch_offset"])
                else:
                    self.write(deletes=False)
            else:
                key, _ = chance.choice(asked)
                before = len(self.done)
                if any(self.is_open) and turn % 3 == 2:
                    self.end()
                else:
                    self.append(None, key)
            what += f"; {self.done[before]}"
        else:
            for side in self.sides:
                side.wait_anew()
            self.done.append(f"{what}; nobody answers")
            return
        for side, message in zip(self.sides, messages, strict=True):
            told.append(side.received(message, version, side.waiting))
        self.same(what, told)

    def has_answer(self) -> bool:
        """Returns whether one of both answers."""
        return bool(select.select([side.waiting._socket for side in self.sides], [], [], LOOK_S)[0])


def compare(ours: str, theirs: str, name: str, seed: int, steps: int) -> int:
    """Makes so many steps on both brokers. Returns how many answers were compared. Raises AssertionError with what
    differs in the first of them that is not the same.
    """
    run = Run(ours, theirs, name, seed)
    try:
        kinds = (run.write, run.read, run.read_on, run.find, run.epoch_end, run.describe, run.wait)
        for _ in range(steps):
            run.chance.choices(kinds, (10, 10, 8, 5, 1, 1.5, 1))[0]()
            assert not run.found, "\n".join([f"seed {seed}, after {run.done[-8:-1]}:", *run.found])
        return len(run.done)
    finally:
        run.close()
