"""LeaderChangeMessage, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class Voter(Message):
    __slots__ = ("voter_id", "voter_directory_id")
    FIELDS = (
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "1+", ZERO_UUID),
    )

    if TYPE_CHECKING:
        voter_id: int = 0
        voter_directory_id: bytes = ZERO_UUID


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

    if TYPE_CHECKING:
        version: int = 0
        leader_id: int = 0
        voters: list[Voter] = EMPTY
        granting_voters: list[Voter] = EMPTY
