"""FindCoordinatorRequest, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys")
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("key", "string", "0-3", ""),
        ("key_type", "int8", "1+", 0),
        ("coordinator_keys", "[]string", "4+", ()),
    )

    if TYPE_CHECKING:
        key: str = ""
        key_type: int = 0
        coordinator_keys: list[str] = EMPTY
