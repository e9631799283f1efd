"""A member of a consumer group of KIP-848: the broker assigns, the member sends heartbeats."""

from __future__ import annotations

import base64
import os
import time

from kafka_shim.client.offsets import commit_offsets, committed_offsets
from kafka_shim.client.requests import NAMES, make
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

LEAVES = -1
# The group does not know the member by this epoch any more, or was removed, as one that is empty and has no offsets.
REJOIN = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
INTERVAL_S, UNASSIGNED_S = 5.0, 0.2
REBALANCE_TIMEOUT_MS = 60_000


class ConsumerMember:
    """Joins at the first `beat`, and has partitions from then on. Call `beat` at least every few seconds: a member that
    was silent for longer than its session joins again, as Java's consumer does."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        """Raises WireClientError for a broker without consumer groups of KIP-848."""
        if NAMES["ConsumerGroupHeartbeat"] not in cluster.any().ranges():
            raise WireClientError("the broker has no consumer groups of KIP-848 (Apache Kafka 4.0 has)")
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._member_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        self._epoch = 0
        self._next_s = 0.0
        self._names: dict[bytes, str] = {}
        self.assigned: frozenset[TopicPartition] = frozenset()
        # Whether nothing was assigned since it joined.
        self.is_new = True
        # Whether it has lost its partitions, and the caller of `beat` does not know yet.
        self._has_lost = False

    def beat(self) -> bool:
        """Send a heartbeat if it is time. Returns whether other partitions are assigned than before, or the same ones
        again, which another member may have had in between. Raises RequestError: GROUP_AUTHORIZATION_FAILED ..."""
        if time.monotonic() < self._next_s:
            return False
        before = self.assigned
        try:
            answer = self._send(self._epoch)
        except RequestError as error:
            self._drop_out(error)
            answer = self._send(self._epoch)
        self._epoch = answer.member_epoch
        self._next_s = time.monotonic() + min(answer.heartbeat_interval_ms / 1000, self._pause_s())
        if answer.assignment is not None:
            self.assigned = frozenset(
                (self._name(bytes(topic.topic_id)), partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            )
        self.is_new = self.is_new and not self.assigned
        has_changed, self._has_lost = self._has_lost or self.assigned != before, False
        if has_changed:
            self._next_s = 0.0  # tells the broker at once what it owns now
        return has_changed

    def _drop_out(self, error: RequestError) -> None:
        """Others have its partitions since it was silent: the next heartbeat joins. Raises any other error."""
        if error.code not in REJOIN or self._epoch <= 0:
            raise error
        self._epoch, self._next_s, self.assigned = 0, 0.0, frozenset()
        self.is_new = self._has_lost = True

    def _pause_s(self) -> float:
        # An assignment comes with a heartbeat: who has none asks again soon.
        return INTERVAL_S if self.assigned else UNASSIGNED_S

    def _send(self, epoch: int) -> Any:
        owned: dict[bytes, list[int]] = {}
        for topic, partition in sorted(self.assigned):
            owned.setdefault(self._id(topic), []).append(partition)
        request = make(
            "ConsumerGroupHeartbeat",
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self._topics,
            topic_partitions=[{"topic_id": one, "partitions": parts} for one, parts in owned.items()],
        )

        def ask() -> Any:
            answer = self._cluster.coordinator(self._group).request(request)
            check(answer.error_code, answer.error_message, self._group)
            return answer

        return self._cluster.patiently(ask)

    def _name(self, topic_id: bytes) -> str:
        if topic_id not in self._names:
            self._names = {bytes(one.topic_id): one.name for one in self._cluster.metadata(self._topics).topics}
        if topic_id not in self._names:
            raise WireClientError(f"group {self._group} was assigned a topic that no longer exists")
        return self._names[topic_id]

    def _id(self, topic: str) -> bytes:
        return next(topic_id for topic_id, name in self._names.items() if name == topic)

    def committed(self) -> dict[TopicPartition, int]:
        """Returns the group's committed offsets."""
        return committed_offsets(self._cluster, self._group)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit as this member. If it was silent for too long, whoever has the partitions now reads them again."""
        if not offsets:
            return
        try:
            commit_offsets(self._cluster, self._group, offsets, member_id=self._member_id, member_epoch=self._epoch)
        except RequestError as error:
            self._drop_out(error)

    def leave(self) -> None:
        """Leave the group, whose other members get the partitions."""
        if self._epoch > 0:
            try:
                self._send(LEAVES)
            except RequestError as error:
                self._drop_out(error)
            self._epoch = 0
