"""Groups: commits and heartbeats one at a time over one connection, and how long 100 members that come at once take to
be together in one generation.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

from bench.cost import cpu_s
from bench.rounds import Case, Side
from kafka_shim.errors import ErrorCode
from kafka_shim.targets.requests import create_topic, make, protocols, subscription
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bench.rounds import Figures, Pace

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


def commits(side: Side, pace: Pace) -> Figures:
    """A simple consumer's commits of one partition."""
    entry = {"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    request = make("OffsetCommit", group_id="bench-commits", topics=[entry])
    return _repeat(side, request, 9, pace)


def heartbeats(side: Side, pace: Pace) -> Figures:
    """Heartbeats of a stable classic group."""
    group = side.next_name("bench-beats")
    with Connection(side.bootstrap) as client:
        given: Any = client.request(make("JoinGroup", **join_fields(group)), 3)
        fields = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
        client.request(make("SyncGroup", **fields), 3)
    return _repeat(side, make("Heartbeat", **fields), 3, pace)


def consumer_heartbeats(side: Side, pace: Pace) -> Figures:
    """Heartbeats of a stable group of the consumer protocol."""
    who = {"group_id": side.next_name("bench-consumer"), "member_id": "bench"}
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    with Connection(side.bootstrap) as client:
        request = make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=[TOPIC])
        joined: Any = client.request(request, 1)
    return _repeat(side, make("ConsumerGroupHeartbeat", **who, member_epoch=joined.member_epoch), 1, pace)


def _repeat(side: Side, request: Any, version: int, pace: Pace) -> Figures:
    """The same request again and again for the seconds of a step."""
    with Connection(side.bootstrap) as client:
        _checked(client.request(request, version))
        count, cpu, started = 0, cpu_s(side.target), time.perf_counter()
        end = started + pace.seconds
        while (now := time.perf_counter()) < end:
            answer = client.request(request, version)
            count += 1
        spent = cpu_s(side.target) - cpu
    _checked(answer)
    return {"per_s": count / (now - started), "cpu_us": spent * 1e6 / count}


def _checked(answer: Any) -> None:
    """Raises RuntimeError for an answer with an error: it would be the time of a refusal."""
    rows = [answer] if hasattr(answer, "error_code") else [row for topic in answer.topics for row in topic.partitions]
    if any(row.error_code for row in rows):
        raise RuntimeError(f"refused: {answer}")


def members(side: Side, pace: Pace) -> Figures:
    """Until the members that came at once are together in one generation."""
    group, count, target = side.next_name("bench-members"), MEMBERS, side.target
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
        if not is_over.wait(120):
            raise RuntimeError(f"{count} members are not in one generation after 120 s")
        took_s = time.perf_counter() - started
        spent = cpu_s(target) - cpu
        is_over.set()
        for thread in threads:
            thread.join()
    return {"per_s": count / took_s, "cpu_us": spent * 1e6 / count}


CASES = (
    Case("offset commits", commits, "per_s"),
    Case("classic heartbeats", heartbeats, "per_s"),
    Case("consumer heartbeats", consumer_heartbeats, "per_s"),
    Case(f"{MEMBERS} members at once", members, "per_s"),
)


def prepare(side: Side) -> None:
    """Makes the topic, and waits until the coordinator's topic is there and loaded."""
    groups = [{"group_id": f"probe-{number}", "topics": None} for number in range(300)]
    with Connection(side.bootstrap) as client:
        create_topic(client, TOPIC, 1)
        for _ in range(300):
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
            answer: Any = client.request(make("OffsetFetch", groups=groups), 9)
            if not any(group.error_code for group in answer.groups):
                return
            time.sleep(0.1)
    raise RuntimeError("the coordinator does not load")
