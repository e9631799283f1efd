"""AddRaftVoterRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class Listener(Message):
    __slots__ = ("name", "host", "port")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        host: str = ""
        port: int = 0


class AddRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed")
    API_KEY = 80
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0+", "", "0+"),
        ("timeout_ms", "int32", "0+", 0),
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "0+", ZERO_UUID),
        ("listeners", "[]Listener", "0+", ()),
        ("ack_when_committed", "bool", "1+", True),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = ""
        timeout_ms: int = 0
        voter_id: int = 0
        voter_directory_id: bytes = ZERO_UUID
        listeners: list[Listener] = EMPTY
        ack_when_committed: bool = True
