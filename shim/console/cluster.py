"""One person's connections to one cluster, kept from request to request."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager

from kafka_shim.client.cluster import Cluster as Client
from kafka_shim.client.cluster import some_at_once
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.wire_client import Connection, RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from kafka_shim.protocol.message import Message
    from kafka_shim.wire_client import Security

    TopicPartition = tuple[str, int]

UNCOMMITTED, COMMITTED = 0, 1
CLIENT_ID = "kafka-shim-console"
TIMEOUT_S = 10.0
# The largest answer that is read: a batch of the largest size. All other answers are far smaller.
LARGEST_ANSWER_BYTES = 128 << 20
# Partitions, or coordinators, of one request: a broker answers others between two, and one takes it 0.1 ms.
ASKED_AT_ONCE = 20
# All topics of a large cluster, whose answer takes a broker longest, are asked for again after so many times as long as
# the last answer took, and not much later.
LARGE_TOPICS, PAUSE_FACTOR, LONGEST_PAUSE_S = 500, 50, 10.0
# Idle connections that are kept to each broker.
MOST_IDLE = 4


class Cluster:
    """Asks the brokers. Thread-safe: a connection serves one request at a time."""

    def __init__(self, bootstrap: str, security: Security | None = None) -> None:
        self.bootstrap = bootstrap
        self._security = security
        self._lock = threading.Lock()
        self._idle: dict[str, deque[Connection]] = {}
        self._addresses: dict[int, str] = {}
        self._is_closed = False
        # All topics of a large cluster, and until when they will do.
        self._topics: tuple[float, Any] | None = None
        # How often they were changed from here.
        self._changes = 0

    def close(self) -> None:
        """Close what is idle; what is in use is closed after its use."""
        with self._lock:
            self._is_closed = True
            idle = [one for queue in self._idle.values() for one in queue]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def ask(self, message: Message, version: int | None = None, node: int | None = None) -> Any:
        """Return the answer of a broker: of `node`, or of the first that answers of those that were named. A request
        on a connection that was idle is sent again over a fresh one if that is broken: only requests that change
        nothing go this way. Raises WireClientError."""
        address = self._addresses.get(-1 if node is None else node, self.bootstrap)
        kept = self._take(address)
        if kept is not None:
            try:
                return self._ask(address, kept, message, version)
            except WireClientError:
                pass  # the broker may have closed it long ago
        return self._ask(address, self._open(address), message, version)

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client of the project's own for one question, closed after it. Raises WireClientError."""
        with Client(self.bootstrap, security=self._security, client_id=CLIENT_ID, timeout_s=TIMEOUT_S) as client:
            yield client

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A fresh connection for several requests. Raises WireClientError."""
        connection = self._open(self.bootstrap)
        with _closing_broken(connection):
            yield connection
        self._keep(self.bootstrap, connection)

    def has(self, api_key: int) -> bool:
        """Whether the brokers have an API. Raises WireClientError."""
        with self.lend() as connection:
            return api_key in connection.ranges()

    # --- what many questions begin with

    def metadata(self, names: Iterable[str] | None) -> Any:
        """Return the answer to Metadata for some topics, or for all. Creates none. All topics of a large cluster may be
        as they were a few seconds ago. Raises WireClientError."""
        if names is None and (kept := self.kept_topics()) is not None:
            return kept
        began_s, changes = time.monotonic(), self._changes
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        answer = self.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        if len(answer.brokers) > 1:
            self._addresses = {one.node_id: f"{_bracketed(one.host)}:{one.port}" for one in answer.brokers}
        else:
            # The way that was named leads there; the advertised one may not.
            self._addresses = {}
        if names is None and len(answer.topics) >= LARGE_TOPICS:
            now_s = time.monotonic()
            until_s = now_s + min(LONGEST_PAUSE_S, PAUSE_FACTOR * (now_s - began_s))
            with self._lock:
                if changes == self._changes:  # else the answer may be of before the change
                    self._topics = until_s, answer
        return answer

    def kept_topics(self) -> Any | None:
        """Return the answer to Metadata for all topics if it is still kept: of a large cluster, as it was a few seconds
        ago."""
        kept = self._topics
        return None if kept is None or time.monotonic() >= kept[0] else kept[1]

    def forget(self) -> None:
        """Ask for the topics again: they were changed from here."""
        with self._lock:
            self._changes += 1
            self._topics = None

    def leaders(self, topic: str) -> dict[int, int]:
        """Return partition -> leader of a topic. Raises RequestError if there is no such topic."""
        (found,) = self.metadata([topic]).topics
        check(found.error_code, subject=topic)
        return {one.partition_index: one.leader_id for one in sorted(found.partitions, key=_index)}

    def coordinators(self, key_type: int, keys: list[str]) -> dict[str, int]:
        """Return the node that coordinates each group or transactional id; those that the person may not describe are
        left out. Raises WireClientError."""
        if not keys:
            return {}
        self.metadata([])
        return {
            one.key: int(one.node_id)
            for some in some_at_once(keys, ASKED_AT_ONCE)
            for one in self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(some))).coordinators
            if not one.error_code
        }

    def coordinator(self, key_type: int, key: str) -> int:
        """Return the node that coordinates a group or a transactional id. Raises RequestError, WireClientError."""
        self.metadata([])
        (found,) = self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])).coordinators
        check(found.error_code, found.error_message, key)
        return int(found.node_id)

    def nodes(self) -> list[int]:
        """Return all brokers. Raises WireClientError."""
        return sorted(one.node_id for one in self.metadata([]).brokers)

    def offsets(
        self, wanted: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int], isolation: int = UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition for a timestamp, EARLIEST or LATEST; -1 where there is none. Partitions
        whose leader does not answer for them are left out. Raises WireClientError."""
        found: dict[TopicPartition, int] = {}
        for node in sorted({leader for leader in leaders.values() if leader >= 0}):
            asked = [each for each in wanted if leaders.get(each) == node]
            for some in some_at_once(asked, ASKED_AT_ONCE):
                found |= self._offsets(node, {each: wanted[each] for each in some}, isolation)
        return found

    def _offsets(self, node: int, wanted: Mapping[TopicPartition, int], isolation: int) -> dict[TopicPartition, int]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, partition), timestamp in wanted.items():
            entry = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            topics.setdefault(topic, []).append(entry)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        return {
            (topic.name, each.partition_index): each.offset
            for topic in self.ask(request, node=node).topics
            for each in topic.partitions
            if not each.error_code
        }

    # --- connections

    def _ask(self, address: str, connection: Connection, message: Message, version: int | None) -> Any:
        with _closing_broken(connection):
            answer = connection.request(message, version)
        self._keep(address, connection)
        return answer

    def _take(self, address: str) -> Connection | None:
        with self._lock:
            queue = self._idle.get(address)
            return queue.pop() if queue else None

    def _keep(self, address: str, connection: Connection) -> None:
        with self._lock:
            queue = self._idle.setdefault(address, deque())
            if not self._is_closed and len(queue) < MOST_IDLE:
                queue.append(connection)
                return
        connection.close()

    def _open(self, addresses: str) -> Connection:
        last: WireClientError | None = None
        for address in addresses.split(","):
            try:
                return Connection(
                    address,
                    client_id=CLIENT_ID,
                    timeout_s=TIMEOUT_S,
                    security=self._security,
                    max_frame_bytes=LARGEST_ANSWER_BYTES,
                )
            except RequestError:
                raise
            except WireClientError as error:
                last = error
        assert last is not None, "split gives one part at least"
        raise last


@contextmanager
def _closing_broken(connection: Connection) -> Iterator[None]:
    """Close a connection on whose way something failed."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def is_denied(error: WireClientError) -> bool:
    """Whether the broker said that the person may not."""
    return isinstance(error, RequestError) and error.code.name.endswith("AUTHORIZATION_FAILED")


def name_of(code: int) -> str:
    """The name of an error code, or nothing for none."""
    return ErrorCode(code).name if code else ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _index(partition: Any) -> int:
    return int(partition.partition_index)
