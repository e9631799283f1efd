"""Instructions that the broker executes for one request of each kind: ``python -m bench.instructions``.

Counted by callgrind, so the figures hardly depend on the machine or on what else it does. One broker runs under
valgrind; of each kind it serves some requests before the counter is set to zero and REQUESTS while it counts. The
figure is the least of three counts: timers and work in the background add to some of them, and nothing subtracts.
``--python`` counts a broker of another environment with the same requests, for a comparison of two versions;
``--functions`` prints where the instructions go. The table of docs/performance.md is made of ``--json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from kafka_shim.cext.records import build
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self

# Without what is not of a request: collections, the imports after a start, and the pauses of what takes long, which
# under valgrind is everything.
BROKER = """
import gc, sys
gc.disable()
from kafka_shim import first_uses, scheduler, turns
from kafka_shim.cli import main
first_uses.MODULES = ()
scheduler.SLICE_US = turns.SHARE_US = 10**9
sys.exit(main(sys.argv[1:]))
"""
WARM_UP, REQUESTS, COUNTS = 30, 100, 3
# How long the coordinators' topics may take to be there, also under valgrind.
LOADING_S = 60
COLLECTED = re.compile(r"^summary: (\d+)", re.MULTILINE)
READY = re.compile(rb"ready PLAINTEXT://(\S+) ")
SMALL = [(b"key", b"x" * 100, 1, ())]
LARGE = [(b"key", b"x" * 1000, 1, ())] * 1000
# Half of each is random, so that they compress to a little more than half.
MIXED = [(b"key", Random(number).randbytes(500) + bytes(500), 1, ()) for number in range(100)]
LZ4, ZSTD = 3, 4
CROWD, CROWDED_PARTITIONS = 200, 1_000
JOIN_GROUP, SYNC_GROUP = 11, 14
TOGETHER = 20
JOIN = {
    "session_timeout_ms": 300_000,
    "rebalance_timeout_ms": 300_000,
    "protocol_type": "consumer",
    "protocols": requests.protocols("range"),
}


class Workload:
    """One connection to the broker, a topic of one partition, and an idempotent producer's next sequence. A context
    manager: connections of members and of the crowd stay open until its end."""

    def __init__(self, client: Connection, address: str) -> None:
        self.client = client
        self._address = address
        self._crowd: list[Connection] = []
        self._members: list[Connection] = []
        self._open = ExitStack()
        self._sent = 0
        self._sequence = 0
        self._has_record = False
        self._watched: list[str] = []
        self._groups: list[str] = []
        self._sessions: dict[int, list[int]] = {}
        requests.create_topic(client, "counted", 1, {"max.message.bytes": "2000000"})
        client.request(requests.make("FindCoordinator", key_type=0, coordinator_keys=["beats"]), 4)
        answer = client.request(
            requests.make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000), 4
        )
        self._member: dict[str, Any] | None = None
        self._consumer: dict[str, Any] | None = None
        self._transactional: list[int] | None = None
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _produce(self, records: list[tuple[bytes, bytes, int, tuple[()]]], codec: int = 0) -> None:
        who = {"producer_id": self._producer_id, "producer_epoch": self._epoch}
        batch = build(records, codec=codec, base_sequence=self._sequence, **who)
        self._sequence += len(records)
        answer = self.client.request(requests.produce("counted", 0, batch), 11)
        _check(answer.responses[0].partition_responses[0].error_code)

    def small_produce(self) -> None:
        """One record of 100 bytes, acks=all, idempotent."""
        self._produce(SMALL)

    def large_produce(self) -> None:
        """1,000 records of 1,000 bytes in one batch."""
        self._produce(LARGE)

    def lz4_produce(self) -> None:
        """100 records of 1,000 bytes in one batch."""
        self._produce(MIXED, LZ4)

    def zstd_produce(self) -> None:
        """The same."""
        self._produce(MIXED, ZSTD)

    def fetch(self) -> None:
        """The first record of the partition, without a session."""
        if not self._has_record:
            self._produce(SMALL)
            self._has_record = True
        answer = self.client.request(requests.fetch("counted", 0, 0, max_bytes=1), 12)
        if not answer.responses[0].partitions[0].records:
            raise SystemExit("the record is missing")

    def fetch_few(self) -> None:
        """An incremental fetch of 10 partitions, of which one has a new record, with the produce of it."""
        self._fetch_session(10)

    def fetch_many(self) -> None:
        """The same of 4,000 partitions."""
        self._fetch_session(4_000)

    def _fetch_session(self, partition_count: int) -> None:
        topic = f"watched-{partition_count}"
        session = self._sessions.get(partition_count)
        if session is None:
            requests.create_topic(self.client, topic, partition_count, {})
            session = self._sessions[partition_count] = [0, 0]
            session[0] = self._fetch(topic, session, dict.fromkeys(range(partition_count), 0))
        self.client.request(requests.produce(topic, 0, build(SMALL)), 11)
        self._fetch(topic, session, {0: session[1] - 1})

    def _fetch(self, topic: str, session: list[int], offsets: dict[int, int]) -> int:
        parts = [
            {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            for number, offset in offsets.items()
        ]
        topics = [{"topic": topic, "partitions": parts}]
        how = {"session_id": session[0], "session_epoch": session[1]}
        answer = self.client.request(
            requests.make("Fetch", max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=topics, **how), 12
        )
        _check(answer.error_code)
        session[1] += 1
        return int(answer.session_id)

    def heartbeat(self) -> None:
        """A heartbeat of the only member of a stable classic group."""
        if self._member is None:
            given = self.client.request(requests.make("JoinGroup", group_id="beats", **JOIN), 3)
            self._member = {
                "group_id": "beats",
                "generation_id": given.generation_id,
                "member_id": given.member_id,
            }
            _check(self.client.request(requests.make("SyncGroup", **self._member), 3).error_code)
        _check(self.client.request(requests.make("Heartbeat", **self._member), 4).error_code)

    def membership(self) -> None:
        """The only member of a classic group gets its id, joins, syncs and leaves: four requests."""
        ask = {"group_id": "members", **JOIN}
        member_id = self.client.request(requests.make("JoinGroup", **ask), 5).member_id
        given = self.client.request(requests.make("JoinGroup", **ask, member_id=member_id), 5)
        _check(given.error_code)
        who = {"group_id": "members", "generation_id": given.generation_id, "member_id": member_id}
        assigned = [{"member_id": member_id, "assignment": b"x"}]
        _check(self.client.request(requests.make("SyncGroup", **who, assignments=assigned), 3).error_code)
        left = requests.make("LeaveGroup", group_id="members", members=[{"member_id": member_id}])
        _check(self.client.request(left, 3).error_code)

    def members(self) -> None:
        """The first of TOGETHER members is alone in a generation. The others get their ids, then all join, sync, and
        leave by one request."""
        if not self._members:
            self._members = [
                self._open.enter_context(Connection(self._address, timeout_s=900)) for _ in range(TOGETHER)
            ]
        alone = self._alone()
        ids = [alone, *self._ids()]
        generation = self._join_all(ids)
        who = {"group_id": "together", "generation_id": generation}
        # Each waits for the leader's, or comes behind it.
        for client, member_id in zip(self._members[1:], ids[1:], strict=True):
            client.send(requests.make("SyncGroup", **who, member_id=member_id), 3)
        assigned = [{"member_id": member_id, "assignment": b"x"} for member_id in ids]
        self._members[0].send(requests.make("SyncGroup", **who, member_id=ids[0], assignments=assigned), 3)
        for client in self._members:
            _check(client.receive(SYNC_GROUP, 3)[1].error_code)
        left = requests.make("LeaveGroup", group_id="together", members=[{"member_id": each} for each in ids])
        _check(self.client.request(left, 3).error_code)

    def _ids(self) -> list[str]:
        for client in self._members[1:]:
            client.send(requests.make("JoinGroup", group_id="together", **JOIN), 5)
        return [client.receive(JOIN_GROUP, 5)[1].member_id for client in self._members[1:]]

    def _alone(self) -> str:
        """Returns the id of the first member. Nobody else has one yet, for whom it would wait."""
        client = self._members[0]
        given = client.request(requests.make("JoinGroup", group_id="together", **JOIN), 5)
        first = requests.make("JoinGroup", group_id="together", **JOIN, member_id=given.member_id)
        alone = client.request(first, 5)
        _check(alone.error_code)
        who = {"group_id": "together", "generation_id": alone.generation_id, "member_id": given.member_id}
        _check(client.request(requests.make("SyncGroup", **who), 3).error_code)
        return str(given.member_id)

    def _join_all(self, ids: list[str]) -> int:
        """Returns the generation."""
        # In any order: also the leader's begins a rebalance, which waits for who has an id.
        for client, member_id in zip(self._members, ids, strict=True):
            client.send(requests.make("JoinGroup", group_id="together", **JOIN, member_id=member_id), 5)
        answers = [client.receive(JOIN_GROUP, 5)[1] for client in self._members]
        for answer in answers:
            _check(answer.error_code)
        (generation,) = {answer.generation_id for answer in answers}
        return int(generation)

    def consumer_heartbeat(self) -> None:
        """A heartbeat of the only member of a stable group of the consumer protocol."""
        if self._consumer is None:
            who = {"group_id": "consumers", "member_id": "counted"}
            first = {"member_epoch": 0, "rebalance_timeout_ms": 300_000, "topic_partitions": []}
            ask = requests.make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=["counted"])
            self._consumer = who | {"member_epoch": self.client.request(ask, 1).member_epoch}
        answer = self.client.request(requests.make("ConsumerGroupHeartbeat", **self._consumer), 1)
        _check(answer.error_code)

    def offset_commit(self) -> None:
        """A simple consumer commits the offset of one partition."""
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        topics = [{"name": "counted", "partitions": [part]}]
        self.client.request(
            requests.make("OffsetCommit", group_id="s", generation_id_or_member_epoch=-1, member_id="", topics=topics),
            8,
        )

    def latest_offsets(self) -> None:
        """Who watches lag: the ends of 20 topics of one partition."""
        if not self._watched:
            self._watched = [f"lagging-{number}" for number in range(20)]
            for name in self._watched:
                requests.create_topic(self.client, name, 1, {})
        part = {"partition_index": 0, "timestamp": -1}
        topics = [{"name": name, "partitions": [part]} for name in self._watched]
        answer = self.client.request(requests.make("ListOffsets", replica_id=-1, isolation_level=0, topics=topics), 7)
        _check(max(topic.partitions[0].error_code for topic in answer.topics))

    def offset_fetch(self) -> None:
        """Who watches lag: all offsets of five groups, six each."""
        names = ["counted", *(f"committed-{number}" for number in range(5))]
        if not self._groups:
            for name in names[1:]:
                requests.create_topic(self.client, name, 1, {})
            self._groups = [f"lagging-{number}" for number in range(5)]
            part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
            topics = [{"name": name, "partitions": [part]} for name in names]
            for name in self._groups:
                who = {"group_id": name, "generation_id_or_member_epoch": -1, "member_id": ""}
                self.client.request(requests.make("OffsetCommit", **who, topics=topics), 8)
        asked = [{"group_id": name, "topics": None} for name in self._groups]
        answer = self.client.request(requests.make("OffsetFetch", groups=asked), 9)
        _check(max(group.error_code for group in answer.groups))
        if any(len(group.topics) != len(names) for group in answer.groups):
            raise SystemExit("offsets are missing")

    def transaction(self) -> None:
        """One record to each of 20 partitions, offsets, and the commit, as a client of transactions version 2."""
        self._begin()
        self._produce_transactional(20, SMALL, 0)
        self._commit_offsets()
        self._commit()

    def sold(self) -> None:
        """One record to one partition, and the commit."""
        self._records_transaction(1, 1, 1)

    def sold_by_many(self) -> None:
        """One record to each of 20 partitions, and the commit."""
        self._records_transaction(20, 1, 1)

    def sold_in_bulk(self) -> None:
        """1,000 records to one partition, in the 14 requests that Java's client makes of them, and the commit."""
        self._records_transaction(1, 14, 71)

    def sold_in_bulk_everywhere(self) -> None:
        """1,000 records to 20 partitions, in the 5 requests that Java's client makes of them, and the commit."""
        self._records_transaction(20, 5, 10)

    def _records_transaction(self, partition_count: int, request_count: int, record_count: int) -> None:
        self._begin()
        for number in range(request_count):
            self._produce_transactional(partition_count, SMALL * record_count, number * record_count)
        self._commit()

    def crowded_produce(self) -> None:
        """A small produce without a producer id, from 200 connections to 1,000 partitions in turn; 200 are idle."""
        if not self._crowd:
            requests.create_topic(self.client, "crowded", CROWDED_PARTITIONS, {})
            for _ in range(CROWD):
                self._open.enter_context(socket.create_connection(parse_address(self._address)))
            self._crowd = [self._open.enter_context(Connection(self._address, timeout_s=900)) for _ in range(CROWD)]
            # The second append to a partition opens its indexes.
            for _ in range(2 * CROWDED_PARTITIONS):
                self._produce_crowded()
        self._produce_crowded()

    def _produce_crowded(self) -> None:
        client, partition = self._crowd[self._sent % CROWD], self._sent % CROWDED_PARTITIONS
        self._sent += 1
        answer = client.request(requests.produce("crowded", partition, build(SMALL)), 11)
        _check(answer.responses[0].partition_responses[0].error_code)

    def connection(self) -> None:
        """A client connects, asks for ApiVersions, and closes; the broker closes its end."""
        ask = requests.make("ApiVersions", client_software_name="bench", client_software_version="1")
        with socket.create_connection(parse_address(self._address), timeout=900) as client:
            client.sendall(encode_request_frame(ask, 3, 1, "counted"))
            if not client.recv(1 << 16):
                raise SystemExit("the broker closed a connection")
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass

    def _begin(self) -> None:
        if self._transactional is None:
            requests.create_topic(self.client, "sold", 20, {})
            for kind in (0, 1):
                ask = requests.make("FindCoordinator", key_type=kind, coordinator_keys=["t"])
                give_up = time.monotonic() + LOADING_S
                while code := self.client.request(ask, 4).coordinators[0].error_code:
                    if time.monotonic() > give_up:
                        _check(code)
                    time.sleep(0.05)
            given = self.client.request(
                requests.make("InitProducerId", transactional_id="t", transaction_timeout_ms=900_000), 5
            )
            _check(given.error_code)
            self._transactional = [given.producer_id, given.producer_epoch]

    def _producer(self) -> list[int]:
        assert self._transactional is not None
        return self._transactional

    def _produce_transactional(
        self, partition_count: int, records: list[tuple[bytes, bytes, int, tuple[()]]], sequence: int
    ) -> None:
        producer_id, epoch = self._producer()
        batch = build(
            records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
        )
        rows = [{"index": number, "records": batch} for number in range(partition_count)]
        topics = [{"name": "sold", "partition_data": rows}]
        ask = requests.make("Produce", transactional_id="t", acks=-1, timeout_ms=30_000, topic_data=topics)
        answer = self.client.request(ask, 12)
        _check(max(row.error_code for row in answer.responses[0].partition_responses))

    def _commit_offsets(self) -> None:
        producer_id, epoch = self._producer()
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        offsets = {"topics": [{"name": "counted", "partitions": [part]}], "group_id": "t", "member_id": ""}
        who = {"transactional_id": "t", "producer_id": producer_id, "producer_epoch": epoch}
        told = self.client.request(requests.make("TxnOffsetCommit", generation_id=-1, **who, **offsets), 5)
        _check(told.topics[0].partitions[0].error_code)

    def _commit(self) -> None:
        producer_id, epoch = self._producer()
        ended = self.client.request(
            requests.make(
                "EndTxn", transactional_id="t", producer_id=producer_id, producer_epoch=epoch, committed=True
            ),
            5,
        )
        _check(ended.error_code)
        self._transactional = [ended.producer_id, ended.producer_epoch]


