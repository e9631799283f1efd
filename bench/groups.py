"""Groups: commits and heartbeats one at a time over one connection, and how long 100 members that come at once take to
be together in one generation. The yardstick beside them writes each commit, answers heartbeats and knows no member, and
has those that come at once wait for each other.
"""

from __future__ import annotations

import subprocess
import time

from bench import wire_load
from bench.compiled import local_port, program
from bench.cost import cpu_s
from bench.rounds import ALL, Case, Side
from bench.wire_load import Work
from bench.yardstick import MEMBERS
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import create_topic, make, protocols, subscription
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bench.rounds import Figures, Pace

TOPIC = "bench"


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
    if not side.is_broker:
        return _repeat(side, make("Heartbeat", group_id=group, generation_id=1, member_id="bench"), 3, pace)
    with Connection(side.bootstrap) as client:
        given: Any = client.request(make("JoinGroup", **join_fields(group)), 3)
        fields = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
        client.request(make("SyncGroup", **fields), 3)
    return _repeat(side, make("Heartbeat", **fields), 3, pace)


def consumer_heartbeats(side: Side, pace: Pace) -> Figures:
    """Heartbeats of a stable group of the consumer protocol."""
    who = {"group_id": side.next_name("bench-consumer"), "member_id": "bench"}
    if not side.is_broker:
        return _repeat(side, make("ConsumerGroupHeartbeat", **who, member_epoch=1), 1, pace)
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    with Connection(side.bootstrap) as client:
        request = make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=[TOPIC])
        joined: Any = client.request(request, 1)
    return _repeat(side, make("ConsumerGroupHeartbeat", **who, member_epoch=joined.member_epoch), 1, pace)


def _repeat(side: Side, request: Any, version: int, pace: Pace) -> Figures:
    """The same request again and again for the seconds of a step, by a client in C: next to nothing of the time is its
    own. Each answer must be the first again."""
    with Connection(side.bootstrap) as client:
        _checked(client.request(request, version))
        cpu = cpu_s(side.target)
        work = Work(encode_request_frame(request, version, 1, "bench"))
        taken_us, took_s = wire_load.run(side.bootstrap, [work], pace.seconds)
        spent = cpu_s(side.target) - cpu
        _checked(client.request(request, version))
    return {"per_s": len(taken_us) / took_s, "cpu_us": spent * 1e6 / len(taken_us)}


def _checked(answer: Any) -> None:
    """Raises RuntimeError for an answer with an error: it would be the time of a refusal."""
    rows = [answer] if hasattr(answer, "error_code") else [row for topic in answer.topics for row in topic.partitions]
    if any(row.error_code for row in rows):
        raise RuntimeError(f"refused: {answer}")


def members(side: Side, pace: Pace) -> Figures:
    """Until the members that came at once are together in one generation, in one group after another for the seconds of
    a step. One thread in C speaks for all of them (`members.c`). They leave before the next group, which is in the CPU
    and not in the time."""
    line = [str(program("members", ["bench/members.c"])), str(local_port(side.bootstrap)), str(MEMBERS), TOPIC]
    took_s, requests, groups = 0.0, 0, 0
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        assert it.stdin is not None and it.stdout is not None and it.stderr is not None
        it.stdout.readline()
        cpu = cpu_s(side.target)
        end_s = time.monotonic() + pace.seconds
        while time.monotonic() < end_s:
            groups += 1
            print(side.next_name("bench-members"), file=it.stdin, flush=True)
            told = it.stdout.readline().split()
            if len(told) != 2:
                raise RuntimeError(it.stderr.read()[-2000:])
            took_s += float(told[0])
            requests += int(told[1])
        spent = cpu_s(side.target) - cpu
        it.stdin.close()
    total = MEMBERS * groups
    return {"per_s": total / took_s, "cpu_us": spent * 1e6 / total, "requests": requests / total}


CASES = (
    Case("offset commits", commits, "per_s", kinds=ALL),
    Case("classic heartbeats", heartbeats, "per_s", kinds=ALL),
    Case("consumer heartbeats", consumer_heartbeats, "per_s", kinds=ALL),
    Case(f"{MEMBERS} members at once", members, "per_s", kinds=ALL),
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
