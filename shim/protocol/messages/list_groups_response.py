"""ListGroupsResponse, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListedGroup(Message):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("protocol_type", "string", "0+", ""),
        ("group_state", "string", "4+", "", "", True),
        ("group_type", "string", "5+", "", "", True),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        protocol_type: str = ""
        group_state: str = ""
        group_type: str = ""


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups")
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("groups", "[]ListedGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        groups: list[ListedGroup] = EMPTY