def _check(error_code: int) -> None:
    if error_code:
        raise SystemExit(f"a request was refused: error code {error_code}")


KINDS: dict[str, Callable[[Workload], None]] = {
    "small produce": Workload.small_produce,
    "1 MB produce": Workload.large_produce,
    "lz4 produce": Workload.lz4_produce,
    "zstd produce": Workload.zstd_produce,
    "fetch of one record": Workload.fetch,
    "produce and incremental fetch, 10 partitions": Workload.fetch_few,
    "produce and incremental fetch, 4,000 partitions": Workload.fetch_many,
    "heartbeat": Workload.heartbeat,
    "join, sync and leave of a member": Workload.membership,
    "20 members join, sync and leave": Workload.members,
    "consumer heartbeat": Workload.consumer_heartbeat,
    "offset commit": Workload.offset_commit,
    "latest offsets of 20 topics": Workload.latest_offsets,
    "offset fetch of 5 groups": Workload.offset_fetch,
    "transaction of one record": Workload.sold,
    "transaction of 20 partitions": Workload.transaction,
    "transaction of 20 partitions without offsets": Workload.sold_by_many,
    "transaction of 1,000 records": Workload.sold_in_bulk,
    "transaction of 1,000 records, 20 partitions": Workload.sold_in_bulk_everywhere,
    "connect, ApiVersions, close": Workload.connection,
    # The last: its hundreds of connections and partitions would be beside the others.
    "small produce in a crowd": Workload.crowded_produce,
}


