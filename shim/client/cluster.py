"""`Cluster`: connections to all brokers of a cluster, and which broker has what (Kafka: Metadata, NetworkClient)."""

from __future__ import annotations

import time

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import (
    CannotConnectError,
    Connection,
    ConnectionLostError,
    NoAnswerError,
    RequestError,
    WireClientError,
    check,
    parse_address,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from kafka_shim.wire_client import Security

    T = TypeVar("T")

TopicPartition = tuple[str, int]

GROUP, TRANSACTION, SHARE = 0, 1, 2
# What passes by itself: a leader or coordinator is being made, moved or loaded; markers of the transaction before are
# still being written.
PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
# What a new connection may mend: the broker was started again, or closed one that was idle or had to log in again.
LOST = (ConnectionLostError, CannotConnectError, NoAnswerError)
# Of a topic that somebody may be making.
NOT_MADE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
PAUSE_S = 0.05
# Between two of several requests in a row.
LONGEST_PAUSE_S = 0.02
# A broker that makes missing topics says UNKNOWN_TOPIC_OR_PARTITION for so long at most.
CREATION_S = 3.0


def some_at_once(many: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Yields them in parts of `most` at most, for one request each. Between two requests as much time passes as the
    first took, so that a broker that is busy with them has as much for others."""
    for start in range(0, len(many), most):
        began_s = time.monotonic()
        yield many[start : start + most]
        if start + most < len(many):
            time.sleep(min(LONGEST_PAUSE_S, time.monotonic() - began_s))


class Cluster:
    """The brokers of one cluster; a context manager. Connects to each when it is first needed. Not thread-safe.

    `bootstrap` is HOST:PORT or several with commas, tried in turn; `security` is as for `Connection`. Every method that
    speaks to a broker raises WireClientError, and RequestError for an error code.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        security: Security | None = None,
        client_id: str = "kafka-shim-cli",
        timeout_s: float = 30.0,
    ) -> None:
        self._security = security
        self._client_id = client_id
        self.timeout_s = timeout_s
        self._bootstrap = [address.strip() for address in bootstrap.split(",") if address.strip()]
        self._first: tuple[tuple[str, int], Connection] | None = None
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. May be called again, and the cluster used again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._first is not None:
            self._first[1].close()
            self._first = None

    # --- connections

    def any(self) -> Connection:
        """Returns the connection to the first bootstrap server that answers. Raises WireClientError if none does."""
        if self._first is None:
            for number, address in enumerate(self._bootstrap, start=1):
                try:
                    self._first = parse_address(address), self._connect(address)
                    break
                except WireClientError:
                    if number == len(self._bootstrap):
                        raise
        if self._first is None:
            raise WireClientError("no bootstrap server is named: give HOST:PORT")
        return self._first[1]

    def to(self, node_id: int) -> Connection:
        """Returns the connection to one broker. Raises WireClientError if the cluster does not have it."""
        if node_id not in self._connections:
            if node_id not in self._addresses:
                self.metadata(())
            if node_id not in self._addresses:
                raise WireClientError(f"the cluster has no broker {node_id} now")
            host, port = self._addresses[node_id]
            connection = self.any()
            if self._first is not None and self._first[0] == (host, port):
                return connection
            self._connections[node_id] = self._connect(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        return self._connections[node_id]

    def _connect(self, address: str) -> Connection:
        return Connection(address, client_id=self._client_id, timeout_s=self.timeout_s, security=self._security)

    def drop_lost(self, error: WireClientError) -> bool:
        """Whether `error` is of connections to a cluster that has answered before. They are closed then, and made again
        when they are next needed."""
        if not self._addresses or not isinstance(error, LOST):
            return False
        self.close()
        self.forget_leaders()
        return True

    # --- who has what

    def metadata(self, topics: Iterable[str] | None = None, *, create: bool = False) -> Any:
        """Returns the response to Metadata for these topics, None for all. `create`: make those that are missing, if
        the broker does so by itself."""
        names = None if topics is None else [{"name": name} for name in topics]
        answer = self.any().request(make("Metadata", topics=names, allow_auto_topic_creation=create))
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for topic in answer.topics:
            for part in topic.partitions:
                self._leaders[topic.name, part.partition_index] = part.leader_id
        return answer

    def partitions(self, topic: str, *, create: bool = False, need_leaders: bool = True) -> list[int]:
        """Returns the partitions of a topic, each of which has a leader if they are needed."""
        made_by = time.monotonic() + CREATION_S

        def ask() -> list[int]:
            (found,) = self.metadata([topic], create=create).topics
            code = found.error_code
            if create and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and time.monotonic() < made_by:
                code = ErrorCode.LEADER_NOT_AVAILABLE  # it is being made, unless the broker makes none
            check(code, subject=topic)
            for part in found.partitions if need_leaders else ():
                # A partition without a leader has an error, and so has one whose listener is not known yet.
                check(part.error_code, subject=f"{topic}-{part.partition_index}")
            return sorted(part.partition_index for part in found.partitions)

        return self.patiently(ask)

    def partitions_once_made(self, topic: str, timeout_s: float) -> list[int]:
        """Returns the partitions of a topic that may be made meanwhile. Raises TimeoutError if none is by then."""
        try:
            return self.patiently(lambda: self.partitions(topic), NOT_MADE, timeout_s)
        except RequestError as error:
            if error.code not in NOT_MADE:
                raise
            raise TimeoutError(f"there is no topic {topic} after {timeout_s} s") from None

    def leader(self, partition: TopicPartition) -> int:
        """Returns the node id of a partition's leader, as it was when it was last asked for. Raises
        UNKNOWN_TOPIC_OR_PARTITION."""
        if self._leaders.get(partition, -1) < 0 and partition[1] not in self.partitions(partition[0]):
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject=f"{partition[0]}-{partition[1]}")
        return self._leaders[partition]

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, dict[str, list[int]]]:
        """Returns node id -> topic -> partitions."""
        found: dict[int, dict[str, list[int]]] = {}
        for topic, partition in partitions:
            topics = found.setdefault(self.leader((topic, partition)), {})
            topics.setdefault(topic, []).append(partition)
        return found

    def by_leader_now(
        self, partitions: Collection[TopicPartition]
    ) -> tuple[dict[int, dict[str, list[int]]], dict[TopicPartition, RequestError]]:
        """As `by_leader`, without a wait: those that have no leader come second, with the error."""
        unknown = {topic for topic, partition in partitions if self._leaders.get((topic, partition), -1) < 0}
        found = self.metadata(sorted(unknown)).topics if unknown else ()
        topic_codes = {topic.name: topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in found}
        codes = {
            (topic.name, part.partition_index): part.error_code or ErrorCode.LEADER_NOT_AVAILABLE
            for topic in found
            for part in topic.partitions
        }
        errors = {
            each: RequestError(codes.get(each, topic_codes[each[0]]), subject=f"{each[0]}-{each[1]}")
            for each in partitions
            if self._leaders.get(each, -1) < 0
        }
        return self.by_leader(each for each in partitions if each not in errors), errors

    def has_leader(self, partition: TopicPartition) -> bool:
        """Returns whether a partition had a leader when that was last asked for, or may have one."""
        return self._leaders.get(partition, 0) >= 0

    def forget_leaders(self) -> None:
        """Ask again for the leaders when they are next needed, after one has moved."""
        self._leaders.clear()

    def coordinator(self, key: str, kind: int = GROUP) -> Connection:
        """Returns the connection to the coordinator of a group or a transactional id."""
        return self.patiently(lambda: self.to(self.coordinator_id(key, kind)))

    def coordinator_id(self, key: str, kind: int = GROUP) -> int:
        """Returns the node id of the coordinator of a group or a transactional id."""

        def ask() -> int:
            answer = self.any().request(make("FindCoordinator", key_type=kind, coordinator_keys=[key]))
            (found,) = answer.coordinators
            check(found.error_code, found.error_message, key)
            self._addresses.setdefault(found.node_id, (found.host, found.port))
            return int(found.node_id)

        return self.patiently(ask)

    def patiently(
        self,
        ask: Callable[[], T],
        passing: frozenset[ErrorCode] = PASSING,
        timeout_s: float | None = None,
        *,
        reconnects: bool = False,
    ) -> T:
        """Returns what `ask` returns; calls it again while it raises RequestError with a code that is passing, for
        `timeout_s` at most, by default the cluster's. `reconnects`: also after a connection was lost, over a new
        one."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            try:
                return ask()
            except RequestError as error:
                if error.code not in passing or time.monotonic() > deadline:
                    raise
                self.forget_leaders()
            except WireClientError as error:
                if not reconnects or time.monotonic() > deadline or not self.drop_lost(error):
                    raise
            time.sleep(PAUSE_S)
