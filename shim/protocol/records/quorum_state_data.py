"""QuorumStateData, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class Voter(Message):
    __slots__ = ("voter_id",)
    FIELDS = (("voter_id", "int32", "0", 0),)

    if TYPE_CHECKING:
        voter_id: int = 0


class QuorumStateData(Message):
    __slots__ = (
        "cluster_id",
        "leader_id",
        "leader_epoch",
        "voted_id",
        "voted_directory_id",
        "applied_offset",
        "current_voters",
    )
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0", ""),
        ("leader_id", "int32", "0+", -1),
        ("leader_epoch", "int32", "0+", -1),
        ("voted_id", "int32", "0+", -1),
        ("voted_directory_id", "uuid", "1+", ZERO_UUID),
        ("applied_offset", "int64", "0", 0),
        ("current_voters", "[]Voter", "0", (), "0"),
    )

    if TYPE_CHECKING:
        cluster_id: str = ""
        leader_id: int = -1
        leader_epoch: int = -1
        voted_id: int = -1
        voted_directory_id: bytes = ZERO_UUID
        applied_offset: int = 0
        current_voters: list[Voter] | None = EMPTY
