"""Groups: commits and heartbeats one at a time over one connection, and how long 100 members that come at once take to
be together in one generation.
"""

from __future__ import annotations

import selectors
import time
from contextlib import ExitStack

from bench import wire_load
from bench.cost import cpu_s
from bench.rounds import Case, Side
from bench.wire_load import Work
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import create_topic, make, protocols, subscription
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bench.rounds import Figures, Pace

TOPIC = "bench"
MEMBERS = 100
JOIN_GROUP = 11
# Between a member's heartbeats, by which it learns that others have come. Clients take seconds.
HEARTBEAT_S = 0.005


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


class Member:
    """One of the members that come at once: what it sends next when it is answered."""

    def __init__(self, client: Connection, group: str) -> None:
        self.client = client
        self.group = group
        self.member_id = ""
        # Of the generation that it has synced in; 0: in none.
        self.generation = 0
        # When it sends its next heartbeat; 0: it waits for an answer.
        self.heartbeat_at = 0.0
        self._who: dict[str, Any] = {}
        self._asked: Any = None

    def join(self) -> None:
        self.generation = 0
        self._ask(make("JoinGroup", **join_fields(self.group, self.member_id)), 9)

    def heartbeat(self) -> None:
        self.heartbeat_at = 0.0
        self._ask(make("Heartbeat", **self._who), 4)

    def _ask(self, message: Any, version: int) -> None:
        self._asked = message.API_KEY, version
        self.client.send(message, version)

    def answered(self) -> None:
        """An answer has come."""
        _, answer = self.client.receive(*self._asked)
        if self._asked[0] == JOIN_GROUP and not self.member_id:
            self.member_id = answer.member_id
            self.join()
        elif answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif answer.error_code:
            raise RuntimeError(f"refused: {answer}")
        elif self._asked[0] == JOIN_GROUP:
            self._who = {"group_id": self.group, "member_id": self.member_id, "generation_id": answer.generation_id}
            given = [{"member_id": each.member_id, "assignment": b"x"} for each in answer.members]
            name = {"protocol_type": answer.protocol_type, "protocol_name": answer.protocol_name}
            self._ask(make("SyncGroup", **self._who, **name, assignments=given), 5)
        else:
            self.generation = self._who["generation_id"]
            self.heartbeat_at = time.perf_counter() + HEARTBEAT_S


def members(side: Side, pace: Pace) -> Figures:
    """Until the members that came at once are together in one generation. One thread speaks for all of them: a hundred
    would measure how they share one CPU."""
    group, target = side.next_name("bench-members"), side.target
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        crowd = [Member(stack.enter_context(Connection(target.bootstrap)), group) for _ in range(MEMBERS)]
        for member in crowd:
            selector.register(member.client.detach(), selectors.EVENT_READ, member)
        cpu, started = cpu_s(target), time.perf_counter()
        for member in crowd:
            member.join()
        while not _are_together(crowd):
            if time.perf_counter() > started + 120:
                raise RuntimeError(f"{MEMBERS} members are not in one generation after 120 s")
            for key, _ in selector.select(HEARTBEAT_S):
                key.data.answered()
            now = time.perf_counter()
            for member in crowd:
                if 0 < member.heartbeat_at <= now:
                    member.heartbeat()
        took_s = time.perf_counter() - started
        spent = cpu_s(target) - cpu
    return {"per_s": MEMBERS / took_s, "cpu_us": spent * 1e6 / MEMBERS}


def _are_together(crowd: list[Member]) -> bool:
    generations = {member.generation for member in crowd}
    return len(generations) == 1 and 0 not in generations


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
