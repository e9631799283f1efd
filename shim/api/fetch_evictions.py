"""Which fetch session gives way to a new one where the cache is full (Kafka: FetchSessionCacheShard.tryEvict).

Kafka moves a session in two trees each time it is used. Here a session changes nothing when it is used: what is kept of
it is its last use and its size at some time. A session is used again later, never earlier, so the one that seems to
have been used longest ago is looked at first, and again with what is true now.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.cext.session_base import SessionBase

    Pair = tuple[int, int]

EVICTABLE_AFTER_MS = 120_000


class Evictions:
    """Made when a cache is full, of all its sessions. The cache tells of those that begin and that shrink, and makes a
    new one where that finds no memory; a choice that finds none can be made again."""

    __slots__ = ("_by_size", "_by_use", "_most", "_sessions", "_young", "_youngest")

    def __init__(self, sessions: Mapping[int, SessionBase]) -> None:
        """`sessions`: those of the cache, in the order in which they began."""
        self._sessions = sessions
        # (last use, id), none later than it was; of two that were used in the same millisecond Kafka takes the one of
        # the lesser id (LastUsedKey).
        self._by_use: list[Pair] = [(one.used_ms, one.session_id) for one in sessions.values()]
        heapify(self._by_use)
        # (size, id) of those that are old, none larger than it is.
        self._by_size: list[Pair] = []
        # (when it began, id) of the others, and how many of them are old by now.
        self._young: list[Pair] = [(one.created_ms, one.session_id) for one in sessions.values()]
        self._youngest = 0
        # Closed sessions stay in the lists until they are looked at.
        self._most = 2 * len(sessions) + 64

    @property
    def is_full(self) -> bool:
        """Whether what it keeps of closed sessions is worth starting over."""
        return max(len(self._by_use), len(self._by_size), len(self._young)) >= self._most

    def add(self, session: SessionBase) -> None:
        """A session begins."""
        heappush(self._by_use, (session.used_ms, session.session_id))
        self._young.append((session.created_ms, session.session_id))

    def shrunk(self, session: SessionBase) -> None:
        """A session has fewer partitions than before."""
        heappush(self._by_size, (len(session.partitions), session.session_id))

    def choose(self, size: int, now_ms: int) -> int | None:
        """Returns the id of the session that gives way to one of so many partitions, if any does."""
        unused = self._unused(now_ms)
        if unused is not None:
            return unused.session_id
        smallest = self._smallest(now_ms)
        return smallest.session_id if smallest is not None and len(smallest.partitions) < size else None

    def _unused(self, now_ms: int) -> SessionBase | None:
        heap = self._by_use
        while heap and now_ms - heap[0][0] > EVICTABLE_AFTER_MS:
            used_ms, session_id = heap[0]
            session = self._sessions.get(session_id)
            if session is None:
                heappop(heap)
            elif session.used_ms != used_ms:
                heapreplace(heap, (session.used_ms, session_id))
            else:
                return session
        return None

    def _smallest(self, now_ms: int) -> SessionBase | None:
        young, heap = self._young, self._by_size
        while self._youngest < len(young) and now_ms - young[self._youngest][0] > EVICTABLE_AFTER_MS:
            session = self._sessions.get(young[self._youngest][1])
            if session is not None:
                self.shrunk(session)
            self._youngest += 1
        while heap:
            size, session_id = heap[0]
            session = self._sessions.get(session_id)
            if session is None or now_ms - session.created_ms <= EVICTABLE_AFTER_MS:
                heappop(heap)  # of one that is young, and comes when it is old
            elif len(session.partitions) != size:
                heapreplace(heap, (len(session.partitions), session_id))
            else:
                return session
        return None
