"""What stops the event loop: the p99.9 of a small produce while heavy work runs beside it, and the longest turn.

The shim alone, in a process with a probe in its loop (`loop_broker`). Each case prepares its work, then measures while
it runs, again until there are enough latencies; the case "nothing" is what the others are beside. The client that
measures has a CPU before all others where the system allows that, and the one that causes the work has the lowest
priority: on two CPUs three processes would else wait for each other, for 3 ms at a time, and not for the broker's loop.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

from bench.client_process import ROOT, load, make_topic
from bench.clients import Shape, works
from bench.groups import join_fields
from bench.load import percentiles
from bench.rounds import SHIM, Case, Side
from bench.slow_disk import slow_disk
from bench.wire_load import running
from kafka_shim.cext.records import build
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets import requests
from kafka_shim.targets.base import Target
from kafka_shim.wire_client import Connection, check, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Self

    from bench.rounds import Figures, Pace

TOPICS, TOPIC_PARTITIONS = 20, 500
SEGMENTS, MEMBERS, CONNECTIONS, COLD_BYTES = 10_000, 1000, 5000, 100_000_000
FSYNCS, DISK_WRITES_A_SECOND = 50, 20
SMALL_PART = 20  # of each size, in a small run
RATE, LEAST_REQUESTS = 1000, 2000
# The longest fsync of a disk that nothing else uses: where none ended meanwhile, none is under way.
SYNC_TAKES_S = 0.5
LOWEST_PRIORITY = 19
# After the work itself: what it left for the loop.
AFTER_S = 0.3
OPTIONS = {
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    # All members that come at once are in one generation: they do not join again, as those of a client would, and the
    # second one would wait for the first until its time is up.
    "group.initial.rebalance.delay.ms": "200",
}


class Watched(Target):
    """A shim with a probe in its loop."""

    kind = "shim"

    def __init__(self, options: Mapping[str, str] = OPTIONS) -> None:
        super().__init__()
        self._options = options
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        command = [sys.executable, "-m", "bench.loop_broker", str(self.data_dir), json.dumps(self._options)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )
        self.pid = self._process.pid
        self.bootstrap = self._read()["bootstrap"]
        return self

    def _read(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def longest(self) -> Figures:
        """The longest stretch since the last call."""
        found = self._ask()
        del found["syncs"]
        return found

    def wait_for_syncs(self) -> None:
        """Until no fsync is made that was asked for before."""
        before = -1.0
        while before != (syncs := self._ask()["syncs"]):
            before = syncs
            time.sleep(SYNC_TAKES_S)

    def _ask(self) -> dict[str, float]:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, float] = self._read()
        return found

    def stop(self) -> None:
        if self._process is not None:
            with self._process:
                assert self._process.stdin is not None
                self._process.stdin.close()
            self._process = None


def prepare(side: Side) -> None:
    """Topics with 10,000 partitions beside those of the cases."""
    with Connection(side.bootstrap, timeout_s=300) as client:
        make_topic(client, "small", 1)
        for number in range(TOPICS):
            requests.create_topic(client, f"many-{number}", TOPIC_PARTITIONS)


def _case(name: str, make: Callable[[Side, int], Callable[[], object]]) -> Case:
    """`make` prepares the work on the side, at a part of its size, and returns it."""

    def work(side: Side, pace: Pace) -> Figures:
        target = side.target
        assert isinstance(target, Watched)
        part = SMALL_PART if pace.is_small else 1
        taken: list[float] = []
        longest: dict[str, float] = {}
        while len(taken) < LEAST_REQUESTS // part:
            taken += _measured(side, name, make(side, part))
            for figure, value in target.longest().items():
                longest[figure] = max(longest.get(figure, 0), value)
        return percentiles(taken) | longest

    return Case(f"loop: {name}", work, kinds=(SHIM,))


def _measured(side: Side, name: str, do: Callable[[], object]) -> list[float]:
    """The latencies while `do` runs, in a process of its own: in a thread it would hold the interpreter of the client
    that is measured."""

    def run() -> None:
        os.nice(LOWEST_PRIORITY)
        do()
        time.sleep(AFTER_S)

    assert isinstance(side.target, Watched)
    worker = multiprocessing.get_context("fork").Process(target=run)
    with running(side.bootstrap, works(side.bootstrap, "small", Shape()), RATE) as taken:
        side.target.longest()
        worker.start()
        worker.join()
    if worker.exitcode:
        raise RuntimeError(f"{name} failed")
    return taken.tolist()


def nothing(side: Side, part: int) -> Callable[[], object]:
    return lambda: time.sleep(1)


def _fill(client: Connection, topic: str, batches: int, records: list[Any]) -> None:
    for _ in range(batches):
        answer = client.request(requests.produce(topic, 0, build(records)), 11)
        check(answer.responses[0].partition_responses[0].error_code)


def _set(client: Connection, topic: str, **options: str) -> None:
    configs = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value} for name, value in options.items()
    ]
    row = {"resource_type": 2, "resource_name": topic, "configs": configs}
    check(client.request(requests.make("IncrementalAlterConfigs", resources=[row]), 1).responses[0].error_code)


def _wait(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"the work is not done after {seconds} s")
        time.sleep(0.05)


def _files(side: Side, topic: str) -> list[Path]:
    return list((side.target.data_dir / f"{topic}-0").glob("*.log"))


def _size_bytes(side: Side, topic: str) -> int:
    """Of the log. The broker may remove files meanwhile."""
    size_bytes = 0
    for path in _files(side, topic):
        with suppress(FileNotFoundError):
            size_bytes += path.stat().st_size
    return size_bytes


def compaction(side: Side, part: int) -> Callable[[], object]:
    """100,000 keys, each written twice, in segments of 1 MB."""
    topic, keys = side.next_name("compacted"), 100_000 // part
    now_ms = int(time.time() * 1000)
    with Connection(side.bootstrap, timeout_s=60) as client:
        requests.create_topic(client, topic, 1, {"internal.segment.bytes": str(1_000_000 // part)})
        for _ in range(2):
            for start in range(0, keys, 200):
                records = [(b"%d" % key, b"x" * 100, now_ms, ()) for key in range(start, start + 200)]
                _fill(client, topic, 1, records)
    before = _size_bytes(side, topic)

    def do() -> None:
        with Connection(side.bootstrap, timeout_s=60) as client:
            _set(client, topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
        _wait(lambda: _size_bytes(side, topic) < before * 0.7)

    return do


def retention(side: Side, part: int) -> Callable[[], object]:
    """10,000 segments that are all too old at once, and on the disk for as long."""
    topic, segments = side.next_name("retained"), SEGMENTS // part
    with Connection(side.bootstrap, timeout_s=60) as client:
        requests.create_topic(client, topic, 1, {"internal.segment.bytes": "150", "retention.ms": "-1"})
        _fill(client, topic, segments, [(None, b"x" * 80, int(time.time() * 1000) - 60_000, ())])
    assert isinstance(side.target, Watched)
    side.target.wait_for_syncs()

    def do() -> None:
        with Connection(side.bootstrap, timeout_s=60) as client:
            _set(client, topic, retention_ms="1")
        _wait(lambda: len(_files(side, topic)) <= 2)

    return do


def metadata(side: Side, part: int) -> Callable[[], object]:
    """Metadata of all 10,000 partitions, ten times."""

    def do() -> None:
        with Connection(side.bootstrap, timeout_s=60) as client:
            for _ in range(10):
                client.request(requests.make("Metadata", topics=None), 12)

    return do


def rebalance(side: Side, part: int) -> Callable[[], object]:
    """1,000 members of a classic group join, and all again with what the first round made of them."""
    group, count = side.next_name("crowd"), MEMBERS // part

    def do() -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(Connection(side.bootstrap, timeout_s=120)) for _ in range(count)]
            clients[0].request(requests.make("FindCoordinator", key_type=0, coordinator_keys=[group]), 4)
            names = [
                client.request(requests.make("JoinGroup", **join_fields(group)), 9).member_id for client in clients
            ]
            for client, name in zip(clients, names, strict=True):
                client.send(requests.make("JoinGroup", **join_fields(group, name)), 9)
            joined = [client.receive(11, 9)[1] for client in clients]
            for client, answer in zip(clients, joined, strict=True):
                given = [{"member_id": each.member_id, "assignment": b"x" * 100} for each in answer.members]
                who = {"group_id": group, "member_id": answer.member_id, "generation_id": answer.generation_id}
                kind = {"protocol_type": answer.protocol_type, "protocol_name": answer.protocol_name}
                client.send(requests.make("SyncGroup", **who, **kind, assignments=given), 5)
            for client in clients:
                client.receive(14, 5)

    return do


def cold_fetch(side: Side, part: int) -> Callable[[], object]:
    """100 MB that are not in the page cache."""
    topic = side.next_name("cold")
    with Connection(side.bootstrap, timeout_s=60) as client:
        make_topic(client, topic, 4)
    wrote = load("produce", side.target, topic, COLD_BYTES // part)
    for folder in side.target.data_dir.glob(f"{topic}-*"):
        for path in folder.glob("*.log"):
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
    return lambda: load("consume", side.target, topic, int(wrote["bytes"]))


def connections(side: Side, part: int) -> Callable[[], object]:
    """5,000 clients connect and ask for ApiVersions."""
    ask = requests.make("ApiVersions", client_software_name="bench", client_software_version="1")
    frame = encode_request_frame(ask, 3, 1, "many")

    def do() -> None:
        with ExitStack() as stack:
            opened = []
            for _ in range(CONNECTIONS // part):
                one = stack.enter_context(socket.create_connection(parse_address(side.bootstrap), timeout=60))
                one.sendall(frame)
                opened.append(one)
            for one in opened:
                if not one.recv(65536):
                    raise ConnectionError("the broker closed a connection")

    return do


def log_dirs(side: Side, part: int) -> Callable[[], object]:
    """DescribeLogDirs of all partitions, five times."""

    def do() -> None:
        with Connection(side.bootstrap, timeout_s=60) as client:
            for _ in range(5):
                client.request(requests.make("DescribeLogDirs", topics=None), 4)

    return do


def snapshot(side: Side, part: int) -> Callable[[], object]:
    """A new topic of 500 partitions makes a snapshot of the metadata of all 10,000 due."""
    topic = side.next_name("noted")
    folder = side.target.data_dir / "__cluster_metadata-0"

    def do() -> None:
        before = set(folder.glob("*.checkpoint"))
        with Connection(side.bootstrap, timeout_s=60) as client:
            requests.create_topic(client, topic, TOPIC_PARTITIONS)
        _wait(lambda: bool(set(folder.glob("*.checkpoint")) - before))

    return do


def slow_fsync(side: Side, part: int) -> Callable[[], object]:
    """Records that are each fsynced before the answer, on a disk of 20 writes a second."""
    topic = side.next_name("flushed")
    with Connection(side.bootstrap, timeout_s=60) as client:
        requests.create_topic(client, topic, 1, {"flush.messages": "1"})

    def do() -> None:
        took_s = []
        pid = side.target.pid
        assert pid is not None
        with (
            slow_disk(pid, side.target.data_dir, DISK_WRITES_A_SECOND),
            Connection(side.bootstrap, timeout_s=60) as client,
        ):
            for _ in range(max(FSYNCS // part, 2)):
                began = time.perf_counter()
                _fill(client, topic, 1, [(None, b"x" * 1000, int(time.time() * 1000), ())])
                took_s.append(time.perf_counter() - began)
        if sum(took_s) / len(took_s) < 1 / DISK_WRITES_A_SECOND:
            raise RuntimeError(f"the disk was not slow: {took_s}")

    return do


def cases(directory: Path) -> tuple[Case, ...]:
    """Those that can be done beside a broker with this data directory."""
    try:
        with slow_disk(os.getpid(), directory, DISK_WRITES_A_SECOND):
            pass
    except OSError as error:
        print(f"fsync on a slow disk is left out: {error}", file=sys.stderr)
        return CASES
    return (*CASES, _case("fsync on a slow disk", slow_fsync))


CASES = tuple(
    _case(name, make)
    for name, make in (
        ("nothing", nothing),
        ("compaction", compaction),
        ("retention of 10,000 segments", retention),
        ("metadata of 10,000 partitions", metadata),
        ("rebalance of 1,000 members", rebalance),
        ("100 MB of cold fetch", cold_fetch),
        ("start of 5,000 connections", connections),
        ("DescribeLogDirs", log_dirs),
        ("snapshot", snapshot),
    )
)
