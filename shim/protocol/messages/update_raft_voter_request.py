"""UpdateRaftVoterRequest, version 0. Written by transcribe.py: change nothing here."""

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


class KRaftVersionFeature(Message):
    __slots__ = ("min_supported_version", "max_supported_version")
    FIELDS = (
        ("min_supported_version", "int16", "0+", 0),
        ("max_supported_version", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        min_supported_version: int = 0
        max_supported_version: int = 0


class UpdateRaftVoterRequest(Message):
    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "kraft_version_feature",
    )
    API_KEY = 82
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0+", "", "0+"),
        ("current_leader_epoch", "int32", "0+", 0),
        ("voter_id", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "0+", ZERO_UUID),
        ("listeners", "[]Listener", "0+", ()),
        ("kraft_version_feature", "KRaftVersionFeature", "0+", ()),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = ""
        current_leader_epoch: int = 0
        voter_id: int = 0
        voter_directory_id: bytes = ZERO_UUID
        listeners: list[Listener] = EMPTY
        kraft_version_feature: KRaftVersionFeature = EMPTY
