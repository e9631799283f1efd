"""The injector of `fault_injection` under share groups and a streams group, with both coordinators over real files.

`run(path, seed, nth, kind)` makes one run of a seeded workload: records appended, acquired by two members of a share
group and accepted, rejected or released, locks that end; members of a share group and of a streams group that join,
stay, leave and commit; start offsets altered and deleted; snapshots and pruning of `__share_group_state`. One call of
storage fails on the way; then comes a kill, and the next start must find that nothing acknowledged is delivered again,
that all else is, and that the groups are those that were acknowledged."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.client import Client
from kafka_shim.group.streams.group import StreamsGroup
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from kafka_shim.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_shim.tests.group import harness as group_harness
from kafka_shim.tests.share import share_node
from kafka_shim.tests.storage.fault_injection import Injector

STEPS = 120
MEMBERS = ("ann", "bob")
ACCEPT, RELEASE, REJECT = 1, 2, 3
SHARES, STREAMS = "sharers", "streamers"
TOPOLOGY = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]}
# Longer than an acquisition lock and the session of any member.
SILENCE_MS = 50_000
# More deliveries than a run has.
DELIVERIES = 10


class Node(group_harness.Node, share_node.ShareNode):
    """A node with the group coordinator and the share coordinator."""

    topic_name = GROUP_METADATA_TOPIC

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            share_coordinator_state_topic_num_partitions=2,
            share_coordinator_snapshot_update_records_per_snapshot=3,
            group_share_delivery_count_limit=DELIVERIES,
            group_share_max_delivery_count_limit=DELIVERIES,
            group_streams_initial_rebalance_delay_ms=0,
            group_streams_assignment_interval_ms=0,
            group_share_assignment_interval_ms=0,
        )

    def start_coordinator(self) -> None:
        self.metadata.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
        share_node.ShareNode.start_coordinator(self)
        group_harness.Node.start_coordinator(self)
        self.groups.share.persister = self.state

    def stop_coordinator(self) -> None:
        group_harness.Node.stop_coordinator(self)
        share_node.ShareNode.stop_coordinator(self)

    def beat(self, member_id: str, epoch: int, topics: list[str] | None) -> Any:
        """ShareGroupHeartbeat, and the states that it begins."""
        request = ShareGroupHeartbeatRequest(
            group_id=SHARES, member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics
        )

        async def run() -> Any:
            outcome = self.groups.share.heartbeat(request, Client("c", "/127.0.0.1"))
            if outcome.follow_up is not None:
                outcome.follow_up()
            return outcome.response

        answer = self.loop.run_until_complete(run())
        self.advance(0)
        return answer


class Run:
    """One run, and what must be found after it."""

    def __init__(self, path: Path, seed: int, injector: Injector) -> None:
        self.node = Node(path)
        self.random = random.Random(seed)
        self.injector = injector
        self.kills = 0
        # Offsets of the log that were acknowledged by the broker; accepted or rejected ones for certain, and those of
        # acknowledgements that failed, which may be done or not.
        self.appended: set[int] = set()
        self.done: set[int] = set()
        self.unsure: set[int] = set()
        self.held: dict[str, set[int]] = {name: set() for name in MEMBERS}
        # Epochs of members, of which heartbeats were answered; None: it is not known whether one is a member.
        self.sharers: dict[str, int | None] = {}
        self.streamers: dict[str, int | None] = {}
        self.committed = -1
        self.unsure_commits: set[int] = set()
        self.altered: int | None = None

    # --- records and members of the share partition

    def append(self) -> None:
        count = self.random.randrange(1, 5)
        done, _ = self.injector.attempt(lambda: self.node.produce(count))
        if done:
            end = self.node.logs.get("t", 0).log_end_offset
            self.appended |= set(range(end - count, end))

    def take(self) -> None:
        name = self.random.choice(MEMBERS)
        done, got = self.injector.attempt(lambda: self.node.acquire(name, 6, 3))
        if done:
            offsets = {offset for first, last, _ in got for offset in range(first, last + 1)}
            self.check_delivery(offsets)
            for other in MEMBERS:  # a share partition that was fenced starts over
                self.held[other] -= offsets
            self.held[name] |= offsets

    def check_delivery(self, offsets: set[int]) -> None:
        again = offsets & self.done
        assert not again, f"acknowledged and delivered again: {sorted(again)}"

    def acknowledge(self) -> None:
        name = self.random.choice(MEMBERS)
        if not self.held[name]:
            return
        kind = self.random.choice((ACCEPT, ACCEPT, REJECT, RELEASE))
        first = self.random.choice(sorted(self.held[name]))
        last = first
        while last + 1 in self.held[name] and self.random.random() < 0.7:
            last += 1
        offsets = set(range(first, last + 1))
        self.held[name] -= offsets
        code = self.node.acknowledge(name, (first, last, [kind]))
        if code is ErrorCode.NONE:
            if kind != RELEASE:
                self.done |= offsets
        else:
            assert self.injector.fired, code
            if kind != RELEASE:
                self.unsure |= offsets

    def locks_end(self) -> None:
        """Nobody is heard of for so long that locks and sessions end."""
        self.node.advance(SILENCE_MS)
        self.held = {name: set() for name in MEMBERS}
        for members in (self.sharers, self.streamers):
            members.clear()
            if self.injector.fired:
                members.update(dict.fromkeys(MEMBERS))  # their end is tried again until it can be written

    # --- groups

    def share_member(self) -> None:
        name = self.random.choice(MEMBERS)
        epoch = self.sharers.get(name, 0)
        leaves = bool(epoch) and self.random.random() < 0.3
        asked = -1 if leaves else epoch or 0
        done, answer = self.injector.attempt(lambda: self.node.beat(name, asked, None if asked else ["t", "u"]))
        if not done:
            self.sharers[name] = None
        elif leaves:
            del self.sharers[name]
        else:
            self.sharers[name] = answer.member_epoch

    def streams_member(self) -> None:
        name = self.random.choice(MEMBERS)
        epoch = self.streamers.get(name, 0)
        leaves = bool(epoch) and self.random.random() < 0.3
        none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        joining = {} if epoch else {"topology": TOPOLOGY}
        asked = -1 if leaves else epoch or 0
        given = {} if leaves else {**none, **joining}
        done, answer = self.injector.attempt(
            lambda: self.node.call(lambda: self.node.streams(STREAMS, name, asked, **given))
        )
        if not done:
            self.streamers[name] = None
        elif leaves:
            del self.streamers[name]
        else:
            self.streamers[name] = answer.member_epoch

    def commit(self) -> None:
        member = next((name for name, epoch in self.streamers.items() if epoch), None)
        if member is None:
            return
        offset = self.random.randrange(1000)
        epoch = self.streamers[member] or 0
        done, code = self.injector.attempt(lambda: self.node.commit(STREAMS, "t", offset, member, epoch))
        if done and code == 0:
            self.committed, self.unsure_commits = offset, set()
        else:
            assert self.injector.fired or code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID), code
            self.unsure_commits.add(offset)

    def alter(self) -> None:
        """Start offsets of a group of its own, which has no members."""
        offset = self.random.randrange(1000)
        share, topic_id = self.node.groups.share, self.node.metadata.image.topics["u"].topic_id
        if self.random.random() < 0.3:
            done, _ = self.injector.attempt(self._remove_altered)
            self.altered = None if done else -1
        else:
            work = lambda: self.node.finish(share.alter_offsets("altered", {topic_id: {0: offset, 1: offset}}))  # noqa: E731
            done, answer = self.injector.attempt(work)
            self.altered = offset if done and not answer[0] else -1
            assert self.altered >= 0 or self.injector.fired, answer

    def _remove_altered(self) -> None:
        if self.node.groups.find("altered") is not None:
            self.node.delete_group("altered")

    def step(self) -> None:
        steps: list[tuple[int, Callable[[], Any]]] = [
            (5, self.append),
            (8, self.take),
            (8, self.acknowledge),
            (1, self.locks_end),
            (4, self.share_member),
            (4, self.streams_member),
            (3, self.commit),
            (2, self.alter),
            (1, lambda: self.injector.attempt(self.node.state.coordinator.prune)),
            (1, lambda: self.injector.attempt(self.node.state.coordinator.snapshot_cold)),
            (1, self.restart),
        ]
        self.random.choices([one for _, one in steps], [weight for weight, _ in steps])[0]()

    def restart(self) -> None:
        """A kill, and a start that no fault meets."""
        was_active, self.injector.is_active = self.injector.is_active, False
        self.node.crash()
        self.kills += 1
        self.held = {name: set() for name in MEMBERS}
        self.check_groups()
        self.injector.is_active = was_active

    # --- what must hold

    def check_groups(self) -> None:
        """Members are those of answered heartbeats, at their epochs or later ones; the commit is the last one."""
        for group_id, members in ((SHARES, self.sharers), (STREAMS, self.streamers)):
            group = self.node.groups.find(group_id)
            found = {name: one.member_epoch for name, one in getattr(group, "members", {}).items()}
            for name in MEMBERS:
                epoch = members.get(name, 0)
                if epoch is None:
                    continue
                assert (name in found) == bool(epoch), f"{group_id}: {name} at {epoch}, found {found}"
                assert found.get(name, 0) >= epoch or group_id == STREAMS, f"{group_id}: {found} after {epoch}"
        if self.committed >= 0 or self.unsure_commits:
            found_offset = self.node.committed(STREAMS, "t")[0]
            assert found_offset in {self.committed, *self.unsure_commits}, f"commit {found_offset}: {self.committed}"
        if self.altered is not None and self.altered >= 0:
            topic_id = self.node.metadata.image.topics["u"].topic_id
            states = [self.node.state.read_summary("altered", topic_id, number)[2] for number in (0, 1)]
            assert states == [self.altered] * 2, f"altered to {self.altered}, found {states}"
        if self.altered is None:
            assert self.node.groups.find("altered") is None, "a removed group is back"

    def heal(self) -> None:
        """With the fault over everything works without a restart."""
        self.injector.is_active, self.injector.fired = False, ""
        node = self.node
        for log in [*node.logs.partitions.loaded.values(), node.logs.metadata_log]:
            if log is not None and not log.is_offline and log.sync_error is not None:
                try:
                    log.latest()
                except KafkaError:
                    continue
        assert node.logs.reopen_offline(), "a partition stays offline"

    def drain(self) -> None:
        """Everything that is not done is delivered, in the end, and nothing that is."""
        node = self.node
        self.locks_end()
        found: set[int] = set()
        for _ in range(200):
            got = node.acquire("ann")
            offsets = {offset for first, last, _ in got for offset in range(first, last + 1)}
            self.check_delivery(offsets)
            found |= offsets
            if not got and not node.acquire("ann"):
                break
        missing = self.appended - self.done - self.unsure - found
        assert not missing, f"neither acknowledged nor delivered: {sorted(missing)}"
        node.advance(SILENCE_MS)

    def go_on(self) -> None:
        """Every kind of step, none of which may be refused."""
        for step in (self.append, self.take, self.acknowledge, self.share_member, self.streams_member, self.alter):
            step()
        assert isinstance(self.node.groups.find(STREAMS), StreamsGroup)


def run(path: Path, seed: int, nth: int, kind: str, *, kill_at_once: bool = False) -> tuple[int, str, int]:
    """One run: the calls counted, what failed first, kills. AssertionError, or whatever else escapes, is a finding."""
    injector = Injector()
    injector.nth, injector.kind = nth, kind
    with injector.installed():
        one = Run(path, seed, injector)
        one.node.topic("u")
        try:
            injector.is_active = True
            for _ in range(STEPS):
                one.step()
                if kill_at_once and injector.fired:
                    break
            fired, injector.is_active = injector.fired, False
            if not kill_at_once:
                one.heal()
                one.drain()
                one.go_on()
            for _ in range(2):
                one.restart()
                one.heal()
                one.drain()
                one.go_on()
        finally:
            injector.is_active = False
            one.node.close()
    return injector.count, fired, one.kills
