"""LeaderChangeMessage, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class Voter(Message):
    __slots__ = ("voter_id", "voter_directory_id")
    FIELDS = (
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "1+", ZERO_UUID),
    )

    def __init__(self, *, voter_id: int = 0, voter_directory_id: bytes = ZERO_UUID) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tags = None


class LeaderChangeMessage(Message):
    __slots__ = ("version", "leader_id", "voters", "granting_voters")
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("version", "int16", "0+", 0),
        ("leader_id", "int32", "0+", 0),
        ("voters", "[]Voter", "0+", ()),
        ("granting_voters", "[]Voter", "0+", ()),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] = EMPTY,
        granting_voters: list[Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is EMPTY else voters
        self.granting_voters = [] if granting_voters is EMPTY else granting_voters
        self.unknown_tags = None
