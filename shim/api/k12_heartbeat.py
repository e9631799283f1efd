"""Heartbeat (key 12), versions 0-4.

Keeps the session of a classic member alive. REBALANCE_IN_PROGRESS makes the member rejoin. v3 static members (KIP-345).
v4 is flexible.
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.cext.plain_heartbeats import PlainHeartbeat
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.heartbeat_response import HeartbeatResponse
from kafka_shim.security.acl import GROUP, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context

KEY, MIN, MAX = 12, 0, 4
REQUEST, RESPONSE = HeartbeatRequest, HeartbeatResponse


def handle(context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    require(context, READ, GROUP, request.group_id)
    context.note_member(request.group_id, request.member_id)
    return context.broker.groups.classic.heartbeat(request)


def _stays(broker: Broker, beat: Any) -> bool:
    return broker.groups.classic.stays(beat)


PLAIN = PlainHeartbeat(_stays)
