"""`ClassicMember`: a member of a classic group with the range assignor, which Java's consumers have by default. A group
whose members have none but another assignor refuses it (Kafka: AbstractCoordinator, ConsumerCoordinator,
RangeAssignor)."""

from __future__ import annotations

import time

from kafka_shim.cext.messages import encode
from kafka_shim.client.offsets import commit_offsets, committed_offsets
from kafka_shim.client.reading import EARLIEST, list_offsets
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.group.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_topics, write_assignment
from kafka_shim.protocol.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 45_000, 300_000
HEARTBEAT_S, COMMIT_S = 3.0, 5.0
ASSIGNOR = "range"
SUBSCRIPTION_VERSION = 1
# The answer to a join comes when the last member has joined, or its time for that is over (Kafka:
# JOIN_GROUP_TIMEOUT_LAPSE).
JOIN_S = REBALANCE_TIMEOUT_MS / 1000 + 5
# The member has to join again, with its member id or without.
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})


class ClassicMember:
    """Joins at the first call of `positions`, and leaves with `close`. Commits what was read every few seconds, before
    it gives partitions away, and when it leaves, unless it is not to. Not thread-safe; call `positions` at least every
    few seconds."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Callable[[], list[str]],
        *,
        begin: Callable[[list[TopicPartition]], dict[TopicPartition, int]] | None = None,
        commits: bool = True,
        join_s: float = JOIN_S,
    ) -> None:
        """`topics` returns what the member wants now; `begin` says where partitions without committed offset begin, by
        default at their first record; `commits`: whether it commits at all; `join_s`: how long it waits for the other
        members to join. Raises WireClientError, as every method."""
        self._cluster = cluster
        self._join_s = join_s
        self._group = group
        self._topics = topics
        self._begin = begin or (lambda fresh: list_offsets(cluster, dict.fromkeys(fresh, EARLIEST)))
        self._commits = commits
        self._member_id = ""
        self._generation = -1
        self._wanted: list[str] = []
        self._positions: dict[TopicPartition, int] = {}
        # What is assigned while its positions are not known.
        self._untaken: list[TopicPartition] = []
        # Whether there is something to commit: positions without a record too, as Java's consumer commits them.
        self._has_read = False
        self._beat_at = self._committed_at = 0.0

    def positions(self) -> dict[TopicPartition, int]:
        """The partitions that the member has, and the next offset of each. Empty while a transaction may be
        committing offsets of them: the member keeps its place in the group, and asks again at the next call, as it does
        after a lost connection."""
        now = time.monotonic()
        if self._generation >= 0 and now - self._committed_at >= COMMIT_S:
            self.commit()
        if self._generation >= 0 and now - self._beat_at >= HEARTBEAT_S:
            self._beat()
        if self._generation < 0:
            self._join()
        if self._untaken:
            self._take()
        return self._positions

    def read(self, each: TopicPartition, offset: int) -> None:
        """Go on at `offset`; what is below it is done."""
        if each in self._positions and self._positions[each] != offset:
            self._positions[each] = offset
            self._has_read = True

    def commit(self) -> None:
        """Commit what was read. A group that rebalances refuses it: then the next owner reads it again."""
        self._committed_at = time.monotonic()
        if not self._has_read or not self._commits:
            return
        offsets = self._positions
        try:
            commit_offsets(
                self._cluster, self._group, offsets, member_id=self._member_id, member_epoch=self._generation
            )
            self._has_read = False
        except RequestError as err:
            self._drop_out(err)

    def close(self) -> None:
        """Commit and leave the group."""
        if not self._member_id:
            return
        self.commit()
        members = [{"member_id": self._member_id, "reason": "the consumer is being closed"}]
        self._coordinator().request(make("LeaveGroup", group_id=self._group, members=members))
        self._member_id, self._generation = "", -1

    # --- the protocol

    def _coordinator(self) -> Any:
        return self._cluster.coordinator(self._group)

    def _drop_out(self, err: RequestError) -> None:
        if err.code not in REJOIN:
            raise err
        if err.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._generation = -1

    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        if sorted(self._topics()) != self._wanted:
            self._give_up()  # topics came or went
            return
        request = make("Heartbeat", group_id=self._group, generation_id=self._generation, member_id=self._member_id)
        try:
            check(self._coordinator().request(request).error_code, subject=self._group)
        except RequestError as err:
            if err.code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._give_up()
            else:
                self._drop_out(err)

    def _give_up(self) -> None:
        """Join again; what was read is committed before."""
        self.commit()
        self._generation = -1

    def _join(self) -> None:
        while True:
            try:
                self._wanted = sorted(self._topics())
                self._sync(self._cluster.patiently(self._ask_to_join))
            except RequestError as err:
                self._drop_out(err)
            else:
                return

    def _ask_to_join(self) -> Any:
        subscription = ConsumerProtocolSubscription(topics=self._wanted, user_data=None, owned_partitions=[])
        metadata = SUBSCRIPTION_VERSION.to_bytes(2) + bytes(encode(subscription, SUBSCRIPTION_VERSION))
        while True:
            request = make(
                "JoinGroup",
                group_id=self._group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[{"name": ASSIGNOR, "metadata": metadata}],
            )
            try:
                answer = self._coordinator().request(request, timeout_s=self._join_s)
            except BaseException:
                self._cluster.close()  # the broker answers nothing else there before
                raise
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                check(answer.error_code, subject=self._group)
                return answer
            self._member_id = answer.member_id

    def _sync(self, joined: Any) -> None:
        self._member_id, generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self._member_id:
            wanted = {one.member_id: read_topics(bytes(one.metadata)) for one in joined.members}
            counts = self._counts({topic for topics in wanted.values() for topic in topics})
            assignments = [
                {"member_id": member, "assignment": write_assignment(held, SUBSCRIPTION_VERSION)}
                for member, held in assign_range(wanted, counts).items()
            ]
        request = make(
            "SyncGroup",
            group_id=self._group,
            generation_id=generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        answer = self._coordinator().request(request)
        check(answer.error_code, subject=self._group)
        assignment = bytes(answer.assignment)
        topics = read_assignment(assignment)[0] if assignment else {}
        self._positions, self._has_read = {}, False
        self._untaken = [(topic, number) for topic, numbers in topics.items() for number in numbers]
        self._generation, self._beat_at = generation, time.monotonic()

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        found = self._cluster.metadata(sorted(topics)).topics
        return {topic.name: len(topic.partitions) for topic in found if not topic.error_code}

    def _take(self) -> None:
        mine = self._untaken
        try:
            committed = committed_offsets(self._cluster, self._group, mine, require_stable=True)
        except RequestError as err:
            if err.code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                return
            raise
        fresh = [each for each in mine if each not in committed]
        begun = self._begin(fresh) if fresh else {}
        self._positions = {each: committed[each] for each in mine if each in committed} | begun
        self._untaken = []
        self._has_read = bool(fresh)
        self._committed_at = time.monotonic()


def assign_range(wanted: Mapping[str, Iterable[str]], counts: Mapping[str, int]) -> dict[str, dict[str, list[int]]]:
    """Each topic's partitions in runs over the members that want it, by member id; the first members get one more."""
    found: dict[str, dict[str, list[int]]] = {member: {} for member in wanted}
    for topic, count in counts.items():
        members = sorted(member for member, topics in wanted.items() if topic in topics)
        share, more = divmod(count, len(members))
        start = 0
        for at, member in enumerate(members):
            end = start + share + (at < more)
            if end > start:
                found[member][topic] = list(range(start, end))
            start = end
    return found
