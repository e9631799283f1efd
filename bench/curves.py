"""What one operation costs as a broker holds more, on the shim beside Apache Kafka: ``python -m bench.curves``.

A curve grows one thing (partitions, connections, groups ...) on a broker of its own, by ``grow``, and at each size does
the same small operation again and again, by ``work``. Both brokers grow alike; at each size they take turns, after a
warm-up, and a figure is the median of the rounds. One connection does the work, so that latency is not a queue.
``--json`` keeps every round; `bench.curve_plots` draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench import security
from bench.client_process import ROOT, make_topic
from bench.cost import cpu_s
from bench.machine import awake, description, load
from kafka_shim.cext.records import build
from kafka_shim.client_security import ClientSecurity
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import make as make_target
from kafka_shim.targets import requests
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from kafka_shim.targets import Target

    # Latency (median) and CPU of the broker, microseconds for each operation.
    Sample = tuple[float, float]

SHIM, KAFKA = "shim", "kafka-native"
KINDS = (SHIM, KAFKA)
# A JVM compiles while it works: it is warm before the first size, and once more at each.
ROUNDS, SECONDS, FIRST_WARM_UP_S, WARM_UP_S = 3, 0.4, 10.0, 1.0
# Partitions of a topic: a topic of thousands is created in several requests, as people do it.
TOPIC_PARTITIONS = 500
RECORD = [(b"key", b"x" * 100, 1, ())]
BATCH_BYTES = 1_000_000
LARGEST_BYTES = 10_000_000
# Of the memory, what the logs of both brokers may have.
PAGE_CACHE_SHARE = 0.8
SEGMENT_BYTES, OFFSETS_PER_SEGMENT = 1 << 30, 1_000_000
LOADING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
SETTINGS = {
    "message.max.bytes": str(LARGEST_BYTES * 2),
    # Else a group of members that come at once changes a second later again.
    "group.consumer.assignment.interval.ms": "0",
}
COORDINATOR_S = 60.0


@dataclass
class Growing:
    """A broker that grows, and the connection that does the work. `kept` is for the curve."""

    target: Target
    client: Connection
    bootstrap: str
    kept: dict[str, Any] = field(default_factory=dict)

    def next(self, name: str) -> int:
        """Counts from 0."""
        self.kept[name] = self.kept.get(name, -1) + 1
        return int(self.kept[name])


@dataclass(frozen=True)
class Curve:
    """`grow` brings a broker from one size to the next; `work` does one operation. `axis` says what a size counts."""

    title: str
    axis: str
    sizes: tuple[int, ...]
    grow: Callable[[Growing, int, int], None]
    work: Callable[[Growing], None]
    is_secured: bool = False
    # `grow` restarts the broker, so that it has to be warm again.
    is_restarted: bool = False


def _produce(broker: Growing, topic: str) -> None:
    answer = broker.client.request(requests.produce(topic, 0, build(RECORD)), 11)
    check(answer.responses[0].partition_responses[0].error_code)


def _add_partitions(broker: Growing, before: int, size: int) -> None:
    topics = broker.kept.setdefault("topics", [])
    while before < size:
        count = min(size - before, TOPIC_PARTITIONS)
        topics.append((f"grown-{len(topics)}", count))
        make_topic(broker.client, *topics[-1])
        before += count


def _to_first(broker: Growing) -> None:
    _produce(broker, "grown-0")


# --- one consumer's session


def _watch(broker: Growing, before: int, size: int) -> None:
    """A session with all partitions takes the place of the one of the size before."""
    _add_partitions(broker, before, size)
    if before:
        _ask(broker, broker.kept["session"] | {"session_epoch": -1}, [])
    broker.kept["offset"] = _end_offset(broker, "grown-0")
    topics = [
        {
            "topic": name,
            "partitions": [_wanted(at, 0 if at or number else broker.kept["offset"]) for at in range(count)],
        }
        for number, (name, count) in enumerate(broker.kept["topics"])
    ]
    answer = _ask(broker, {"session_id": 0, "session_epoch": 0}, topics)
    broker.kept["session"] = {"session_id": answer.session_id, "session_epoch": 1}


def _wanted(partition: int, offset: int) -> dict[str, int]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}


def _end_offset(broker: Growing, topic: str) -> int:
    rows = [{"partition_index": 0, "timestamp": -1}]
    message = requests.make("ListOffsets", replica_id=-1, topics=[{"name": topic, "partitions": rows}])
    return int(broker.client.request(message, 5).topics[0].partitions[0].offset)


def _ask(broker: Growing, session: Mapping[str, int], topics: list[dict[str, Any]]) -> Any:
    fetch = requests.make("Fetch", max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=topics, **session)
    answer = broker.client.request(fetch, 12)
    check(answer.error_code)
    return answer


def _one_more(broker: Growing) -> None:
    """One record to one partition, and the fetch that brings it."""
    _produce(broker, "grown-0")
    session = broker.kept["session"]
    answer = _ask(broker, session, [{"topic": "grown-0", "partitions": [_wanted(0, broker.kept["offset"])]}])
    session["session_epoch"] += 1
    broker.kept["offset"] += 1
    if not answer.responses or not answer.responses[0].partitions[0].records:
        raise RuntimeError("the new record was not fetched")


# --- connections, topics, groups


def _connect(broker: Growing, before: int, size: int) -> None:
    if not before:
        make_topic(broker.client, "grown-0", 1)
    held = broker.kept.setdefault("connections", [])
    for _ in range(size - before):
        held.append(Connection(broker.bootstrap))
        held[-1].request(requests.make("ApiVersions"), 0)


def _add_topics(broker: Growing, before: int, size: int) -> None:
    for first in range(before, size, TOPIC_PARTITIONS):
        names = [f"topic-{number}" for number in range(first, min(first + TOPIC_PARTITIONS, size))]
        requests.create_topics(broker.client, names, 1)


def _one_topic(broker: Growing) -> None:
    answer = broker.client.request(requests.make("Metadata", topics=[{"name": "topic-0"}]), 9)
    check(answer.topics[0].error_code)


def _commit(broker: Growing, group: int) -> int:
    entry = {"name": "grown-0", "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    answer = broker.client.request(requests.make("OffsetCommit", group_id=f"group-{group}", topics=[entry]), 9)
    return int(answer.topics[0].partitions[0].error_code)


def _patiently(ask: Callable[[], int]) -> None:
    """Until `ask` returns no error: the first request makes a coordinator's topic, whose partitions are loaded one
    after the other."""
    give_up = time.monotonic() + COORDINATOR_S
    while (code := ask()) in LOADING and time.monotonic() < give_up:
        time.sleep(0.02)
    check(code)


def _begin_with_coordinator(broker: Growing, key_type: int) -> None:
    """A topic, and the coordinator of groups (0) or transactions (1)."""
    make_topic(broker.client, "grown-0", 1)
    find = requests.make("FindCoordinator", key_type=key_type, coordinator_keys=["any"])
    _patiently(lambda: int(broker.client.request(find, 4).coordinators[0].error_code))


def _add_groups(broker: Growing, before: int, size: int) -> None:
    if not before:
        _begin_with_coordinator(broker, 0)
    for number in range(before, size):
        _patiently(lambda number=number: _commit(broker, number))  # type: ignore[misc]
    broker.kept["size"] = size


def _commit_next(broker: Growing) -> None:
    check(_commit(broker, broker.next("commit") % broker.kept["size"]))


# --- members


def _beat(broker: Growing, number: int, epoch: int) -> Any:
    joins = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": ["grown-0"]}
    first = {} if epoch else joins
    who = {"group_id": "members", "member_id": f"m{number}", "member_epoch": epoch}
    return broker.client.request(requests.make("ConsumerGroupHeartbeat", **who, **first), 1)


def _add_members(broker: Growing, before: int, size: int) -> None:
    """They join, and send heartbeats until all are in one epoch."""
    if not before:
        _begin_with_coordinator(broker, 0)
        _patiently(lambda: int(_beat(broker, 0, 0).error_code))
    epochs = broker.kept.setdefault("epochs", [])
    epochs += [0] * (size - before)
    is_still = False
    while not is_still:
        was = list(epochs)
        for number in range(size):
            answer = _beat(broker, number, epochs[number])
            check(answer.error_code, answer.error_message)
            epochs[number] = answer.member_epoch
        is_still = was == epochs and len(set(epochs)) == 1


def _beat_next(broker: Growing) -> None:
    epochs = broker.kept["epochs"]
    number = broker.next("beat") % len(epochs)
    answer = _beat(broker, number, epochs[number])
    check(answer.error_code, answer.error_message)
    epochs[number] = answer.member_epoch


# --- transactions


def _add_ids(broker: Growing, before: int, size: int) -> None:
    if not before:
        _begin_with_coordinator(broker, 1)
    for number in range(before, size):
        _patiently(lambda number=number: _init(broker, number))  # type: ignore[misc]


def _init(broker: Growing, number: int) -> int:
    ask = requests.make("InitProducerId", transactional_id=f"id-{number}", transaction_timeout_ms=900_000)
    given = broker.client.request(ask, 5)
    if not number:
        broker.kept["producer"] = given.producer_id, given.producer_epoch
    return int(given.error_code)


def _transact(broker: Growing) -> None:
    """One record and the commit, as a client of transactions version 2."""
    producer_id, epoch = broker.kept["producer"]
    who = {"transactional_id": "id-0", "producer_id": producer_id, "producer_epoch": epoch}
    batch = build(RECORD, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
    code = ErrorCode.CONCURRENT_TRANSACTIONS
    while code == ErrorCode.CONCURRENT_TRANSACTIONS:  # Kafka still completes the one before, and clients try again
        answer = broker.client.request(requests.produce("grown-0", 0, batch, transactional_id="id-0"), 12)
        code = answer.responses[0].partition_responses[0].error_code
    check(code)
    ended = broker.client.request(requests.make("EndTxn", committed=True, **who), 5)
    check(ended.error_code)
    broker.kept["producer"] = ended.producer_id, ended.producer_epoch


# --- ACLs, log, records


def _add_acls(broker: Growing, before: int, size: int) -> None:
    with Connection(broker.target.bootstrap, timeout_s=60) as administrator:
        security.add_acls(administrator, [f"other-{number}" for number in range(max(before, 1), size)])


def _fill(broker: Growing, before: int, size: int) -> None:
    if not before:
        make_topic(broker.client, "grown-0", 1)
    batch = build([(b"key", b"x" * 990, 1, ())] * (BATCH_BYTES // 1000))
    for _ in range(before, size):
        answer = broker.client.request(requests.produce("grown-0", 0, batch), 11)
        check(answer.responses[0].partition_responses[0].error_code)
    broker.kept["end"] = _end_offset(broker, "grown-0")
    if len(KINDS) * size * BATCH_BYTES > PAGE_CACHE_SHARE * psutil.virtual_memory().total:
        _evict(broker.target.data_dir / "grown-0-0")


def _evict(folder: Path) -> None:
    """Has the kernel forget the pages of a log. Of two logs that do not fit into its page cache together the one that
    was written last would have its pages there, and the other would be read from the disk."""
    os.sync()
    for path in folder.glob("*.log"):
        with path.open("rb") as log:
            os.posix_fadvise(log.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read_somewhere(broker: Growing) -> None:
    """The batch at an offset that jumps through the whole log, of which the first bytes are sent."""
    offset = broker.next("read") * 7_919_003 % broker.kept["end"]
    answer = broker.client.request(requests.fetch("grown-0", 0, offset, max_bytes=1), 12)
    check(answer.responses[0].partitions[0].error_code)


def _stretch(broker: Growing, before: int, size: int) -> None:
    """Makes a log of so many segments of 1 GiB, while the broker is stopped: each is a file with one batch at its
    beginning and a hole behind it, but for the last one, which is the batch alone."""
    if not before:
        make_topic(broker.client, "grown-0", 1)
        _to_first(broker)
    broker.client.close()
    broker.target.stop()
    folder = broker.target.data_dir / "grown-0-0"
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    now_ms = time.time_ns() // 1_000_000
    for number in range(size):
        base_offset = number * OFFSETS_PER_SEGMENT
        batch = build([(b"key", b"x" * 100, now_ms, ())], base_offset=base_offset)
        with (folder / f"{base_offset:020}.log").open("wb") as log:
            log.write(batch)
            if number < size - 1:
                log.truncate(SEGMENT_BYTES)
        for suffix in ("index", "timeindex"):
            (folder / f"{base_offset:020}.{suffix}").touch()
    # Else Kafka looks for the high watermark of before in a hole.
    end_offset = (size - 1) * OFFSETS_PER_SEGMENT + 1
    (folder.parent / "replication-offset-checkpoint").write_text(f"0\n1\ngrown-0 0 {end_offset}\n")
    broker.target.start()
    broker.client = Connection(broker.target.bootstrap, timeout_s=120)
    broker.kept["connections"] = [broker.client]
    broker.kept["segments"] = size


def _read_some_segment(broker: Growing) -> None:
    """The first batch of a segment, which jumps through the log."""
    number = broker.next("read") * 7919 % broker.kept["segments"]
    offset = number * OFFSETS_PER_SEGMENT
    answer = broker.client.request(requests.fetch("grown-0", 0, offset, max_bytes=1), 12)
    row = answer.responses[0].partitions[0]
    check(row.error_code)
    if int.from_bytes(bytes(row.records[:8])) != offset:
        raise RuntimeError(f"another batch than that of offset {offset}")


def _enlarge(broker: Growing, before: int, size: int) -> None:
    if not before:
        make_topic(broker.client, "grown-0", 1)
    broker.kept["batch"] = build([(b"", b"x" * size, 1, ())])


def _send(broker: Growing) -> None:
    answer = broker.client.request(requests.produce("grown-0", 0, broker.kept["batch"]), 11)
    check(answer.responses[0].partition_responses[0].error_code)


CURVES: dict[str, Curve] = {
    "partitions": Curve(
        "one record, beside partitions", "partitions", (10, 100, 1000, 10_000), _add_partitions, _to_first
    ),
    "session": Curve(
        "one record to a consumer", "partitions of the consumer", (10, 100, 1000, 4000), _watch, _one_more
    ),
    "connections": Curve(
        "one record, beside idle connections", "connections", (1, 10, 100, 1000, 5000), _connect, _to_first
    ),
    "topics": Curve("metadata of one topic", "topics", (10, 100, 1000, 10_000), _add_topics, _one_topic),
    "groups": Curve("commit of one offset", "groups", (1, 10, 100, 2000), _add_groups, _commit_next),
    "members": Curve("heartbeat of a member", "members of the group", (1, 10, 100, 2000), _add_members, _beat_next),
    "ids": Curve("transaction of one record", "transactional ids", (1, 10, 100, 1000, 10_000), _add_ids, _transact),
    "acls": Curve("one record of a user with an ACL", "ACLs", (1, 100, 1000, 10_000), _add_acls, _to_first, True),
    "log": Curve("fetch anywhere in the log", "MB of log", (10, 100, 1000, 10_000, 20_000), _fill, _read_somewhere),
    "sparse": Curve(
        "first batch of a segment",
        "GiB of log, most of it holes",
        (1, 10, 100, 1000),
        _stretch,
        _read_some_segment,
        is_restarted=True,
    ),
    "record": Curve("one record of a size", "bytes", (10, 1000, 100_000, 1_000_000, LARGEST_BYTES), _enlarge, _send),
}


# --- how a curve is taken


def measure(broker: Growing, work: Callable[[Growing], None], seconds: float) -> Sample:
    """As many operations as fit. Returns the median latency and the broker's CPU of one, in microseconds."""
    took_s = []
    cpu = cpu_s(broker.target)
    now = time.perf_counter()
    end = now + seconds
    while now < end:
        began = now
        work(broker)
        now = time.perf_counter()
        took_s.append(now - began)
    return statistics.median(took_s) * 1e6, (cpu_s(broker.target) - cpu) * 1e6 / len(took_s)


