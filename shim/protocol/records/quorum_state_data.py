"""QuorumStateData, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class Voter(Message):
    __slots__ = ("voter_id",)
    FIELDS = (("voter_id", "int32", "0", 0),)

    def __init__(self, *, voter_id: int = 0) -> None:
        self.voter_id = voter_id
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[Voter] | None = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.unknown_tags = None