class Counter:
    """A broker under callgrind."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._dumps = 0

    def _tell(self, *words: str) -> None:
        subprocess.run(["vgdb", f"--pid={self._process.pid}", *words], check=True, capture_output=True)

    def begin(self) -> None:
        self._tell("instrumentation", "on")
        self._tell("zero")

    def end(self) -> Path:
        """Returns callgrind's file of what was executed since `begin`."""
        self._tell("dump")
        self._tell("instrumentation", "off")
        self._dumps += 1
        (found,) = self._folder.glob(f"out.{self._dumps}")
        return found


# The options of a broker whose requests are counted. Without retention and checkpoints: one more or less among the
# requests is a tenth of a figure, and of 4,000 partitions several times the figure. Half a minute after the start
# retention would delete the records, which are old by their timestamps, and close the files of a thousand partitions.
UNDISTURBED: dict[str, Any] = {"log.cleaner.enable": "false", "log.initial.task.delay.ms": "86400000"}


@contextmanager
def counted(python: str) -> Iterator[tuple[Counter, str]]:
    """A broker under callgrind, and its address. Without the garbage collector."""
    with tempfile.TemporaryDirectory(prefix="kafka-shim-instructions-") as name:
        folder = Path(name)
        line = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        line += [python, "-c", BROKER, "serve", "--listen", "127.0.0.1:0", "--data-dir", f"{folder}/data"]
        for option, value in UNDISTURBED.items():
            line += ["-o", f"{option}={value}"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        errors = folder / "stderr"
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(line, stdout=subprocess.PIPE, stderr=stderr, env=environment) as broker,
        ):
            assert broker.stdout is not None
            ready = READY.match(broker.stdout.readline())
            try:
                if ready is None:
                    broker.kill()
                    raise SystemExit(f"the broker did not get ready:\n{errors.read_text()[-2000:]}")
                yield Counter(broker, folder), ready[1].decode()
            finally:
                broker.send_signal(signal.SIGTERM)
                broker.wait()