def started(stack: ExitStack, kind: str, curve: Curve, folder: Path) -> Growing:
    target: Target
    if curve.is_secured:
        setup = security.Setup(folder)
        secured = security.KINDS["shim" if kind == SHIM else "kafka"](setup.settings)
        secured.target.prepare_for_measuring()
        stack.enter_context(secured)
        target, bootstrap = secured.target, secured.addresses["SASL_PLAINTEXT"]
        target.bootstrap = secured.bootstrap
        user: ClientSecurity | None = ClientSecurity(setup.user)
        with Connection(target.bootstrap, timeout_s=60) as administrator:
            make_topic(administrator, "grown-0", 1)
            security.add_acls(administrator, ["grown-0"])
    else:
        target = stack.enter_context(make_target(kind, settings=SETTINGS, is_measured=True))
        bootstrap, user = target.bootstrap, None
    client = stack.enter_context(Connection(bootstrap, timeout_s=120, security=user))
    return Growing(target, client, bootstrap)


def taken(name: str, kinds: Sequence[str], rounds: int, seconds: float) -> dict[str, Any]:
    """One curve: at each size the samples of each side."""
    curve = CURVES[name]
    points = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        brokers = {kind: started(stack, kind, curve, folder) for kind in kinds}
        before = 0
        for size in curve.sizes:
            samples: dict[str, list[Sample]] = {kind: [] for kind in kinds}
            for broker in brokers.values():
                curve.grow(broker, before, size)
                is_cold = curve.is_restarted or not before
                measure(broker, curve.work, FIRST_WARM_UP_S if is_cold else WARM_UP_S)
            for number in range(rounds):
                for kind in kinds if number % 2 else kinds[::-1]:
                    samples[kind].append(measure(brokers[kind], curve.work, seconds))
            points.append({"size": size, "samples": samples})
            before = size
        for broker in brokers.values():
            for held in broker.kept.get("connections", ()):
                held.close()
            # Kafka takes over half a minute for a clean stop with thousands of partitions, and nobody needs these logs.
            broker.target.kill()
    return {"title": curve.title, "axis": curve.axis, "points": points}


