"""JoinGroup (key 11), versions 0-9.

Joins a classic group and waits until the join phase of the rebalance ends. The leader's response lists all members. v1
a rebalance timeout separate from the session timeout. v4 a new dynamic member first gets its id with MEMBER_ID_REQUIRED
(KIP-394). v5 static members (KIP-345). v6 is flexible. v7 the response has the protocol type; the protocol may be null.
v8 the client's reason (KIP-800), which is not used. v9 SkipAssignment (KIP-814).
"""

from __future__ import annotations

from kafka_shim.authorization import require, topics_described_by
from kafka_shim.cext.plain_joins import PlainJoin, with_protocol
from kafka_shim.group.client import Client
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.requests import join_failure
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.security.acl import GROUP, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode

KEY, MIN, MAX = 11, 0, 9
REQUEST, RESPONSE = JoinGroupRequest, JoinGroupResponse

FIRST_WITH_NULL_PROTOCOL = 7


def handle(context: Context, request: JoinGroupRequest) -> Outcome[JoinGroupResponse] | DelayedResponse:
    require(context, READ, GROUP, request.group_id)
    context.note_member(request.group_id, request.member_id)
    client = Client(context.client_id or "", f"/{context.peer_host}", topics_described_by(context))
    outcome = context.broker.groups.classic.join_group(request, context.api_version, client)
    if context.api_version >= FIRST_WITH_NULL_PROTOCOL:
        return outcome
    if isinstance(outcome, Outcome):
        return with_protocol(outcome)
    outcome.edit = with_protocol
    return outcome


def failed(request: JoinGroupRequest, version: int, code: ErrorCode, message: str | None) -> JoinGroupResponse:
    """Returns no generation, and from v7 on a null protocol."""
    protocol_name = None if version >= FIRST_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(error_code=code, generation_id=-1, protocol_name=protocol_name)


PLAIN = PlainJoin(DelayedResponse, join_failure, with_protocol)
