"""VotersRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class Endpoint(Message):
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


class KRaftVersionFeature(Message):
    __slots__ = ("min_supported_version", "max_supported_version")
    FIELDS = (
        ("min_supported_version", "int16", "0+", 0),
        ("max_supported_version", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        min_supported_version: int = 0
        max_supported_version: int = 0


class Voter(Message):
    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature")
    FIELDS = (
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "0+", ZERO_UUID),
        ("endpoints", "[]Endpoint", "0+", ()),
        ("kraft_version_feature", "KRaftVersionFeature", "0+", ()),
    )

    if TYPE_CHECKING:
        voter_id: int = 0
        voter_directory_id: bytes = ZERO_UUID
        endpoints: list[Endpoint] = EMPTY
        kraft_version_feature: KRaftVersionFeature = EMPTY


class VotersRecord(Message):
    __slots__ = ("version", "voters")
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("version", "int16", "0+", 0),
        ("voters", "[]Voter", "0+", ()),
    )

    if TYPE_CHECKING:
        version: int = 0
        voters: list[Voter] = EMPTY
