"""Share sessions: which partitions a member fetches, over one connection (Kafka: ShareSessionCache, ShareSession,
ShareSessionContext).

The session epoch of a request says what it is: 0 opens a session, n continues it, -1 ends it. A session ends with its
connection, and then what its member has acquired is released. `group.share.max.share.sessions` limits their number;
none is evicted for another.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # Group id, member id.
    ShareSessionKey = tuple[str, str]
    # Topic id, partition.
    TopicIdPartition = tuple[bytes, int]

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_EPOCH = 2**31 - 1


class CachedSharePartition:
    """One partition of a session. `topic` is None if there was no topic with this id when the session heard of it."""

    __slots__ = ("must_respond", "partition", "topic", "topic_id")

    def __init__(self, topic_id: bytes, partition: int, topic: str | None, must_respond: bool = False) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.topic = topic
        # Whether the next response must contain the partition although it has no records: it is new, or had an error.
        self.must_respond = must_respond

    @property
    def key(self) -> TopicIdPartition:
        return self.topic_id, self.partition


class ShareSession:
    """`epoch` is the epoch that the member's next request must have."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(
        self, key: ShareSessionKey, partitions: dict[TopicIdPartition, CachedSharePartition], connection: object
    ) -> None:
        self.key = key
        self.partitions = partitions
        self.connection = connection
        self.epoch = 1

    def update(self, added: Iterable[CachedSharePartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Take over the changes of an incremental request."""
        for one in added:
            if one.key not in self.partitions:
                one.must_respond = True
                self.partitions[one.key] = one
        for key in forgotten:
            self.partitions.pop(key, None)

    def must_respond(self, key: TopicIdPartition, size_bytes: int, error_code: int) -> bool:
        """Returns whether the response contains this partition, and remembers what it says. A partition with records
        moves to the end of the order."""
        cached = self.partitions.get(key)
        if cached is None:
            return True
        must_respond = size_bytes > 0 or cached.must_respond or error_code != ErrorCode.NONE
        cached.must_respond = error_code != ErrorCode.NONE
        if size_bytes > 0:
            del self.partitions[key]
            self.partitions[key] = cached
        return must_respond


class ShareSessions:
    """All share sessions of a broker. `on_end(session, is_first)` is called when a connection ends a session, its first
    or another, and `on_group_empty(group_id)` when a connection closed and the group has no session any more."""

    __slots__ = ("_by_connection", "_members", "_most", "_sessions", "on_end", "on_group_empty")

    def __init__(
        self, most: int, on_end: Callable[[ShareSession, bool], object], on_group_empty: Callable[[str], object]
    ) -> None:
        self._most = most
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        # Sessions of each group. A group is forgotten when a connection of it has closed.
        self._members: dict[str, int] = {}
        # Of each connection the groups of which it had sessions, with the members whose sessions have not ended.
        self._by_connection: dict[object, dict[str, dict[str, None]]] = {}
        self.on_end = on_end
        self.on_group_empty = on_group_empty

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: ShareSessionKey) -> ShareSession:
        """Returns a session. Raises SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def advance(self, key: ShareSessionKey, epoch: int) -> ShareSession:
        """A request of this epoch continues the session. Raises SHARE_SESSION_NOT_FOUND,
        INVALID_SHARE_SESSION_EPOCH."""
        session = self.get(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def open(
        self, key: ShareSessionKey, partitions: dict[TopicIdPartition, CachedSharePartition], connection: object
    ) -> ShareSession:
        """Open a session in place of the member's old one. Raises SHARE_SESSION_LIMIT_REACHED; the old one has ended
        then, too."""
        self.remove(key)
        if len(self._sessions) >= self._most:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._members[key[0]] = self._members.get(key[0], 0) + 1
        self._by_connection.setdefault(connection, {}).setdefault(key[0], {})[key[1]] = None
        return session

    def remove(self, key: ShareSessionKey) -> ShareSession | None:
        """Remove a session. What its member has acquired stays acquired."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key[0]] -= 1
            self._by_connection.get(session.connection, {}).get(key[0], {}).pop(key[1], None)
        return session

    def connection_closed(self, connection: object) -> None:
        """End the sessions of a connection: one, but for a client that speaks for several members."""
        ended: dict[str, list[ShareSession]] = {}
        for group_id, members in self._by_connection.pop(connection, {}).items():
            removed = (self.remove((group_id, member_id)) for member_id in members)
            ended[group_id] = [session for session in removed if session is not None]
        # All are removed by now, also where memory ends in what follows: their locks end by themselves.
        is_first = True
        for group_id, sessions in ended.items():
            for session in sessions:
                self.on_end(session, is_first)
                is_first = False
            if not self._members.get(group_id):
                self._members.pop(group_id, None)
                self.on_group_empty(group_id)

    def has_members(self, group_id: str) -> bool:
        """Whether the group has a session, or had one of which no connection has closed."""
        return group_id in self._members

    def clear(self) -> None:
        """Forget all sessions: share groups were disabled."""
        self._sessions.clear()
        self._members.clear()
        self._by_connection.clear()


def next_epoch(epoch: int) -> int:
    """Returns the epoch after this one. 0 and -1 have their own meanings, so the epoch after the last is 1."""
    return 1 if epoch == MAX_EPOCH else epoch + 1
