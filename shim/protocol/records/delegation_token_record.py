"""DelegationTokenRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DelegationTokenRecord(Message):
    __slots__ = (
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "max_timestamp",
        "expiration_timestamp",
        "token_id",
    )
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("owner", "string", "0+", ""),
        ("requester", "string", "0+", ""),
        ("renewers", "[]string", "0+", ()),
        ("issue_timestamp", "int64", "0+", 0),
        ("max_timestamp", "int64", "0+", 0),
        ("expiration_timestamp", "int64", "0+", 0),
        ("token_id", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        owner: str = ""
        requester: str = ""
        renewers: list[str] = EMPTY
        issue_timestamp: int = 0
        max_timestamp: int = 0
        expiration_timestamp: int = 0
        token_id: str = ""
