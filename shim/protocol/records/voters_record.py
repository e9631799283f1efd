"""VotersRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class Endpoint(Message):
    __slots__ = ("name", "host", "port")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = None


class KRaftVersionFeature(Message):
    __slots__ = ("min_supported_version", "max_supported_version")
    FIELDS = (
        ("min_supported_version", "int16", "0+", 0),
        ("max_supported_version", "int16", "0+", 0),
    )

    def __init__(self, *, min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = None


class Voter(Message):
    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature")
    FIELDS = (
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "0+", ZERO_UUID),
        ("endpoints", "[]Endpoint", "0+", ()),
        ("kraft_version_feature", "KRaftVersionFeature", "0+", ()),
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        endpoints: list[Endpoint] = EMPTY,
        kraft_version_feature: KRaftVersionFeature = EMPTY,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is EMPTY else endpoints
        self.kraft_version_feature = KRaftVersionFeature() if kraft_version_feature is EMPTY else kraft_version_feature
        self.unknown_tags = None


class VotersRecord(Message):
    __slots__ = ("version", "voters")
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("version", "int16", "0+", 0),
        ("voters", "[]Voter", "0+", ()),
    )

    def __init__(self, *, version: int = 0, voters: list[Voter] = EMPTY) -> None:
        self.version = version
        self.voters = [] if voters is EMPTY else voters
        self.unknown_tags = None
