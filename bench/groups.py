"""Groups on the shim beside Apache Kafka: ``python -m bench.groups``.

Commits and heartbeats one at a time over one connection, and how long 100 members that come at once take to be together
in one generation. A figure is the median of the rounds after a warm-up.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from contextlib import ExitStack

from bench.cost import cpu_s
from bench.machine import awake
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import Target
from kafka_shim.targets import make as make_target
from kafka_shim.targets.requests import create_topic, make, protocols, subscription
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOPIC = "bench"
MEMBERS = 100


def join_fields(group: str, member_id: str = "") -> dict[str, Any]:
    return {
        "group_id": group,
        "member_id": member_id,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": protocols("range", metadata=subscription(TOPIC)),
    }


def commits(target: Target, count: int) -> tuple[float, float]:
    """(commits a second, CPU in us each)."""
    entry = {"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    request = make("OffsetCommit", group_id="bench-commits", topics=[entry])
    return _repeat(target, request, 9, count)


def heartbeats(target: Target, count: int) -> tuple[float, float]:
    """(heartbeats a second, CPU in us each) of a stable classic group."""
    group = f"bench-beats-{time.monotonic_ns()}"
    with Connection(target.bootstrap) as client:
        given: Any = client.request(make("JoinGroup", **join_fields(group)), 3)
        fields = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
        client.request(make("SyncGroup", **fields), 3)
    return _repeat(target, make("Heartbeat", **fields), 3, count)


def consumer_heartbeats(target: Target, count: int) -> tuple[float, float]:
    """(heartbeats a second, CPU in us each) of a stable group of the consumer protocol."""
    who = {"group_id": f"bench-consumer-{time.monotonic_ns()}", "member_id": "bench"}
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    with Connection(target.bootstrap) as client:
        request = make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=[TOPIC])
        joined: Any = client.request(request, 1)
    return _repeat(target, make("ConsumerGroupHeartbeat", **who, member_epoch=joined.member_epoch), 1, count)


def _repeat(target: Target, request: Any, version: int, count: int) -> tuple[float, float]:
    with Connection(target.bootstrap) as client:
        client.request(request, version)
        cpu, started = cpu_s(target), time.perf_counter()
        for _ in range(count):
            client.request(request, version)
        took_s = time.perf_counter() - started
        return count / took_s, (cpu_s(target) - cpu) * 1e6 / count


def members(target: Target, count: int) -> tuple[float, float]:
    """(members a second, CPU in us each) until `count` members that came at once are together in one generation."""
    group = f"bench-members-{time.monotonic_ns()}"
    generations: dict[int, int] = {}
    is_over = threading.Event()

    def settled() -> bool:
        return len(generations) == count and len(set(generations.values())) == 1

    def live(number: int, client: Connection) -> None:
        member_id = client.request(make("JoinGroup", **join_fields(group)), 9).member_id
        while not is_over.is_set():
            joined: Any = client.request(make("JoinGroup", **join_fields(group, member_id)), 9)
            who = {"group_id": group, "member_id": member_id, "generation_id": joined.generation_id}
            given = [{"member_id": each.member_id, "assignment": b"x"} for each in joined.members]
            name = {"protocol_type": joined.protocol_type, "protocol_name": joined.protocol_name}
            synced: Any = client.request(make("SyncGroup", **who, **name, assignments=given), 5)
            if synced.error_code != ErrorCode.NONE:
                continue
            generations[number] = joined.generation_id
            if settled():
                is_over.set()
            while not is_over.wait(0.05):
                answer: Any = client.request(make("Heartbeat", **who), 4)
                if answer.error_code != ErrorCode.NONE:
                    break

    with ExitStack() as stack:
        clients = [stack.enter_context(Connection(target.bootstrap)) for _ in range(count)]
        threads = [threading.Thread(target=live, args=each) for each in enumerate(clients)]
        cpu, started = cpu_s(target), time.perf_counter()
        for thread in threads:
            thread.start()
        is_over.wait(60)
        took_s = time.perf_counter() - started
        spent = cpu_s(target) - cpu
        is_over.set()
        for thread in threads:
            thread.join()
    return count / took_s, spent * 1e6 / count


WORK = (
    ("offset commits", commits, 2000),
    ("classic heartbeats", heartbeats, 2000),
    ("consumer heartbeats", consumer_heartbeats, 2000),
    (f"{MEMBERS} members at once until they are one generation", members, MEMBERS),
)

KINDS = ("shim", "kafka-native")


def run(rounds: int, kinds: tuple[str, ...]) -> dict[tuple[str, str], tuple[float, float]]:
    """(work, kind) -> (a second, broker CPU in us each), medians."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        sides = []
        for kind in kinds:
            target = stack.enter_context(make_target(kind, is_measured=True))
            with Connection(target.bootstrap) as client:
                create_topic(client, TOPIC, 1)
                _wait(client)
            sides.append((kind, target))
        for round_number in range(rounds + 1):
            for name, work, count in WORK:
                for kind, target in sides:
                    sample = work(target, count)
                    if round_number:
                        found.setdefault((name, kind), []).append(sample)
    return {
        key: (statistics.median(rate for rate, _ in samples), statistics.median(cost for _, cost in samples))
        for key, samples in found.items()
    }


def _wait(client: Connection) -> None:
    """Until the coordinator's topic is there and loaded."""
    groups = [{"group_id": f"probe-{number}", "topics": None} for number in range(300)]
    for _ in range(300):
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        answer: Any = client.request(make("OffsetFetch", groups=groups), 9)
        if not any(group.error_code for group in answer.groups):
            return
        time.sleep(0.1)
    raise RuntimeError("the coordinator does not load")


def table(found: dict[tuple[str, str], tuple[float, float]], kinds: tuple[str, ...]) -> str:
    lines = ["| groups | " + " | ".join(f"{kind}: a second, us CPU each" for kind in kinds) + " | ratio |"]
    lines.append("| --- |" + " --- |" * (len(kinds) + 1))
    for name, *_ in WORK:
        cells = [f"{found[name, kind][0]:,.0f}, {found[name, kind][1]:.0f}" for kind in kinds]
        ratio = f"{found[name, kinds[0]][0] / found[name, kinds[-1]][0]:.1f}" if len(kinds) > 1 else ""
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only-shim", action="store_true")
    given = parser.parse_args()
    kinds = KINDS[:1] if given.only_shim else KINDS
    with awake():
        print(table(run(given.rounds, kinds), kinds))


if __name__ == "__main__":
    main()
