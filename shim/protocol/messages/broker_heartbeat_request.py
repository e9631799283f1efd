"""BrokerHeartbeatRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class BrokerHeartbeatRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )
    API_KEY = 63
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("broker_epoch", "int64", "0+", -1),
        ("current_metadata_offset", "int64", "0+", 0),
        ("want_fence", "bool", "0+", False),
        ("want_shut_down", "bool", "0+", False),
        ("offline_log_dirs", "[]uuid", "1+", (), "", False, 0, "1+"),
        ("cordoned_log_dirs", "[]uuid", "2+", None, "2+", False, 1, "2+"),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = -1
        current_metadata_offset: int = 0
        want_fence: bool = False
        want_shut_down: bool = False
        offline_log_dirs: list[bytes] = EMPTY
        cordoned_log_dirs: list[bytes] | None = None
