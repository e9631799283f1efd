"""Settings by the names that kafka-python and aiokafka share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def producer(bootstrap: str, transactional_id: str, timeout_ms: int, codec: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "transactional_id": transactional_id,
        "transaction_timeout_ms": timeout_ms,
        "compression_type": None if codec == "none" else codec,
    }


def reader(bootstrap: str, group: str | None, committed: bool) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "isolation_level": "read_committed" if committed else "read_uncommitted",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 300,
    }
