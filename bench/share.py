"""Share groups and streams groups on the shim beside Apache Kafka: ``python -m bench.share --json FILE``.

Records a second that Kafka's own ShareConsumerPerformance acquires and accepts with 1 and with 16 consumers; how long
500 members of a share group and 50 of a streams group take until each has its assignment and none is behind. The
brokers take turns, which of them begins alternates, and a figure is the median of the rounds after a warm-up; a ratio
is the median of the rounds' ratios, with the smallest and the largest. The rate of records is the tool's own
(`nMsg.sec`), which counts the time to join as well, for both brokers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from contextlib import ExitStack
from pathlib import Path

from bench.cost import cpu_s
from bench.machine import awake, description
from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import Target, jvm
from kafka_shim.targets import make as make_target
from kafka_shim.targets.requests import create_topic, make, produce
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    # Work a second, CPU of the broker in microseconds for each, memory is not measured.
    Sample = tuple[float, float]

TOPIC, PARTITIONS = "bench", 16
# It has a task for each member.
TASKS = "tasks"
RECORD_BYTES, RECORDS_PER_BATCH = 100, 500
PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
GROUP_RESOURCE = 32
KINDS = ("shim", "kafka-native")
_NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
SETTINGS = {
    "group.share.max.size": "1000",
    "group.share.heartbeat.interval.ms": "5000",
    # Members of the measured groups come at once; a target for each of them would measure the timer alone.
    "group.streams.initial.rebalance.delay.ms": "0",
}
# A heartbeat that is told to wait is sent again until all members have what is theirs.
MOST_BEATS = 200
# What a broker learns from its controller is there by then.
PATIENCE_S = 60.0


def fill(client: Connection, records: int) -> None:
    """Write so many records, the same number into each partition."""
    value = b"x" * RECORD_BYTES
    for number in range(records // RECORDS_PER_BATCH):
        now_ms = time.time_ns() // 1_000_000
        batch = bytes(build([(None, value, now_ms, ())] * RECORDS_PER_BATCH))
        # Kafka's broker learns of a topic some time after its controller's answer.
        deadline_s = time.monotonic() + PATIENCE_S
        while (code := _written(client, number % PARTITIONS, batch)) in _NOT_YET and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert code is ErrorCode.NONE, code


def _written(client: Connection, partition: int, batch: bytes) -> ErrorCode:
    answer = client.request(produce(TOPIC, partition, batch), 11)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def set_options(client: Connection, group: str, options: dict[str, str]) -> None:
    """Set options of a group, and wait until the broker knows them."""
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in options.items()]
    row = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}
    (told,) = client.request(make("IncrementalAlterConfigs", resources=[row]), 1).responses
    assert not told.error_code, told
    asked = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configuration_keys": list(options)}
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        (result,) = client.request(make("DescribeConfigs", resources=[asked]), 4).results
        if {one.name: one.value for one in result.configs} == options:
            return
        assert time.monotonic() < deadline_s, f"{group} has not the options {options} after {PATIENCE_S} s"
        time.sleep(0.02)


def records(target: Target, count: int, consumers: int) -> Sample:
    """Records that so many consumers read and accept."""
    group = f"records-{time.monotonic_ns()}"
    with Connection(target.bootstrap) as client:
        set_options(client, group, {"share.auto.offset.reset": "earliest"})
    where = ("--bootstrap-server", target.bootstrap, "--topic", TOPIC, "--group", group)
    how = ("--num-records", str(count), "--threads", str(consumers), "--timeout", "60000", "--hide-header")
    spent = cpu_s(target)
    told = jvm.run(PERFORMANCE, *where, *how, timeout_s=600).stdout.decode()
    spent = cpu_s(target) - spent
    *_, rate, _, _ = told.strip().splitlines()[-1].split(", ")
    return float(rate), spent * 1e6 / count


def share_members(target: Target, count: int) -> Sample:
    """Members of a share group, each with an assignment."""

    def beat(group: str, number: int, epoch: int) -> Any:
        first: dict[str, Any] = {} if epoch else {"subscribed_topic_names": [TOPIC]}
        return make("ShareGroupHeartbeat", group_id=group, member_id=f"m{number}", member_epoch=epoch, **first)

    assigned: set[int] = set()

    def take(number: int, answer: Any) -> None:
        if answer.assignment is not None and answer.assignment.topic_partitions:
            assigned.add(number)

    return _members(target, count, beat, 1, {}, take, lambda: len(assigned) == count)


def streams_members(target: Target, count: int) -> Sample:
    """Members of a streams group, each with its tasks."""
    shape = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [TASKS]}]}
    owned: dict[int, dict[str, Any]] = {}

    def beat(group: str, number: int, epoch: int) -> Any:
        first: dict[str, Any] = {}
        if not epoch:
            owned[number] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
            first = {"rebalance_timeout_ms": 60_000, "topology": shape, "process_id": f"p{number}", "client_tags": []}
        who = {"group_id": group, "member_id": f"m{number}", "member_epoch": epoch}
        return make("StreamsGroupHeartbeat", **who, **first, **owned[number])

    def take(number: int, answer: Any) -> None:
        """The member does as it is told; what it has, it says in its next heartbeat."""
        for name, tasks in owned[number].items():
            given = getattr(answer, name)
            if given is not None:
                rows = [{"subtopology_id": one.subtopology_id, "partitions": one.partitions} for one in given]
                tasks[:] = rows

    options = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}
    return _members(target, count, beat, 0, options, take, lambda: all(one["active_tasks"] for one in owned.values()))


def _members(
    target: Target,
    count: int,
    beat: Callable[[str, int, int], Any],
    version: int,
    options: dict[str, str],
    take: Callable[[int, Any], None],
    is_whole: Callable[[], bool],
) -> Sample:
    """All join, and then send heartbeats until all have the same epoch and something to do, and nothing changes any
    more."""
    group = f"members-{time.monotonic_ns()}"
    with Connection(target.bootstrap) as client:
        if options:
            set_options(client, group, options)
        epochs = [0] * count
        spent, started = cpu_s(target), time.perf_counter()
        for _ in range(MOST_BEATS):
            before = list(epochs)
            for number in range(count):
                answer = client.request(beat(group, number, epochs[number]), version)
                assert not answer.error_code, answer
                epochs[number] = answer.member_epoch
                take(number, answer)
            if before == epochs and len(set(epochs)) == 1 and is_whole():
                break
        else:
            raise AssertionError(f"{target.kind}: members do not agree: {sorted(set(epochs))}")
        took_s = time.perf_counter() - started
        return count / took_s, (cpu_s(target) - spent) * 1e6 / count


def works(records_count: int, members: int, streams: int) -> dict[str, Callable[[Target], Sample]]:
    """What is measured, by name."""
    return {
        "share records, 1 consumer": lambda target: records(target, records_count, 1),
        "share records, 16 consumers": lambda target: records(target, records_count, 16),
        f"{members} share members until each has its assignment": lambda target: share_members(target, members),
        f"{streams} streams members until each has its tasks": lambda target: streams_members(target, streams),
    }


def run(rounds: int, kinds: tuple[str, ...], sizes: tuple[int, int, int]) -> dict[str, dict[str, list[Sample]]]:
    """Work -> kind -> samples."""
    found: dict[str, dict[str, list[Sample]]] = {}
    with ExitStack() as stack:
        sides = []
        for kind in kinds:
            target = stack.enter_context(make_target(kind, settings=SETTINGS, is_measured=True))
            with Connection(target.bootstrap, timeout_s=60) as client:
                create_topic(client, TOPIC, PARTITIONS)
                create_topic(client, TASKS, sizes[2])
                fill(client, sizes[0])
            sides.append((kind, target))
        for round_number in range(rounds + 1):
            for name, work in works(*sizes).items():
                for kind, target in sides if round_number % 2 else sides[::-1]:
                    sample = work(target)
                    if round_number:  # the first warms up
                        found.setdefault(name, {}).setdefault(kind, []).append(sample)
    return found


def ratios(by_kind: Mapping[str, Sequence[Sequence[float]]], kinds: tuple[str, ...]) -> dict[str, list[float]]:
    """The first kind's figures over the last one's, of each round: of the rates, and of CPU."""
    pairs = list(zip(by_kind[kinds[0]], by_kind[kinds[-1]], strict=True))
    return {
        "rate": [ours[0] / theirs[0] for ours, theirs in pairs],
        # CPU is counted in steps of 10 ms; Kafka's is never none.
        "cpu": [ours[1] / theirs[1] for ours, theirs in pairs if theirs[1]],
    }


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(found: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], kinds: tuple[str, ...]) -> str:
    """The medians as a table in Markdown, and the ratios with their spread."""
    lines = ["| share and streams groups | " + " | ".join(f"{kind}: a second, us CPU each" for kind in kinds)]
    lines[0] += " | ratio | CPU ratio |"
    lines.append("| --- |" + " --- |" * (len(kinds) + 2))
    for name, by_kind in found.items():
        cells = [_figures(by_kind[kind]) for kind in kinds]
        shown = [_spread(values) for values in ratios(by_kind, kinds).values()] if len(kinds) > 1 else ["", ""]
        lines.append(f"| {name} | " + " | ".join([*cells, *shown]) + " |")
    return "\n".join(lines)


def _figures(samples: Sequence[Sequence[float]]) -> str:
    rate, cost_us = (statistics.median(values) for values in zip(*samples, strict=True))
    return f"{rate:,.0f}, {cost_us:,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--streams-members", type=int, default=50)
    parser.add_argument("--only-shim", action="store_true")
    parser.add_argument("--json", type=Path, help="also write every sample there")
    given = parser.parse_args()
    kinds = KINDS[:1] if given.only_shim else KINDS
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    with awake():
        found = run(given.rounds, kinds, (given.records, given.members, given.streams_members))
    print(table(found, kinds))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        told = {"began": began, "machine": description(), "rounds": given.rounds, "samples": found}
        given.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
