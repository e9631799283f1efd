"""ElectLeadersResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class PartitionResult(Message):
    __slots__ = ("partition_id", "error_code", "error_message")
    FIELDS = (
        ("partition_id", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        partition_id: int = 0
        error_code: int = 0
        error_message: str | None = ""


class ReplicaElectionResult(Message):
    __slots__ = ("topic", "partition_result")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partition_result", "[]PartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partition_result: list[PartitionResult] = EMPTY


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "1+", 0),
        ("replica_election_results", "[]ReplicaElectionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        replica_election_results: list[ReplicaElectionResult] = EMPTY