def medians(point: Mapping[str, Any], kind: str) -> Sample:
    latency_us, cost_us = (statistics.median(values) for values in zip(*point["samples"][kind], strict=True))
    return latency_us, cost_us


def conditions(figures: Mapping[str, Any]) -> str:
    """One paragraph: when, on what machine, and how long."""
    machine, settings = figures["machine"], figures["settings"]
    later = "".join(f" Taken {began}: {', '.join(names)}." for began, names in figures.get("later", {}).items())
    return (
        f"{figures['began']}, {machine['cpus']} CPUs ({machine['cpu']}), {machine['memory_gb']} GB, load "
        f"{figures['load']:g} before; {settings['rounds']} rounds of {settings['seconds']:g} s at each size, after "
        f"{settings['first_warm_up_s']:g} s of warm-up at the first and {settings['warm_up_s']:g} s at each other."
        f"{later}"
    )


def merged(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """The figures with the curves of a later run of some of them, which say when they were taken. Raises ValueError if
    that was on another machine, of which the kernel's version may differ, or with other settings."""
    first, second = ({**found["machine"], "system": None, **found["settings"]} for found in (before, later))
    if first != second:
        raise ValueError("taken with other settings or on another machine")
    titles = [curve["title"] for curve in later["curves"].values()]
    found = {**before, "later": {**before.get("later", {}), later["began"]: titles}}
    return found | {"curves": {**before["curves"], **later["curves"]}}


def table(curves: Mapping[str, Any]) -> str:
    """The medians in Markdown: broker CPU and latency of one operation."""
    head = "| operation | beside | shim: CPU [us] | Kafka: CPU [us] | shim: p50 [us] | Kafka: p50 [us] |"
    return "\n".join([head, "| --- | --- | ---: | ---: | ---: | ---: |", *_rows(curves)])


def _rows(curves: Mapping[str, Any]) -> Iterator[str]:
    for curve in curves.values():
        for point in curve["points"]:
            (p50, cpu), (kafka_p50, kafka_cpu) = (medians(point, kind) for kind in KINDS)
            figures = " | ".join(f"{value:,.0f}" for value in (cpu, kafka_cpu, p50, kafka_p50))
            yield f"| {curve['title']} | {point['size']:,} {curve['axis']} | {figures} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.curves", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of a step")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "curves.json", help="every round")
    parser.add_argument("--merge", type=Path, metavar="JSON", help="a whole run, into which these curves are put too")
    parser.add_argument("names", nargs="*", default=list(CURVES), help=f"of: {', '.join(CURVES)}")
    given = parser.parse_args()
    found: dict[str, Any] = {
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": description(),
        "load": load(),
        "settings": {
            "rounds": given.rounds,
            "seconds": given.seconds,
            "first_warm_up_s": FIRST_WARM_UP_S,
            "warm_up_s": WARM_UP_S,
        },
        "curves": {},
    }
    given.json.parent.mkdir(parents=True, exist_ok=True)
    with awake():
        for name in given.names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found["curves"][name] = taken(name, KINDS, given.rounds, given.seconds)
            given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.merge:
        whole = merged(json.loads(given.merge.read_text(encoding="utf-8")), found)
        given.merge.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(table(found["curves"]))


if __name__ == "__main__":
    main()
