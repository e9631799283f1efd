"""UpdateRaftVoterResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CurrentLeader(Message):
    __slots__ = ("leader_id", "leader_epoch", "host", "port")
    FIELDS = (
        ("leader_id", "int32", "0+", -1),
        ("leader_epoch", "int32", "0+", -1),
        ("host", "string", "0+", ""),
        ("port", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        leader_id: int = -1
        leader_epoch: int = -1
        host: str = ""
        port: int = 0


class UpdateRaftVoterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "current_leader")
    API_KEY = 82
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("current_leader", "CurrentLeader", "0+", (), "", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        current_leader: CurrentLeader = EMPTY