def instructions(python: str, kinds: list[str], functions: int = 0) -> dict[str, float]:
    """Instructions of one request of each kind. With `functions` so many of them are printed with their own share."""
    found = {}
    with (
        counted(python) as (counter, address),
        Connection(address, timeout_s=900) as client,
        Workload(client, address) as workload,
    ):
        for kind in kinds:
            for _ in range(WARM_UP):
                KINDS[kind](workload)
            counts = []
            for _ in range(COUNTS):
                counter.begin()
                for _ in range(REQUESTS):
                    KINDS[kind](workload)
                path = counter.end()
                summary = COLLECTED.search(path.read_text())
                if summary is None:
                    raise SystemExit("callgrind gave no count")
                counts.append(int(summary[1]) / REQUESTS)
            found[kind] = min(counts)
            if functions:
                print(f"{kind}: {found[kind]:,.0f}\n{_by_function(path, functions)}", flush=True)
    return found


def _by_function(path: Path, count: int) -> str:
    """The functions with the most instructions of their own, as instructions of one request."""
    done = subprocess.run(
        ["callgrind_annotate", "--threshold=100", str(path)], capture_output=True, text=True, check=True
    )
    rows = re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(\S.*)$", done.stdout, re.MULTILINE)
    shown = [(int(number.replace(",", "")) / REQUESTS, name) for number, name in rows if "PROGRAM TOTALS" not in name]
    return "\n".join(f"{number:>10,.0f}  {name[-110:]}" for number, name in shown[:count])


def table(figures: Mapping[str, float]) -> str:
    rows = [f"| {kind} | {count:,.0f} |" for kind, count in figures.items()]
    return "\n".join(["| one request | instructions |", "| --- | ---: |", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the broker's environment")
    parser.add_argument("--functions", type=int, default=0, help="print so many functions of each kind")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=f"of: {', '.join(KINDS)}")
    given = parser.parse_args()
    figures = {kind: round(count) for kind, count in instructions(given.python, given.kinds, given.functions).items()}
    print(table(figures))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
