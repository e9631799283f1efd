"""The fields of a fetch session and its partitions that appends and Fetch requests change. `api.fetch_sessions` has the
rules."""

from typing import Any

class SessionBase:
    """The base of `FetchSession`."""

    session_id: int
    epoch: int
    """The session epoch that its next request must have."""
    by_id: bool
    is_closed: bool
    created_ms: int
    used_ms: int
    next_turn: int
    partitions: dict[Any, Any]
    changed: dict[Any, None]
    waiters: set[Any]
    reader: tuple[Any, ...] | None

    def take_turn(self) -> int:
        """Returns the last place in the order of the session."""

class CachedBase:
    """The base of `CachedPartition`."""

    topic: str | bytes
    name: str | None
    partition: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    fetch_offset: int
    high_watermark: int
    log_start_offset: int
    segment_base: int
    turn: int
    log: Any
    session: Any

    def mark_changed(self) -> None:
        """The log changed, or the client moved its position. Cheap: every append calls it. If memory ends, the next
        request of the session reads all of its partitions."""
