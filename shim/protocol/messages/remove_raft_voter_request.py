"""RemoveRaftVoterRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class RemoveRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")
    API_KEY = 81
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0+", "", "0+"),
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "0+", ZERO_UUID),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = ""
        voter_id: int = 0
        voter_directory_id: bytes = ZERO_UUID
